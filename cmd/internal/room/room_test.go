//go:build linux || darwin || freebsd

package room

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/output"
	"github.com/agentteammail/atm/cmd/internal/testteam"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/search"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

func TestMain(m *testing.M) { testteam.Main(m) }

type team struct{ *testteam.Team }

func newTeam(t testing.TB, members ...string) *team {
	team := &team{testteam.New(t, members...)}
	t.Setenv("HOME", team.Dir)
	t.Setenv("XDG_STATE_HOME", filepath.Join(team.Dir, ".state"))
	return team
}

// open opens a room in this process, with or without an identity.
func (t *team) open(as string) (r *Room) {
	t.Helper()
	streams := output.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	s, err := app.OpenMeIfGiven(&app.Given{Streams: streams, Root: filepath.Join(t.Dir, ".atm"), As: as})
	if err != nil {
		t.Fatal(err)
	}
	r = Open(s)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		r.Scope.Root.Close()
	})
	return r
}

// until waits until a snapshot meets the condition.
func (t *team) until(r *Room, what string, isSo func(*Snapshot) bool) *Snapshot {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	s := r.Wait(ctx, func(s *Snapshot) bool { return s.Version > 0 && isSo(s) })
	if ctx.Err() != nil {
		t.Fatalf("never: %s; %+v", what, s)
	}
	return s
}

// Without an identity a room can be read, and every action is refused.
func TestNobody(t *testing.T) {
	team := newTeam(t, "bob", "me")
	r := team.open("")
	team.Atm("send", "bob", "hello", "--as", "me")
	s := team.until(r, "mail", func(s *Snapshot) bool { return s.Members[0].Unread == 1 })
	if s.Me != "" || len(s.Unread) > 0 {
		t.Fatal(s)
	}
	for _, act := range []func() (string, error){
		func() (string, error) { return r.Decide(t.Context(), Question{}, ask.Answer{}) },
		func() (string, error) { return r.Send(t.Context(), mailTo("bob")) },
		func() (string, error) { return r.MarkRead(t.Context(), wire.NewID()) },
		func() (string, error) { return r.Interrupt(t.Context(), "bob") },
	} {
		if said, err := act(); said != "" || r.Scope.Given.Explain(err).Exit != failure.ExitUsage {
			t.Error(said, err)
		}
	}
}

func mailTo(to string) *teams.Message {
	return &teams.Message{To: []string{to}, Content: &wire.Message{Body: "hello"}}
}

// If a message does not reach some of its recipients, the error names them alone.
func TestNotSent(t *testing.T) {
	team := newTeam(t, "alice", "bob", "me")
	r := team.open("me")
	if err := os.RemoveAll(filepath.Join(team.Dir, ".atm/main/bob/inbox/tmp")); err != nil {
		t.Fatal(err)
	}
	team.Write(".atm/main/bob/inbox/tmp", "in the way")
	said, err := r.Send(t.Context(), mailTo("alice,bob"))
	if missed, ok := errors.AsType[*NotSentError](err); !ok || missed.To != "bob" || !strings.Contains(said, "to alice (") {
		t.Error(said, err)
	}
	said, err = r.Send(t.Context(), mailTo("alice,zed"))
	if missed, ok := errors.AsType[*NotSentError](err); !ok || missed.To != "zed" || !strings.Contains(said, "to alice (") {
		t.Error(said, err)
	}
}

// An agent's question waits for somebody who may answer it, its screen is followed, and the answer is typed.
func TestQuestion(t *testing.T) {
	team := newTeam(t, "bob", "me", "you")
	config := "approvers = [\"me\"]\n[members.me]\nperson = true\n[members.you]\nperson = true\n"
	team.Write(".atm/main/team.toml", config)
	team.Atm("run", "bob", "--detach", "--driver", "claude", "--", "fakeagent", "--log", "fake.log")
	t.Cleanup(func() { team.Atm("down") })
	r, other := team.open("me"), team.open("you")
	ctx, stop := context.WithCancel(t.Context())
	for _, option := range []string{"", "3"} { // 3 is "No"
		team.Atm("send", "bob", "CONFIRM [touch made.txt]", "--as", "me")
		asked := func(s *Snapshot) bool { return len(s.Waiting) == 1 && s.Waiting[0].ID != "" }
		q := team.until(r, "the question", asked).Waiting[0]
		if !q.MayAnswer || !strings.Contains(q.Prompt, "touch made.txt") {
			t.Fatal(q)
		}
		if q := team.until(other, "the question", asked).Waiting[0]; q.MayAnswer {
			t.Error("it is not theirs")
		}
		if _, err := other.Decide(t.Context(), q, ask.Answer{}); other.Scope.Given.Explain(err).Exit != failure.ExitRefused {
			t.Error(err)
		}
		team.until(r, "the screen", func(*Snapshot) bool {
			screen := r.Screen(ctx, "bob")
			return screen != nil && strings.Contains(screen.ANSI, "touch made.txt")
		})
		sameID := q
		sameID.Agent = "you"
		if _, err := r.Decide(t.Context(), sameID, ask.Answer{}); r.Scope.Given.Explain(err).Exit != failure.ExitNotFound {
			t.Error("an id is not enough: ", err)
		}
		said, err := r.Decide(t.Context(), q, ask.Answer{Option: option})
		if !strings.HasPrefix(said, "bob: answered (") || err != nil {
			t.Fatal(said, err)
		}
		team.until(r, "the answer", func(s *Snapshot) bool { return len(s.Waiting) == 0 && s.Members[0].State == reducer.WordIdle })
		if _, err := r.Decide(t.Context(), q, ask.Answer{}); r.Scope.Given.Explain(err).Exit != failure.ExitNotFound {
			t.Error(err)
		}
	}
	if log, _ := os.ReadFile(filepath.Join(team.Dir, "fake.log")); strings.Count(string(log), `"event":"answer"`) != 2 {
		t.Errorf("%s", log)
	}
	if turns, err := r.Turns("bob"); len(turns) != 2 || err != nil {
		t.Error(turns, err)
	}
	team.Atm("stop", "bob")
	team.until(r, "it is off", func(s *Snapshot) bool { return s.Members[0].State == reducer.WordOff })
	problem := team.until(r, "that the screen has ended", func(*Snapshot) bool {
		screen := r.Screen(ctx, "bob")
		return screen != nil && strings.Contains(screen.Problem, "bob is not running: atm run bob --driver claude ")
	}).Screens["bob"]
	for range 5 { // however often it is called, it retries only after a while
		if r.Screen(ctx, "bob") != problem {
			t.Error("another one")
		}
	}
	stop()
}

// A question on an agent's session channel is answered with a text, by anybody but the agent.
func TestAnswerText(t *testing.T) {
	team := newTeam(t, "bob", "me")
	team.Atm("event", "waiting_for_input", "prompt=Which branch?", "--as", "bob")
	r, own := team.open("me"), team.open("bob")
	asked := func(s *Snapshot) bool { return len(s.Waiting) == 1 }
	q := team.until(r, "the question", asked).Waiting[0]
	team.until(own, "the question", asked)
	if said, err := own.AnswerText(t.Context(), q, "main"); own.Scope.Given.Explain(err).Exit != failure.ExitRefused {
		t.Error(said, err)
	}
	if said, err := r.AnswerText(t.Context(), q, "main"); !strings.Contains(said, "to bob (") || err != nil {
		t.Error(said, err)
	}
	team.Atm("read", "--as", "bob")
	team.until(r, "its answer", func(s *Snapshot) bool { return len(s.Waiting) == 0 })
	if _, err := r.AnswerText(t.Context(), q, "main"); r.Scope.Given.Explain(err).Exit != failure.ExitNotFound {
		t.Error(err)
	}
}

// A screen on which nothing changes is not followed when nobody has asked for it for a while.
func TestScreenIsForgotten(t *testing.T) {
	defer func(before time.Duration) { followFor = before }(followFor)
	followFor = time.Second
	team := newTeam(t, "bob", "me")
	team.Atm("run", "bob", "--detach", "--driver", "claude", "--", "fakeagent")
	t.Cleanup(func() { team.Atm("down") })
	r := team.open("me")
	team.Eventually("the screen", func() bool { return r.Screen(t.Context(), "bob") != nil })
	team.until(r, "its end", func(s *Snapshot) bool { return s.Screens["bob"] == nil })
}

// My mail is in the order in which it wants me. What stands there as a question is no mail.
func TestOrder(t *testing.T) {
	now := time.Now()
	wants := wantsOf{"urgent": {isUrgent: true}, "late": {due: now.Add(-time.Minute)}, "soon": {isAnswer: true, due: now.Add(time.Hour)}, "read, urgent": {isUrgent: true}}
	s := &Snapshot{
		Unread: []wire.ID{"new", "asks", "soon", "unread", "late", "urgent"}, Owed: []wire.ID{"read, urgent"}, Read: []wire.ID{"read"},
		Waiting: []Question{{Question: ask.Question{ID: "asks"}}},
	}
	s.order(wants, now)
	var order []string
	for _, id := range s.Mail {
		order = append(order, string(id))
	}
	if got := strings.Join(order, "|"); got != "urgent|late|soon|read, urgent|new|unread|read" || s.Wanting != 4 || s.Open != 6 || s.New != 5 {
		t.Error(got, s.Wanting, s.Open, s.New)
	}
}

// A message of mine that was read can be put back, which is seen at once; so is it if another program does it.
func TestUnread(t *testing.T) {
	team := newTeam(t, "bob", "me")
	team.Atm("send", "me", "hello", "--as", "bob")
	r := team.open("me")
	id := team.until(r, "the mail", func(s *Snapshot) bool { return len(s.Unread) == 1 }).Unread[0]
	for _, undo := range []func(){
		func() {
			if said, err := r.MarkUnread(t.Context(), id); err != nil {
				t.Error(said, err)
			}
		},
		func() { team.Atm("unread", string(id), "--as", "me") },
	} {
		if _, err := r.MarkRead(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		team.until(r, "that it is read", func(s *Snapshot) bool { return len(s.Unread) == 0 && len(s.Read) == 1 })
		undo()
		team.until(r, "that it is unread", func(s *Snapshot) bool { return len(s.Unread) == 1 && len(s.Read) == 0 })
	}
}

// A message is in the state of my own copy, and of one to others it is said who has read it.
func TestReadBy(t *testing.T) {
	team := newTeam(t, "alice", "bob", "carol", "me")
	team.Atm("send", "alice,bob,carol", "to others", "--ack", "--as", "me")
	team.Atm("send", "alice", "to one", "--as", "me")
	team.Atm("send", "alice,me", "to me, too", "--as", "bob")
	team.Atm("read", "--as", "alice")
	r := team.open("me")
	items, err := search.Search(t.Context(), r.Scope.Team, search.Query{})
	if err != nil || len(items) != 3 {
		t.Fatal(items, err)
	}
	var got []string
	for _, it := range r.AsMine(items) {
		for _, note := range append([]letter.Note{{Text: it.Body + ":" + string(it.State)}}, Notes([]letter.Note{{Text: letter.WantsAck}}, it, r.ReadBy(it))...) {
			got = append(got, note.Text)
		}
	}
	if got := strings.Join(got, "|"); got != "to me, too:unread|wants ack|to one:|asked for an ack|read|to others:|asked for an ack|read by 1 of 3" {
		t.Error(got)
	}
}

// What a person says in a session reaches its agent, and stands in its log.
func TestSayInSession(t *testing.T) {
	team := newTeam(t, "bob", "me")
	team.Atm("session", "new", "--agent", "bob", "--as", "me")
	r := team.open("me")
	sessions, _, err := r.Scope.Team.Sessions().List()
	if len(sessions) != 1 || err != nil {
		t.Fatal(sessions, err)
	}
	if said, err := r.SayInSession(t.Context(), sessions[0].SessionID, "Focus on auth"); err != nil {
		t.Fatal(said, err)
	}
	if got := team.Atm("session", "show", "bob"); !strings.Contains(got, "Focus on auth") {
		t.Error(got)
	}
	if got := team.Atm("ls", "--as", "bob"); !strings.Contains(got, "Focus on auth") {
		t.Error(got)
	}
	if said, err := r.SayInSession(t.Context(), sessions[0].SessionID, " "); err == nil {
		t.Error("an empty text: ", said)
	}
}

// What my open mail wants is known from its headers. A file that is no message is listed too.
func TestWants(t *testing.T) {
	team := newTeam(t, "bob", "me")
	team.Atm("send", "me", "hello", "--urgent", "--as", "bob")
	team.Atm("send", "me", "hello", "--ack", "--as", "bob")
	r := team.open("me")
	torn := wire.NewID()
	if err := os.WriteFile(filepath.Join(r.Scope.Me.Path(), "inbox/new", maildir.FileName(torn)), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w := wantsOf{}
	ids := w.openMail(r.Scope.Me, maildir.Range{Unread: true})
	if len(ids) != 3 || ids[0] != torn || !w[ids[1]].isAnswer || !w[ids[2]].isUrgent || w[ids[2]].isAnswer {
		t.Error(ids, w)
	}
}

// What I sent can be taken back while somebody has not read it, and only by me.
func TestWithdraw(t *testing.T) {
	team := newTeam(t, "alice", "bob", "me")
	team.Atm("send", "alice,bob", "Lunch?", "--as", "me")
	r, other := team.open("me"), team.open("bob")
	items, err := search.Search(t.Context(), r.Scope.Team, search.Query{})
	if err != nil || len(items) != 1 {
		t.Fatal(items, err)
	}
	team.Atm("read", "--as", "alice")
	if !r.MayWithdraw(items[0]) || other.MayWithdraw(items[0]) {
		t.Error("bob has it unread, and I sent it")
	}
	if said, err := other.Withdraw(t.Context(), items[0].ID); other.Scope.Given.Explain(err).Exit != failure.ExitRefused {
		t.Error(said, err)
	}
	if said, err := r.Withdraw(t.Context(), items[0].ID); !strings.Contains(said, "bob (it was not read)") || !strings.Contains(said, "alice (a notice was sent)") || err != nil {
		t.Error(said, err)
	}
	if r.MayWithdraw(items[0]) {
		t.Error("nobody has it unread")
	}

	// An answer that is missing is waited for no longer.
	team.Atm("send", "bob", "Dinner?", "--due", "10ms", "--as", "me")
	team.Atm("read", "--as", "bob")
	r = team.open("me") // which looks for what is overdue at once
	late := team.until(r, "an overdue answer", func(s *Snapshot) bool { return len(s.Overdue) == 1 }).Overdue[0]
	if !r.MayWithdraw(&wire.Item{Message: search.OwnMessage(r.Scope.Me, late.ID)}) {
		t.Error("it is overdue")
	}
	if said, err := r.Withdraw(t.Context(), late.ID); err != nil {
		t.Error(said, err)
	}
	if s, err := r.Look(t.Context()); len(s.Overdue) > 0 || err != nil {
		t.Error(s.Overdue, err)
	}
}

// To type needs the right that `atm type` needs, a text that it takes, and a runner that is ready for it.
func TestType(t *testing.T) {
	team := newTeam(t, "bob", "me", "you")
	team.Write(".atm/main/team.toml", "[members.me]\nperson = true\n[members.you]\nperson = true\n")
	team.Atm("run", "bob", "--detach", "--driver", "claude", "--", "fakeagent", "--log", "fake.log")
	t.Cleanup(func() { team.Atm("down") })
	r := team.open("me")
	member := func(word reducer.Word) presence.Member {
		m, _ := team.until(r, string(word), func(s *Snapshot) bool { return s.Members[0].State == word }).Member("bob")
		return m
	}
	if !r.MayType(member(reducer.WordIdle)) || r.MayType(presence.Member{Name: "you"}) {
		t.Error("bob runs, and you does not")
	}
	for _, text := range []string{" ", "\x1b[A"} {
		if said, err := r.Type(t.Context(), "bob", text); r.Scope.Given.Explain(err).Exit != failure.ExitUsage {
			t.Errorf("%q: %s %v", text, said, err)
		}
	}
	if said, err := r.Type(t.Context(), "bob", "CONFIRM [touch made.txt]"); !strings.HasPrefix(said, "bob: typed") || err != nil {
		t.Fatal(said, err)
	}
	member(reducer.WordBlocked)
	if said, err := r.Type(t.Context(), "bob", "yes"); err == nil {
		t.Error("it asks something: ", said)
	}
}

// After an upgrade a view says that it is of the version before.
func TestReplaced(t *testing.T) {
	team := newTeam(t, "bob", "me")
	r := team.open("me")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	team.until(r, "the team", func(s *Snapshot) bool { return len(s.Members) > 0 })
	if err := os.Rename(program, program+".old"); err != nil {
		t.Fatal(err)
	}
	defer os.Rename(program+".old", program)
	if err := os.WriteFile(program, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	team.until(r, "another program", func(s *Snapshot) bool { return strings.HasSuffix(s.Problem, "start this view again") })
}
