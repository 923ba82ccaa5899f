package teams_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer/history"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

func newTeam(t *testing.T, members ...wire.Name) *teams.Team {
	t.Helper()
	team, err := teams.Create(t.Context(), filepath.Join(t.TempDir(), ".atm", "main"), members...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { team.Close() })
	return team
}

// Create makes what is missing, and leaves what is there.
func TestCreateAgain(t *testing.T) {
	team := newTeam(t, "alice", "bob")
	hello := &wire.Message{Body: "hello"}
	_, err := team.Send(t.Context(), &teams.Message{From: "alice", To: []string{"bob"}, Content: hello})
	if err != nil {
		t.Fatal(err)
	}
	again, err := teams.Create(t.Context(), team.Dir(), "bob", "carol")
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	members, err := again.Members(t.Context())
	if err != nil || len(members) != 3 || members[1].Unread != 1 {
		t.Errorf("the members are %+v, %v", members, err)
	}
	if all, err := again.Trace(t.Context(), "bob", hello.ID); err != nil || all[0].State != wire.Unread {
		t.Errorf("it is %+v, %v", all, err)
	}
}

// A name that is none makes nothing; what else fails says what is made. Package mailbox may have made the first member.
func TestCreateFails(t *testing.T) {
	ctx, top := t.Context(), t.TempDir()
	root := filepath.Join(top, ".atm")
	for _, dir := range []string{"", filepath.Join(root, "Main"), filepath.Join(root, "main")} {
		if _, err := teams.Create(ctx, dir, "alice", "Bad Name"); err == nil {
			t.Errorf("%q was made", dir)
		}
	}
	if files, err := os.ReadDir(top); len(files) > 0 || err != nil {
		t.Error(files, err)
	}
	dir := filepath.Join(root, "main")
	alice, err := mailbox.Create(ctx, filepath.Join(dir, "alice"))
	if err != nil {
		t.Fatal(err)
	}
	alice.Close()
	if _, err := teams.Open(dir); !errors.Is(err, teams.ErrNoTeam) || !strings.Contains(err.Error(), "Create makes it") ||
		strings.Contains(err.Error(), "--root") {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "carol"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := teams.Create(ctx, dir, "alice", "bob", "carol", "dave"); err == nil || !strings.Contains(err.Error(), "made before: the team and 2 of 4 members") {
		t.Error(err)
	}
	team, err := teams.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer team.Close()
	if err := team.Add(ctx, "dave"); err != nil {
		t.Error(err)
	}
	if err := team.Add(ctx, "dave"); !errors.Is(err, mailbox.ErrExists) {
		t.Error(err)
	}
	if names, err := team.Names(); !slices.Equal(names, []wire.Name{"alice", "bob", "dave"}) || err != nil || team.Name() != "main" {
		t.Error(team.Name(), names, err)
	}
}

// A project's directory does not become a root, which would hide the project from git.
func TestCreateAmongFiles(t *testing.T) {
	project := t.TempDir()
	if err := os.WriteFile(filepath.Join(project, "main.go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if team, err := teams.Create(t.Context(), filepath.Join(project, "main"), "bob"); err == nil {
		team.Close()
		t.Error("it became a root")
	}
	if files, err := os.ReadDir(project); err != nil || len(files) != 1 {
		t.Errorf("it has %v, %v", files, err)
	}
	team, err := teams.Create(t.Context(), filepath.Join(project, ".atm", "main"), "bob")
	if err != nil {
		t.Fatal(err)
	}
	team.Close()
}

// Two processes may make the same team.
func TestCreateAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".atm", "main")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			team, err := teams.Create(t.Context(), dir, "alice", "bob")
			if err != nil {
				t.Error(err)
				return
			}
			team.Close()
		})
	}
	all.Wait()
}

func TestErrors(t *testing.T) {
	ctx, team := t.Context(), newTeam(t, "alice", "bob", "me")
	plain := filepath.Join(t.TempDir(), "main")
	if err := os.Mkdir(plain, 0o700); err != nil {
		t.Fatal(err)
	}
	open := func(dir string) error { _, err := teams.Open(dir); return err }
	send := func(m *teams.Message) error { _, err := team.Send(ctx, m); return err }
	ask := func(m *teams.Message) error { _, err := team.Ask(ctx, m); return err }
	x := func() *wire.Message { return &wire.Message{Body: "x"} }
	for what, m := range map[string]*teams.Message{
		"no sender": {To: []string{"bob"}, Content: x()}, "nothing": {From: "alice", To: []string{"bob"}},
		"no recipient":      {From: "alice", Content: x()},
		"no content":        {From: "alice", To: []string{"bob"}, Content: x(), Files: []teams.File{{Name: "f"}}},
		"a type of its own": {From: "alice", To: []string{"bob"}, Content: &wire.Message{Body: "x", Type: wire.TypeAck}},
		"our meta":          {From: "alice", To: []string{"bob"}, Content: &wire.Message{Body: "x", Meta: json.RawMessage(`{"atm":{"outcome":"done"}}`)}},
	} {
		if err := send(m); err == nil {
			t.Errorf("a message with %s was sent", what)
		}
	}
	if a, err := team.Ask(ctx, &teams.Message{From: "alice", To: []string{"bob", "me"}, Content: &wire.Message{Body: "x"}}); err == nil || a.ID != "" {
		t.Errorf("asked two: %+v, %v", a, err)
	}
	underKey := func(content wire.Message) *teams.Message {
		return &teams.Message{From: "alice", To: []string{"bob"}, Once: "key", Content: &content}
	}
	first, again := underKey(wire.Message{Body: "Which?"}), underKey(wire.Message{Body: "Which?"})
	sent, err := team.Send(ctx, first)
	if to := sent.Receipts(); err != nil || len(to) != 1 || !to[0].IsStored || to[0].WasDelivered {
		t.Fatal(to, err)
	}
	id := first.Content.ID
	if sent, err := team.Send(ctx, again); again.Content.ID != id || err != nil || !sent.Receipts()[0].WasDelivered {
		t.Errorf("sent again it is %s, %+v, %v", again.Content.ID, sent.Receipts(), err)
	}
	other, about := underKey(wire.Message{Body: "What?"}), underKey(wire.Message{Body: "Which?", Subject: "another"})
	later := underKey(wire.Message{Body: "Which?", DueAt: time.Now().Add(time.Hour), ReplyWanted: "yes"})
	if send(later) != nil {
		t.Error("what is due in an hour is another message a moment later")
	}
	toMe := &wire.Message{Body: "Please.", RequiresAck: true}
	if err := send(&teams.Message{From: "alice", To: []string{"me"}, Content: toMe}); err != nil {
		t.Fatal(err)
	}
	_, noMailbox := team.Mailbox("carol")
	_, noMember := team.Member(ctx, "carol")
	_, noMessage := team.Trace(ctx, "alice", wire.NewID())
	for name, c := range map[string]struct{ got, want error }{
		"no root":             {open(plain), teams.ErrNoTeam},
		"nothing":             {open(filepath.Join(plain, "none", "main")), teams.ErrNoTeam},
		"no team":             {open(filepath.Join(filepath.Dir(team.Dir()), "other")), teams.ErrNoTeam},
		"no sender":           {send(&teams.Message{From: "carol", To: []string{"bob"}, Content: &wire.Message{Body: "hello"}}), mailbox.ErrNoMailbox},
		"no recipient":        {send(&teams.Message{From: "bob", To: []string{"carol"}, Content: &wire.Message{Body: "hello"}}), mailbox.ErrNoMailbox},
		"no team to send to":  {send(&teams.Message{From: "bob", To: []string{"alice@web"}, Content: &wire.Message{Body: "hello"}}), teams.ErrNoTeam},
		"no mailbox":          {noMailbox, mailbox.ErrNoMailbox},
		"no member":           {noMember, mailbox.ErrNoMailbox},
		"no message":          {noMessage, mailbox.ErrNotFound},
		"nothing to ack":      {team.Ack(ctx, "bob", teams.Ack{ID: wire.NewID()}), mailbox.ErrNotFound},
		"other text":          {send(other), teams.ErrOtherText},
		"another question":    {ask(other), teams.ErrOtherText},
		"other subject":       {send(about), teams.ErrOtherText},
		"asked about another": {ask(about), teams.ErrOtherText},
		"an ack for a person": {team.Ack(ctx, "me", teams.Ack{ID: toMe.ID}), teams.ErrNotCounted},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
}

// In a root that came with git, a program sends and reads; but no dropped file becomes a message, and nothing is handed over
// unless whoever opens the team says so.
func TestRootFromGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	ctx, team := t.Context(), newTeam(t, "alice", "bob")
	if err := os.WriteFile(filepath.Join(team.Dir(), "bob", "inbox", "task.txt"), []byte("Do it.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, words := range [][]string{{"init", "-q"}, {"add", "-f", ".atm"}} {
		git := exec.CommandContext(ctx, "git", words...)
		git.Dir = filepath.Dir(filepath.Dir(team.Dir()))
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", words, err, out)
		}
	}
	if _, err := team.Send(ctx, &teams.Message{From: "alice", To: []string{"bob"}, Content: &wire.Message{Body: "hello"}}); err != nil {
		t.Error(err)
	}
	if bob, err := team.Member(ctx, "bob"); err != nil || bob.Unread != 1 {
		t.Errorf("bob is %+v, %v", bob, err)
	}
	bob, err := team.Mailbox("bob")
	if err != nil {
		t.Fatal(err)
	}
	watched, err := team.Watch(ctx, watcher.Options{Messages: true, Existing: true})
	if err != nil {
		t.Fatal(err)
	}
	defer watched.Close()
	if e, err := watched.Next(ctx); err != nil || e.Message == nil || e.Message.Body != "hello" {
		t.Errorf("the watcher saw %+v, %v", e, err)
	}
	for it, err := range bob.List(ctx) {
		if err != nil || it.Body != "hello" {
			t.Errorf("listed %+v, %v", it, err)
		}
	}
	if err := bob.HandOver(ctx, func(m *wire.Message, _ bool) error { return errors.New(m.Body + " was given") }); err == nil || !strings.Contains(err.Error(), "git tracks") {
		t.Error(err)
	}
	yes := func(context.Context) error { return nil }
	root, err := teamdir.Open(filepath.Dir(team.Dir()), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	root.MayAct = yes
	accepted, err := root.Team(team.Name())
	if err != nil {
		t.Fatal(err)
	}
	trusted := (*teams.Team)(accepted.Handle(nil))
	if bob, err = trusted.Mailbox("bob"); err != nil {
		t.Fatal(err)
	}
	given := 0
	if err := bob.HandOver(ctx, func(*wire.Message, bool) error { given++; return nil }); given != 2 || err != nil {
		t.Errorf("%d were given, %v", given, err)
	}
}

// A program is not a person: what it says in a person's name is no answer.
func TestPersonsAnswer(t *testing.T) {
	ctx, team := t.Context(), newTeam(t, "alice", "me")
	mayI := &wire.Message{Body: "May I?", ReplyWanted: "yes"}
	_, err := team.Send(ctx, &teams.Message{From: "alice", To: []string{"me"}, Once: "key", Content: mayI})
	if err != nil {
		t.Fatal(err)
	}
	inbox, err := team.Mailbox("me")
	if err != nil {
		t.Fatal(err)
	}
	defer inbox.Close()
	question, err := inbox.Get(mayI.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := team.Send(ctx, &teams.Message{From: "me", Answers: question.Message, Content: &wire.Message{Body: "yes"}}); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	a, err := team.Ask(short, &teams.Message{From: "alice", To: []string{"me"}, Once: "key", Content: &wire.Message{Body: "May I?"}})
	if !errors.Is(err, context.DeadlineExceeded) || a.ID != mayI.ID || a.Status != "" {
		t.Errorf("it is answered: %+v, %v", a, err)
	}
}

func TestSendFile(t *testing.T) {
	ctx, team := t.Context(), newTeam(t, "alice", "bob")
	_, err := team.Send(ctx, &teams.Message{
		From: "alice", To: []string{"bob"}, Content: &wire.Message{Body: "the log", Priority: "urgent", Hop: 7},
		Files: []teams.File{{Name: "log.txt", Content: strings.NewReader("all is well\n")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	inbox, err := team.Mailbox("bob")
	if err != nil {
		t.Fatal(err)
	}
	defer inbox.Close()
	err = inbox.Read(ctx, 0, func(m *wire.Message) error {
		if len(m.Attachments) != 1 || m.Attachments[0].Name != "log.txt" || !m.Urgent() || m.Hop != 0 {
			t.Errorf("got %+v", m)
		}
		f, err := team.OpenFile(m.Attachments[0])
		if err != nil {
			return err
		}
		defer f.Close()
		if data, err := io.ReadAll(f); err != nil || string(data) != "all is well\n" {
			t.Errorf("the file has %q, %v", data, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A message to a group goes to each of its members but its sender, and under its key once also when the group has grown.
func TestSendToAGroup(t *testing.T) {
	team := newTeam(t, "alice", "bob", "carol")
	toml := "[groups]\ndev = [\"alice\", \"bob\"]\n"
	if err := os.WriteFile(filepath.Join(team.Dir(), "team.toml"), []byte(toml), 0o600); err != nil {
		t.Fatal(err)
	}
	sent := func(to string) (names []string, id wire.ID, err error) {
		m := &wire.Message{Body: "hello"}
		sent, err := team.Send(t.Context(), &teams.Message{From: "alice", To: []string{to}, Once: "k" + to, Content: m})
		for _, r := range sent.Receipts() {
			names = append(names, string(r.Address.Agent))
		}
		return names, m.ID, err
	}
	for to, want := range map[string]string{"@dev": "bob", "all": "bob carol", "@all": "bob carol", "bob": "bob"} {
		if got, _, err := sent(to); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %q, %v", to, got, err)
		}
	}
	_, before, _ := sent("all")
	if err := team.Add(t.Context(), "dave"); err != nil {
		t.Fatal(err)
	}
	if names, after, err := sent("all"); err != nil || after != before {
		t.Errorf("%q, %s after %s, %v", names, after, before, err)
	}
	if _, _, err := sent("@ops"); err == nil || !strings.Contains(err.Error(), `"ops"`) {
		t.Errorf("no group: %v", err)
	}
}

// Whoever waits for an answer is told what has come since the question was sent, though the wait begins later.
func TestAwaitTellsWhatCame(t *testing.T) {
	ctx, team := t.Context(), newTeam(t, "alice", "bob")
	question := &wire.Message{Body: "Which branch?"}
	send := func(m *teams.Message) {
		t.Helper()
		if _, err := team.Send(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	bob, err := team.Mailbox("bob")
	if err == nil {
		err = bob.Log().Append(ctx, wire.Event{Source: "test", Kind: wire.TurnStarted, TurnID: "before"})
	}
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Millisecond) // the times of events are in milliseconds
	send(&teams.Message{From: "alice", To: []string{"bob"}, Content: question})
	if err := bob.Log().Append(ctx, wire.Event{Source: "test", Kind: wire.ToolCallStart, TurnID: "since"}); err != nil {
		t.Fatal(err)
	}
	send(&teams.Message{From: "bob", To: []string{"alice"}, Content: &wire.Message{Body: "I look."}})
	send(&teams.Message{From: "bob", Answers: question, Content: &wire.Message{Body: "main"}})
	var events, messages []string
	answer, err := team.Await(ctx, question, teams.Observer{
		Event:   func(e *wire.Event, _ *history.Turn) { events = append(events, e.TurnID) },
		Message: func(it *wire.Item) { messages = append(messages, it.Body) },
	})
	if err != nil || answer.Text != "main" {
		t.Errorf("%+v, %v", answer, err)
	}
	if !slices.Contains(events, "since") || slices.Contains(events, "before") || !slices.Equal(messages, []string{"I look.", "main"}) {
		t.Errorf("told of %q and %q", events, messages)
	}
}

// What is unread is taken back, who has read it is told, and only its sender may do so.
func TestWithdraw(t *testing.T) {
	ctx, team := t.Context(), newTeam(t, "alice", "bob", "carol")
	m := &wire.Message{Body: "Rebase, please."}
	if _, err := team.Send(ctx, &teams.Message{From: "alice", To: []string{"bob", "carol"}, Content: m}); err != nil {
		t.Fatal(err)
	}
	read := func(name wire.Name) (types []string) {
		box, err := team.Mailbox(name)
		if err == nil {
			err = box.Read(ctx, 0, func(m *wire.Message) error { types = append(types, m.Kind()); return nil })
		}
		if err != nil {
			t.Error(name, err)
		}
		return types
	}
	read("bob")
	if all, err := team.Withdraw(ctx, "carol", m.ID); !errors.Is(err, mailbox.ErrNotFound) {
		t.Errorf("carol: %+v, %v", all, err)
	}
	all, err := team.Withdraw(ctx, "alice", m.ID)
	if err != nil || len(all) != 2 || all[0].State != wire.Done || all[1].State != wire.Unread || all[0].Err != nil || all[1].Err != nil {
		t.Errorf("alice: %+v, %v", all, err)
	}
	if bob, carol := read("bob"), read("carol"); len(bob) != 1 || bob[0] != wire.TypeNotice || len(carol) != 0 {
		t.Errorf("bob gets %q, carol %q", bob, carol)
	}
}

// Of two members that take from a shared inbox each gets another job, and what is acknowledged is done.
func TestTake(t *testing.T) {
	ctx, team := t.Context(), newTeam(t, "alice", "bob", "carol")
	if err := team.AddShared(ctx, "jobs"); err != nil {
		t.Fatal(err)
	}
	var ids []wire.ID
	for _, text := range []string{"one", "two"} {
		m := &wire.Message{Body: text}
		if _, err := team.Send(ctx, &teams.Message{From: "alice", To: []string{"jobs"}, Content: m}); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, m.ID)
	}
	for i, member := range []wire.Name{"bob", "carol"} {
		if job, err := team.Take(ctx, member, "jobs", time.Minute); err != nil || job == nil || job.ID != ids[i] {
			t.Fatalf("%s: %+v, %v", member, job, err)
		}
	}
	if job, err := team.Take(ctx, "bob", "jobs", time.Minute); err != nil || job != nil {
		t.Errorf("a third one: %+v, %v", job, err)
	}
	if err := team.Ack(ctx, "bob", teams.Ack{ID: ids[1]}); err == nil || !strings.Contains(err.Error(), "carol") {
		t.Errorf("bob finishes carol's: %v", err)
	}
	if err := team.Ack(ctx, "bob", teams.Ack{ID: ids[0], Outcome: "finished"}); err == nil || !strings.Contains(err.Error(), "done, blocked, declined") {
		t.Errorf("an outcome that is none: %v", err)
	}
	if err := team.Ack(ctx, "bob", teams.Ack{ID: ids[0], Text: "done"}); err != nil {
		t.Error(err)
	}
	if all, err := team.Trace(ctx, "alice", ids[0]); err != nil || all[0].State != wire.Done {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := team.Take(ctx, "bob", "alice", time.Minute); err == nil || !strings.Contains(err.Error(), "not shared") {
		t.Errorf("from alice: %v", err)
	}
}
