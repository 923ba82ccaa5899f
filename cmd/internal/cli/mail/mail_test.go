package mail

import (
	"bytes"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/output"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/search"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/wire"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newScope makes a team of alice, whose scope it is, bob, carol, and a person called me.
func newScope(t *testing.T) *app.Scope {
	t.Helper()
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, notices.Tell), "alice", "bob", "carol", "me")
	s := app.Of(team)
	s.Me = team.Box("alice")
	s.Given.IsQuiet = true
	return s
}

// newPrinter returns a printer of JSON or text into a buffer.
func newPrinter(s *app.Scope, isJSON bool) (*command.Printer, *bytes.Buffer) {
	out := new(bytes.Buffer)
	s.Given.Streams = output.Streams{In: strings.NewReader(""), Out: out, Err: io.Discard}
	return &command.Printer{Given: s.Given, IsJSON: isJSON}, out
}

// deliver puts a message into the inboxes of others.
func deliverTo(t *testing.T, s *app.Scope, from wire.Name, m wire.Message, to ...wire.Name) *wire.Message {
	t.Helper()
	m.ID, m.From = wire.NewID(), s.Team.Box(from).Address()
	p := &maildir.Post{Message: &m, Sender: s.Team.Box(from)}
	for _, name := range to {
		m.To, p.To = append(m.To, s.Team.Box(name).Address()), append(p.To, s.Team.Box(name))
	}
	maildir.Deliver(t.Context(), p)
	for _, o := range p.Outcomes {
		must(t, o.Err)
	}
	return &m
}

// readAll marks all mail of a member as read.
func readAll(t *testing.T, box *maildir.Box) {
	t.Helper()
	_, err := inbox.Read(t.Context(), box, inbox.ReadOptions{}, func(b inbox.Batch) (int, error) { return len(b.Items), nil })
	must(t, err)
}

// typed reads the words of a command as atm does, and calls do in place of the command.
func typed(t *testing.T, verb *cli.Command, words []string, do func(c *cli.Context) error) error {
	t.Helper()
	c := *verb
	c.HelpName, c.Flags = c.Name, nil
	for _, f := range verb.Flags {
		c.Flags = append(c.Flags, unset(f))
	}
	var did error
	c.Action = func(c *cli.Context) error { did = do(c); return nil }
	program := &cli.App{Name: "atm", HelpName: "atm", Flags: cmdline.Flags(), Commands: []*cli.Command{&c}}
	program.Reader, program.Writer, program.ErrWriter = strings.NewReader(""), io.Discard, io.Discard
	command.Prepare(program)
	line, err := cmdline.Sort(program, append([]string{c.Name}, words...))
	if err != nil {
		return err
	}
	if code := command.Run(program, line, nil); code != 0 {
		t.Fatalf("atm %s %q is refused: exit code %d", c.Name, words, code)
	}
	return did
}

// unset returns a flag without the value that it keeps from an earlier line.
func unset(f cli.Flag) cli.Flag {
	flag, ok := f.(*cli.GenericFlag)
	if !ok {
		return f
	}
	value := reflect.New(reflect.TypeOf(flag.Value).Elem())
	value.Elem().Set(reflect.ValueOf(flag.Value).Elem())
	return &cli.GenericFlag{Name: flag.Name, Aliases: flag.Aliases, Usage: flag.Usage, Value: value.Interface().(cli.Generic)}
}

// Of each kind of choice a message is left out that differs, and no other.
func TestFilter(t *testing.T) {
	alice, bob, carol := wire.Address{Agent: "alice", Team: "main"}, wire.Address{Agent: "bob", Team: "main"}, wire.Address{Agent: "carol", Team: "main"}
	s := newScope(t)
	deliverTo(t, s, "bob", wire.Message{Body: "x", Priority: "urgent"}, "alice", "carol")
	var it *wire.Item
	_, err := inbox.Walk(t.Context(), s.Me, maildir.Range{Unread: true}, func(found *wire.Item) bool { it = found; return true })
	must(t, err)
	for name, tt := range map[string]struct {
		f    Filter
		want bool
	}{
		"all":        {Filter{}, true},
		"from":       {Filter{From: []wire.Address{carol, bob}}, true},
		"not from":   {Filter{From: []wire.Address{alice}}, false},
		"nobody":     {Filter{From: []wire.Address{}}, false}, // a group without members
		"to":         {Filter{to: []wire.Address{carol}}, true},
		"not to":     {Filter{to: []wire.Address{bob}}, false},
		"thread":     {Filter{Says: search.Says{Thread: it.ID}}, true},
		"not thread": {Filter{Says: search.Says{Thread: wire.NewID()}}, false},
		"urgent":     {Filter{Says: search.Says{IsUrgent: true}}, true},
		"since":      {Filter{since: time.Now().Add(-time.Hour)}, true},
		"not since":  {Filter{since: time.Now().Add(time.Hour)}, false},
		"one of two": {Filter{From: []wire.Address{bob}, to: []wire.Address{bob}}, false},
	} {
		if got := tt.f.matches(it); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
		if tt.f.matchesAll() != (name == "all") {
			t.Errorf("%s: it matches all: %v", name, tt.f.matchesAll())
		}
	}
	it.Message.Priority = ""
	if (Filter{Says: search.Says{IsUrgent: true}}).matches(it) {
		t.Error("a message that is not urgent is taken for one")
	}
}

// A thread is found by any of its messages and, if its first one is not here, by its whole id.
func TestFindThread(t *testing.T) {
	s := newScope(t)
	far := wire.NewID()
	m := deliverTo(t, s, "bob", wire.Message{Body: "x", Thread: far}, "alice")
	for word, want := range map[string]wire.ID{m.ID.Short(6): far, string(far): far, far.Short(6): ""} {
		got, err := FindThread(s, word)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", word, got, err)
		}
	}
}

// bodies are the texts of listed messages.
func bodies(messages []message) (all []string) {
	for _, m := range messages {
		all = append(all, m.Body)
	}
	slices.Sort(all)
	return all
}
