package setup

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/drop"
	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/config"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/wire"
)

// unacceptedRoot is what would act in a root if somebody accepted it. All else in it would be past: Root.EndPast.
type unacceptedRoot struct {
	Root   string           `json:"root"`
	Reason string           `json:"reason"` // why nothing acts
	Teams  []unacceptedTeam `json:"teams"`
	Code   string           `json:"code,omitempty"` // stands for all of this, with the content of each file
}

type unacceptedTeam struct {
	Team     wire.Name   `json:"team"`
	Members  []wire.Name `json:"members"`
	Unread   int         `json:"unread"`
	Dropped  int         `json:"dropped"`            // files in inboxes
	Mail     []string    `json:"mail"`               // each of these, in a line
	TOML     string      `json:"toml,omitempty"`     // team.toml
	Mistakes string      `json:"mistakes,omitempty"` // why that, and so nothing in it, can be used
	Also     []string    `json:"also"`               // what else acts
}

// mayAccept returns an error that shows what is in a root, unless --accept has the code of just that, from a person.
func mayAccept(s *app.Scope, p *command.Printer, o *initOptions, why *rootdir.UnacceptedError) error {
	u := unacceptedRoot{Root: s.Root.Path, Reason: why.Error(), Teams: []unacceptedTeam{}}
	sum := sha256.New()
	entries, err := os.ReadDir(s.Root.Path)
	for _, e := range entries {
		name := e.Name()
		if !wire.IsName(name) || !e.IsDir() {
			continue
		}
		t, err := s.Root.Team(wire.Name(name))
		if errors.Is(err, teamdir.ErrNoTeam) { // it might become one, and has not been shown
			err = &teamdir.LocksError{Path: filepath.Join(s.Root.Path, name, ".locks")}
		}
		if _, ok := errors.AsType[*teamdir.LocksError](err); ok {
			return failure.Refused("%v: %w", why, err).WithHint("mkdir -m 700 %s", policy.Quote(filepath.Join(s.Root.Path, name, ".locks")))
		}
		if err == nil {
			var d unacceptedTeam
			d, err = describeTeam(t, sum)
			u.Teams = append(u.Teams, d)
		}
		if err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	shown, _ := json.Marshal(u) // strings and numbers: cannot fail
	sum.Write(shown)
	u.Code = fmt.Sprintf("%x", sum.Sum(nil)[:8])
	e := failure.Refused("%w", why).WithHint("if all of this may act: `%s`", o.acceptCommand(u.Code))
	switch {
	case !o.accepts:
	case s.IsInAgent():
		e = failure.Refused("an agent may not accept what is in a root").WithHint("ask a person: `%s`", o.acceptCommand(u.Code))
	case o.code == u.Code:
		return nil
	default:
		e.Message = "this is not what that code stands for: " + e.Message
	}
	return p.PrintDone(u, u.text(), e)
}

// acceptCommand is the same command again, with the code.
func (o *initOptions) acceptCommand(code string) string {
	words := []string{"atm init --accept", code}
	if o.isHere {
		words = append(words, "--here")
	}
	if o.withToml {
		words = append(words, "--toml")
	}
	if o.file != "" {
		words = append(words, policy.Quote(o.file))
	}
	return strings.Join(append(words, app.Strings(o.names)...), " ")
}

// describeTeam lists what would act in a team, and adds the content of each message and file to sum.
func describeTeam(t *teamdir.Team, sum io.Writer) (d unacceptedTeam, err error) {
	d = unacceptedTeam{Team: t.Name, Mail: []string{}, Also: []string{}}
	also := func(format string, args ...any) { d.Also = append(d.Also, fmt.Sprintf(format, args...)) }
	mail := func(format string, args ...any) { d.Mail = append(d.Mail, fmt.Sprintf(format, args...)) }
	add := func(file string, max int64) { // one that cannot be read does not act
		data, _ := t.Dir().ReadFile(file, max)
		fmt.Fprintf(sum, "%q %d\n%s", file, len(data), data)
	}
	boxes, err := t.Brought()
	retired, retiredErr := keep.Retired(t.Store, "")
	outboxes, outErr := t.Store.Outboxes()
	if err := cmp.Or(err, retiredErr, outErr); err != nil {
		return d, err
	}
	d.Members = []wire.Name{}
	for _, b := range boxes {
		d.Members = append(d.Members, b.Agent())
	}
	for _, b := range append(boxes, retired...) {
		ids, _ := b.IDs(maildir.Range{Unread: true, Later: true}) // none of a mailbox that is not whole
		found, _ := drop.List(b)
		to := string(b.Agent())
		if kept, isRetired := strings.CutPrefix(to, maildir.RetiredDir+"/"); isRetired {
			to, _, _ = strings.Cut(kept, ".")
			to = "retired " + to
		}
		d.Unread, d.Dropped = d.Unread+len(ids), d.Dropped+len(found.Drops)
		for _, id := range ids {
			if it, err := b.OpenAnywhere(id); err == nil {
				m := it.Message
				mail("mail for %s from %s: %s", to, m.From, titleOf(m))
			}
			if d, isThere, _ := b.Locate(id); isThere {
				add(d.File(id), wire.MaxFile)
			}
		}
		for _, f := range found.Drops {
			mail("file for %s: %s", to, letter.Quote(path.Base(f.Path), 200))
			add(f.Path, drop.MaxSize)
		}
		if isShared, _ := claim.Shared(b); isShared {
			also("others may take mail from the inbox of %s", to)
		}
	}
	for _, b := range outboxes {
		ids, _ := claim.Outgoing(b)
		for _, id := range ids {
			if m, err := b.Message(id); err == nil {
				mail("mail from %s to %s, sent by atm bridge: %s", m.From, addresses(m.To), titleOf(m))
				data, _ := json.Marshal(m)
				sum.Write(data)
			}
		}
	}
	if file, err := t.Dir().ReadFile(config.File, config.MaxSize); err == nil {
		d.TOML = string(file)
	}
	if _, err := t.Config(); err != nil {
		d.Mistakes = err.Error()
	}
	for _, name := range t.Worktrees() {
		also("%s has a directory in .worktrees, in which it runs if team.toml says worktree = true", name)
	}
	return d, nil
}

// escapeLines escapes each line of a text, and puts indent before it.
func escapeLines(text, indent string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(indent + letter.Escape(strings.TrimSuffix(line, "\n")) + "\n")
	}
	return b.String()
}

func addresses(all []wire.Address) string {
	var words []string
	for _, a := range all {
		words = append(words, a.String())
	}
	return strings.Join(words, ", ")
}

// titleOf is what a message is about, with its type if it is more than mail.
func titleOf(m *wire.Message) string {
	title := letter.Quote(m.Title(), 200)
	if m.Kind() != wire.TypeMessage {
		title = letter.Quote(m.Kind(), 40) + ": " + title
	}
	return title
}

func (u *unacceptedRoot) text() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "in %s nothing acts: nothing is started, typed in, handed over or approved\n", letter.Escape(u.Root))
	for _, t := range u.Teams {
		t.write(&b)
	}
	b.WriteString("what else is there would be past: it can be read, and does nothing\n")
	return b.String()
}

func (t *unacceptedTeam) write(b *bytes.Buffer) {
	line := func(format string, args ...any) { b.WriteString(letter.Escape(fmt.Sprintf(format, args...)) + "\n") }
	mail := letter.Many(t.Unread, "unread message")
	if t.Dropped > 0 {
		mail += ", " + letter.Many(t.Dropped, "dropped file")
	}
	line("team %s: %s; %s", t.Team, app.Join(t.Members), mail)
	for _, text := range append(t.Mail, t.Also...) {
		line("  %s", text)
	}
	if t.Mistakes != "" {
		line("  its team.toml has mistakes: %s", t.Mistakes)
	}
	if t.TOML != "" {
		line("  its team.toml:")
	}
	b.WriteString(escapeLines(t.TOML, "    "))
}
