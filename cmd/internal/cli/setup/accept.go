package setup

import (
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

// mayAccept returns an error that shows what would act in a root if somebody accepted it, unless --accept has the code of
// just that, from a person. All else in the root would be past: Root.EndPast.
func mayAccept(s *app.Scope, p *command.Printer, o *initOptions, why *rootdir.UnacceptedError) error {
	sum := sha256.New()
	lines := []string{fmt.Sprintf("in %s nothing acts: nothing is started, typed in, handed over or approved", s.Root.Path)}
	entries, err := os.ReadDir(s.Root.Path)
	if err != nil {
		return err
	}
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
		var acts []string
		if err == nil {
			acts, err = describeTeam(t, sum)
		}
		if err != nil {
			return err
		}
		lines = append(lines, acts...)
	}
	shown := escapeLines(append(lines, "what else is there would be past: it can be read, and does nothing"))
	io.WriteString(sum, shown)
	code := fmt.Sprintf("%x", sum.Sum(nil)[:8])
	e := failure.Refused("%w", why).WithHint("if all of this may act: `%s`", o.acceptCommand(code))
	switch {
	case !o.accepts:
	case s.IsInAgent():
		e = failure.Refused("an agent may not accept what is in a root").WithHint("ask a person: `%s`", o.acceptCommand(code))
	case o.code == code:
		return nil
	default:
		e.Message = "this is not what that code stands for: " + e.Message
	}
	return p.PrintDone(map[string]string{"root": s.Root.Path, "shown": shown, "code": code}, shown, e)
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

// describeTeam lists what would act in a team, and adds the content of each file and message to sum.
func describeTeam(t *teamdir.Team, sum io.Writer) (lines []string, err error) {
	line := func(format string, args ...any) { lines = append(lines, "  "+fmt.Sprintf(format, args...)) }
	add := func(file string, max int64) string { // one that cannot be read does not act
		data, _ := t.Dir().ReadFile(file, max)
		fmt.Fprintf(sum, "%q %d\n%s", file, len(data), data)
		return string(data)
	}
	boxes, err := t.Brought()
	retired, retiredErr := keep.Retired(t.Store, "")
	outboxes, outErr := t.Store.Outboxes()
	if err := cmp.Or(err, retiredErr, outErr); err != nil {
		return nil, err
	}
	var members []wire.Name
	for _, b := range boxes {
		members = append(members, b.Agent())
	}
	unread, dropped := 0, 0
	for _, b := range append(boxes, retired...) {
		ids, _ := b.IDs(maildir.Range{Unread: true, Later: true}) // none of a mailbox that is not whole
		found, _ := drop.List(b)
		to := string(b.Agent())
		if kept, isRetired := strings.CutPrefix(to, maildir.RetiredDir+"/"); isRetired {
			to, _, _ = strings.Cut(kept, ".")
			to = "retired " + to
		}
		unread, dropped = unread+len(ids), dropped+len(found.Drops)
		for _, id := range ids {
			if it, err := b.OpenAnywhere(id); err == nil {
				line("mail for %s from %s: %s", to, it.Message.From, titleOf(it.Message))
			}
			if d, isThere, _ := b.Locate(id); isThere {
				add(d.File(id), wire.MaxFile)
			}
		}
		for _, f := range found.Drops {
			line("file for %s: %s", to, letter.Quote(path.Base(f.Path), 200))
			add(f.Path, drop.MaxSize)
		}
		if isShared, _ := claim.Shared(b); isShared {
			line("others may take mail from the inbox of %s", to)
		}
	}
	for _, b := range outboxes {
		ids, _ := claim.Outgoing(b)
		for _, id := range ids {
			if m, err := b.Message(id); err == nil {
				var to []string
				for _, a := range m.To {
					to = append(to, a.String())
				}
				line("mail from %s to %s, sent by atm bridge: %s", m.From, strings.Join(to, ", "), titleOf(m))
				data, _ := json.Marshal(m)
				sum.Write(data)
			}
		}
	}
	for _, name := range t.Worktrees() {
		line("%s has a directory in .worktrees, in which it runs if team.toml says worktree = true", name)
	}
	toml := add(config.File, config.MaxSize)
	if _, err := t.Config(); err != nil {
		line("its team.toml has mistakes: %v", err)
	}
	if toml != "" {
		line("its team.toml:")
	}
	for text := range strings.Lines(toml) {
		line("  %s", strings.TrimSuffix(text, "\n"))
	}
	mail := letter.Many(unread, "unread message")
	if dropped > 0 {
		mail += ", " + letter.Many(dropped, "dropped file")
	}
	return append([]string{fmt.Sprintf("team %s: %s; %s", t.Name, app.Join(members), mail)}, lines...), nil
}

// escapeLines makes a text of lines, of which each is safe to show.
func escapeLines(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(letter.Escape(line) + "\n")
	}
	return b.String()
}

// titleOf is what a message is about, with its type if it is more than mail.
func titleOf(m *wire.Message) string {
	title := letter.Quote(m.Title(), 200)
	if m.Kind() != wire.TypeMessage {
		title = letter.Quote(m.Kind(), 40) + ": " + title
	}
	return title
}
