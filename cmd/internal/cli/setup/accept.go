package setup

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/drop"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/config"
	"github.com/agentteammail/atm/internal/teamdir/edits"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// unacceptedRoot is what would act in a root if somebody accepted it.
type unacceptedRoot struct {
	Root    string           `json:"root"`
	Reason  string           `json:"reason"`  // why nothing acts
	Tracked int              `json:"tracked"` // files that git tracks in it
	Teams   []unacceptedTeam `json:"teams"`
	Code    string           `json:"code,omitempty"` // stands for all of this
}

type unacceptedTeam struct {
	Team     wire.Name   `json:"team"`
	Members  []wire.Name `json:"members"`
	Unread   int         `json:"unread"`
	Dropped  int         `json:"dropped"`            // files in inboxes
	Later    int         `json:"later,omitempty"`    // messages that wait to be sent
	Told     []wire.Name `json:"told,omitempty"`     // members who get mail about others
	Mistakes string      `json:"mistakes,omitempty"` // why team.toml, and so nothing in it, can be used

	Settings []shownSetting `json:"settings"` // of team.toml
	Also     []string       `json:"also"`     // what else acts, or will be removed
}

// mayAccept returns an error that shows what is in a root, unless --accept has the code of just that, from a person.
func mayAccept(s *app.Scope, p *command.Printer, o *initOptions, why *rootdir.UnacceptedError, tracked int, content string, left []teamdir.Left) error {
	if why.Unknown != nil {
		return why
	}
	u := unacceptedRoot{Root: s.Root.Path, Reason: why.Error(), Tracked: tracked, Teams: []unacceptedTeam{}}
	sum := sha256.New()
	fmt.Fprintln(sum, content)
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
		if err != nil {
			return err
		}
		d := describeTeam(t, left)
		u.Teams = append(u.Teams, d)
		file, _ := t.Dir().ReadFile(config.File, config.MaxSize)
		fmt.Fprintf(sum, "%s %d\n%s", name, len(file), file)
		for _, mail := range t.FilesThatAct() {
			fmt.Fprintln(sum, mail)
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
	return strings.Join(append(words, o.words...), " ")
}

func describeTeam(t *teamdir.Team, left []teamdir.Left) unacceptedTeam {
	d := unacceptedTeam{Team: t.Name, Also: []string{}}
	also := func(format string, args ...any) { d.Also = append(d.Also, fmt.Sprintf(format, args...)) }
	boxes, _ := t.Boxes()
	d.Members, _ = t.Agents()
	for _, b := range boxes {
		ids, _ := b.UnreadIDs()
		d.Unread += len(ids)
		kinds := kindsOf(b, ids)
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			also("%s gets %s of type %s", b.Agent(), letter.Many(kinds[kind], "message"), kind)
		}
		d.Dropped += drop.Count(b)
		if isShared, _ := claim.Shared(b); isShared {
			also("others may take mail from the inbox of %s", b.Agent())
		}
	}
	later, _ := post.ListLater(t, post.ToBeSent)
	d.Later, d.Told = len(later), notices.Subscribers(t)
	plan, err := t.Config()
	if err != nil {
		d.Mistakes = err.Error()
	}
	d.Settings = shownSettings(plan)
	first := map[wire.Name]post.Later{} // by sender; the earliest comes first
	for _, l := range later {
		if _, isKnown := first[l.From]; !isKnown {
			first[l.From] = l
		}
	}
	for _, from := range slices.Sorted(maps.Keys(first)) {
		also("mail of %s is sent later, first at %s", from, letter.Stamp(first[from].At))
	}
	outboxes, _ := t.Store.Outboxes()
	for _, b := range outboxes {
		if ids, _ := claim.Outgoing(b); len(ids) > 0 {
			also("atm bridge sends %s to %s, from %s", letter.Many(len(ids), "message"), b.Address().Host, app.Join(sendersOf(b, ids)))
		}
	}
	sessions, _, _ := t.Sessions().List()
	for _, s := range sessions {
		if s.State.Alive() {
			also("a session of %s is %s", s.AgentID, s.State)
		}
	}
	claims, _ := edits.Claims(t)
	for i, c := range claims {
		isFirst := !slices.ContainsFunc(claims[:i], func(o edits.Claim) bool { return o.By == c.By })
		n := len(slices.DeleteFunc(slices.Clone(claims), func(o edits.Claim) bool { return o.By != c.By }))
		if isFirst {
			also("%s has claimed %s, such as %s until %s", c.By, letter.Many(n, "path"), letter.Quote(edits.ShownPath(t, c.Path), 300), letter.Stamp(c.Until))
		}
	}
	for _, name := range t.Worktrees() {
		also("%s has a directory in .worktrees, in which it runs if team.toml says worktree = true", name)
	}
	isRemoved := map[string]bool{}
	for _, l := range left {
		if l.Team == t.Name {
			also("what is in %s is removed: %s", l.Dir, strings.Join(l.Names, ", "))
			isRemoved[l.Dir] = true
		}
	}
	for _, name := range d.Members {
		if p, isSaved, err := t.PolicyFor(name); isSaved && err == nil && !isRemoved[string(name)+"/run"] {
			rules, _ := json.Marshal(p) // strings: cannot fail
			also("%s is judged until it is started again by: %s", name, rules)
		}
	}
	return d
}

// kindsOf counts messages that are more than mail, such as what a person says in a session, by their types.
func kindsOf(b *maildir.Box, ids []wire.ID) map[string]int {
	kinds := map[string]int{}
	for _, id := range ids {
		if m, err := b.Message(id); err == nil && m.Kind() != wire.TypeMessage {
			kinds[letter.Quote(m.Kind(), 40)]++
		}
	}
	return kinds
}

// sendersOf returns who has sent the messages of an outbox, each once.
func sendersOf(b *maildir.Box, ids []wire.ID) (names []wire.Name) {
	for _, id := range ids {
		if it, err := b.Get(id); err == nil && !slices.Contains(names, it.Message.From.Agent) {
			names = append(names, it.Message.From.Agent)
		}
	}
	return names
}

func (u *unacceptedRoot) text() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "in %s nothing acts: nothing is started, typed in, handed over or approved\n", letter.Escape(u.Root))
	if u.Tracked > 0 {
		fmt.Fprintf(&b, "git tracks %s in it\n", letter.Many(u.Tracked, "file"))
	}
	for _, t := range u.Teams {
		t.write(&b)
	}
	return b.String()
}

func (t *unacceptedTeam) write(b *bytes.Buffer) {
	line := func(format string, args ...any) { b.WriteString(letter.Escape(fmt.Sprintf(format, args...)) + "\n") }
	mail := letter.Many(t.Unread, "unread message")
	if t.Later > 0 {
		mail += fmt.Sprintf(", %d to be sent later", t.Later)
	}
	if len(t.Told) > 0 {
		mail += ", mail about others for " + app.Join(t.Told)
	}
	if t.Dropped > 0 {
		mail += ", " + letter.Many(t.Dropped, "dropped file")
	}
	line("team %s: %s; %s", t.Team, app.Join(t.Members), mail)
	if t.Mistakes != "" {
		line("  its team.toml has mistakes: %s", t.Mistakes)
	}
	for _, text := range t.settings() {
		line("  %s", text)
	}
	for _, text := range t.Also {
		line("  %s", text)
	}
}

// settings are the settings in lines, with one for each rule and each command of [[on]].
func (t *unacceptedTeam) settings() (lines []string) {
	last := ""
	for _, s := range t.Settings {
		item, text, isItem := strings.Cut(s.Says, ": ")
		if isItem = isItem && (strings.HasPrefix(s.Key, "rules.") || strings.HasPrefix(s.Key, "on.")); isItem && item == last {
			lines[len(lines)-1] += ", " + text
			continue
		}
		lines, last = append(lines, s.Says), ""
		if isItem {
			last = item
		}
	}
	return lines
}
