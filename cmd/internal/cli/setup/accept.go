package setup

import (
	"bytes"
	"cmp"
	"crypto/sha256"
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
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/config"
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
	Code    string           `json:"code,omitempty"` // stands for all of this but the counts of mail
}

type unacceptedTeam struct {
	Team     wire.Name   `json:"team"`
	Members  []wire.Name `json:"members"`
	Unread   int         `json:"unread"`
	Dropped  int         `json:"dropped"`            // files in inboxes
	Later    int         `json:"later,omitempty"`    // messages that wait to be sent
	Told     []wire.Name `json:"told,omitempty"`     // members who get mail about others
	Mistakes string      `json:"mistakes,omitempty"` // why team.toml, and so nothing in it, can be used

	Commands  []startCommand `json:"commands"` // that atm up runs
	On        []onCommand    `json:"on"`       // that are run when something happens
	Resume    []string       `json:"resume"`   // commands that continue a session
	Rules     int            `json:"rules"`    // of any decision
	Allowed   policy.Rules   `json:"allowed"`  // those that allow
	Lead      wire.Name      `json:"lead,omitempty"`
	Approvers []wire.Name    `json:"approvers"`
	NATS      string         `json:"nats,omitempty"`
}

type startCommand struct {
	Member  wire.Name         `json:"member"`
	Command []string          `json:"command"`
	Cwd     string            `json:"cwd,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	Prompt  string            `json:"prompt,omitempty"`
}

type onCommand struct {
	Event   []string `json:"event"`
	Command []string `json:"command"`
}

// mayAccept returns an error that shows what is in a root, unless --accept has the code of just that, from a person.
func mayAccept(s *app.Scope, p *command.Printer, o *initOptions, why *rootdir.UnacceptedError, tracked int, content string) error {
	if why.Unknown != nil {
		return why
	}
	u := unacceptedRoot{Root: s.Root.Path, Reason: why.Error(), Tracked: tracked, Teams: []unacceptedTeam{}}
	sum := sha256.New()
	fmt.Fprintln(sum, u.Root, u.Reason, content)
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
		file, _ := t.Dir().ReadFile(config.File, config.MaxSize)
		u.Teams = append(u.Teams, describeTeam(t))
		d := u.Teams[len(u.Teams)-1]
		later, _ := t.Dir().Names(teamdir.LaterDir)
		fmt.Fprintf(sum, "%s %q %q %q %d\n%s", name, d.Members, later, d.Told, len(file), file)
	}
	if err != nil {
		return err
	}
	u.Code = fmt.Sprintf("%x", sum.Sum(nil)[:8])
	e := failure.Refused("%w", why).WithHint("if all of this may act: %s", o.acceptCommand(u.Code))
	switch {
	case !o.accepts:
	case s.IsInAgent():
		e = failure.Refused("an agent may not accept what is in a root").WithHint("ask a person: %s", o.acceptCommand(u.Code))
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

func describeTeam(t *teamdir.Team) unacceptedTeam {
	d := unacceptedTeam{Team: t.Name, Commands: []startCommand{}, On: []onCommand{}, Resume: []string{}}
	boxes, _ := t.Boxes()
	d.Members, _ = t.Agents()
	for _, b := range boxes {
		ids, _ := b.UnreadIDs()
		d.Unread += len(ids)
		d.Dropped += b.Dropped()
	}
	later, _ := t.Later(teamdir.ToBeSent)
	d.Later, d.Told = len(later), t.Subscribers()
	plan, err := t.Config()
	if err != nil {
		d.Mistakes = err.Error()
	}
	for _, n := range plan.Startable() {
		m := plan.Members[n]
		d.Commands = append(d.Commands, startCommand{n, m.Command, m.Cwd, m.Env, m.Prompt})
	}
	for _, o := range plan.On {
		d.On = append(d.On, onCommand{o.Event, o.Command})
	}
	for _, n := range append([]wire.Name{""}, slices.Sorted(maps.Keys(plan.Members))...) {
		if resume := plan.SessionOf(n).ResumeCmd; resume != "" && !slices.Contains(d.Resume, resume) {
			d.Resume = append(d.Resume, resume)
		}
	}
	d.Rules, d.Lead, d.Approvers, d.NATS = len(plan.Rules), plan.Lead, plan.Approvers, plan.Bridge.NATS
	d.Allowed = slices.DeleteFunc(slices.Clone(plan.Rules), func(r policy.Rule) bool { return r.Decision != policy.Allow })
	return d
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
	for _, s := range t.Commands {
		line("  atm up runs %s: %s", s.Member, policy.QuoteAll(s.Command))
		if s.Cwd != "" {
			line("    in %s", s.Cwd)
		}
		for _, k := range slices.Sorted(maps.Keys(s.Env)) {
			line("    with %s=%s", k, s.Env[k])
		}
		if s.Prompt != "" {
			line("    and types %q", s.Prompt)
		}
	}
	for _, o := range t.On {
		line("  on %s this is run: %s", strings.Join(o.Event, ", "), policy.QuoteAll(o.Command))
	}
	for _, words := range t.Resume {
		line("  a session is continued with: %s", words)
	}
	line("  %s, of which %d allow", letter.Many(t.Rules, "rule"), len(t.Allowed))
	for _, r := range t.Allowed {
		line("    %s for %s", r.Tool, cmp.Or(string(r.Agent), r.Role, "everybody"))
	}
	if t.Lead != "" {
		line("  %s leads, and may stop and start the others", t.Lead)
	}
	if len(t.Approvers) > 0 {
		line("  who may approve: %s", app.Join(t.Approvers))
	}
	if t.NATS != "" {
		line("  atm bridge connects to %s", t.NATS)
	}
}
