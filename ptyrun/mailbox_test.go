package ptyrun

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/agentteammail/atm/internal/driver"
	"github.com/agentteammail/atm/internal/runhost"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/testagent"
	"github.com/agentteammail/atm/internal/testtree"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// newTeam makes a team in a repository, with alice and bob in it.
func newTeam(t *testing.T) *teams.Team {
	t.Helper()
	team, err := teams.Create(t.Context(), filepath.Join(testtree.Short(t), ".atm", "main"), "alice", "bob")
	must(t, err)
	t.Cleanup(func() { team.Close() })
	return team
}

func fakeOptions(t *testing.T, team *teams.Team) Options {
	bob, err := team.Mailbox("bob")
	must(t, err)
	argv, env, err := testagent.Command(testagent.Options{Profile: "claude"})
	must(t, err)
	d, _ := driver.Named("claude")
	return Options{Command: argv, Env: append(os.Environ(), env...), Dir: t.TempDir(), Host: runhost.Host{Driver: d}, Mail: &Mail{Mailbox: bob}, timing: &quick}
}

// An agent whose mailbox is named gets its mail, and nobody else runs it meanwhile.
func TestMailbox(t *testing.T) {
	t.Parallel()
	team := newTeam(t)
	o := fakeOptions(t, team)
	agent, err := Start(t.Context(), o)
	must(t, err)
	if _, err := Start(t.Context(), fakeOptions(t, team)); !errors.Is(err, ErrRunning) {
		t.Errorf("it runs twice: %v", err)
	}
	_, err = team.Send(t.Context(), &teams.Message{From: "alice", To: []string{"bob"}, Content: &wire.Message{Body: "hello"}})
	must(t, err)
	for e, err := range agent.Events(t.Context()) {
		must(t, err)
		if e.Kind == wire.TurnCompleted {
			break
		}
	}
	must(t, agent.Close())

	again, err := Start(t.Context(), o) // its events are those from its own start on
	must(t, err)
	for e, err := range again.Events(t.Context()) {
		must(t, err)
		if e.Kind == wire.TurnCompleted {
			t.Error("it has the end of a turn of before")
		}
		break
	}
	must(t, again.Close())
}

// In a root in which git tracks files, an agent gets no mail.
func TestMailFromGit(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	team := newTeam(t)
	_, err := team.Send(t.Context(), &teams.Message{From: "alice", To: []string{"bob"}, Content: &wire.Message{Body: "hello"}})
	must(t, err)
	for _, words := range [][]string{{"init", "-q"}, {"add", "-f", ".atm"}} {
		git := exec.CommandContext(t.Context(), "git", words...)
		git.Dir = filepath.Dir(filepath.Dir(team.Dir()))
		must(t, git.Run())
	}
	o := fakeOptions(t, team)
	agent, err := Start(t.Context(), o)
	must(t, err)
	defer agent.Close()
	for e, err := range agent.Events(t.Context()) {
		must(t, err)
		if e.Kind == wire.EventInjected {
			t.Fatal("it was typed")
		}
		if e.Kind == "stream_error" { // the runner says why not
			break
		}
	}
	if bob, err := team.Member(t.Context(), "bob"); err != nil || bob.Unread != 1 {
		t.Errorf("bob is %+v, %v", bob, err)
	}
}

// Only of an open team is it known whether mail may act.
func TestMailboxOfNoTeam(t *testing.T) {
	alone, err := mailbox.Create(t.Context(), filepath.Join(t.TempDir(), "main", "bob"))
	must(t, err)
	t.Cleanup(func() { alone.Close() })
	for _, m := range []*mailbox.Mailbox{nil, alone} {
		if _, err := Start(t.Context(), Options{Command: []string{"true"}, Mail: &Mail{Mailbox: m}}); err == nil {
			t.Error("it runs")
		}
	}
}

// Who holds the runner lock may start the agent, and gives the lock up.
func TestHold(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 1)
	mayAct := func(context.Context) error {
		select {
		case asked <- struct{}{}:
		default:
		}
		return nil
	}
	root, err := teamdir.Open(filepath.Dir(newTeam(t).Dir()), nil)
	must(t, err)
	t.Cleanup(func() { root.Close() })
	root.MayAct = mayAct
	accepted, err := root.Team("main")
	must(t, err)
	team := (*teams.Team)(accepted.Handle(nil))
	o := fakeOptions(t, team)
	must(t, o.Mail.Hold(t.Context()))
	agent, err := Start(t.Context(), o)
	must(t, err)
	_, err = team.Send(t.Context(), &teams.Message{From: "alice", To: []string{"bob"}, Content: &wire.Message{Body: "hello"}})
	must(t, err)
	<-asked
	must(t, agent.Close())
	other := &Mail{Mailbox: o.Mail.Mailbox}
	if err := other.Hold(t.Context()); !errors.Is(err, ErrRunning) {
		t.Errorf("it is not held: %v", err)
	}
	must(t, o.Mail.Release())
	must(t, o.Mail.Release())
	must(t, other.Hold(t.Context()))
	must(t, other.Release())
}
