package teams

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// postDue sends a message whose answer is overdue.
func postDue(t *testing.T, team *Team, from, to wire.Name, body string, with ...func(*wire.Message)) wire.ID {
	t.Helper()
	m := &wire.Message{
		ID: wire.NewID(), From: team.Box(from).Address(), To: []wire.Address{team.Box(to).Address()}, Body: body,
		SentAt: time.Now().UTC(), DueAt: time.Now().Add(-time.Minute).UTC(),
	}
	for _, f := range with {
		f(m)
	}
	p := &mailbox.Post{Message: m, Sender: team.Box(from), To: []*mailbox.Box{team.Box(to)}}
	mailbox.Deliver(context.Background(), p)
	if err := p.Outcomes[0].Err; err != nil {
		t.Fatal(err)
	}
	return m.ID
}

func readAll(t *testing.T, team *Team, name wire.Name) {
	t.Helper()
	_, err := team.Box(name).Read(context.Background(), mailbox.ReadOptions{}, func(b mailbox.Batch) (int, error) { return len(b.Items), nil })
	if err != nil {
		t.Fatal(err)
	}
}

// overdueAt counts the messages of a member that are overdue.
func overdueAt(t *testing.T, team *Team, name wire.Name) int {
	t.Helper()
	list, err := team.Box(name).Overdue(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestRemindedOnce(t *testing.T) {
	ctx := context.Background()
	r := newRoot(t)
	team := newTeam(t, r, "alice", "bob", "lead")
	bob := team.Box("bob")
	look := func(l DueLook) {
		t.Helper()
		var all sync.WaitGroup
		for range 4 { // at once, and again
			all.Go(func() {
				for range 2 {
					if err := team.Remind(ctx, bob, l); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
	}
	count := func(who wire.Name, want int) {
		t.Helper()
		n := 0
		for _, body := range unreadOf(t, team, who) {
			if strings.Contains(body, "has not") || strings.Contains(body, "Your answer") {
				n++
			}
		}
		if n != want {
			t.Errorf("%s has %d notices, not %d", who, n, want)
		}
	}
	const many = 150 // more than one look goes into
	for i := range many {
		postDue(t, team, "alice", "bob", fmt.Sprint(i))
	}
	for range 6 {
		look(DueLook{Between: true})
	}
	count("lead", many)
	count("bob", 0) // it sees that they are overdue when it reads them
	readAll(t, team, "bob")
	look(DueLook{Busy: true})
	count("bob", 0)
	for range 6 {
		look(DueLook{Between: true})
	}
	count("bob", many)
	count("lead", many)
	if n := overdueAt(t, team, "bob"); n != many {
		t.Errorf("%d are overdue", n)
	}
}

// An agent that is busy is reminded when it is not any more.
func TestNotRemindedInATurn(t *testing.T) {
	ctx := context.Background()
	team := newTeam(t, newRoot(t), "alice", "bob")
	postDue(t, team, "alice", "bob", "?")
	readAll(t, team, "bob")
	happen(t, team, "bob", "turn_started")
	must(t, team.Remind(ctx, team.Box("bob"), DueLook{}))
	if got := unreadOf(t, team, "bob"); len(got) != 0 {
		t.Error(got)
	}
	happen(t, team, "bob", "turn_completed status=completed")
	for range 2 {
		must(t, team.Remind(ctx, team.Box("bob"), DueLook{}))
	}
	if got := unreadOf(t, team, "bob"); len(got) != 1 {
		t.Error(got)
	}
}

// An answer counts however it came, and only from who was asked.
func TestWhatCountsAsAnAnswer(t *testing.T) {
	ctx := context.Background()
	answer := func(from wire.Name, kind string) func(*Team, wire.ID) {
		return func(team *Team, id wire.ID) {
			m := &wire.Message{
				ID: wire.NewID(), Type: kind, From: team.Box(from).Address(), To: []wire.Address{team.Box("alice").Address()},
				InReplyTo: id, Body: "done", SentAt: time.Now().UTC(),
			}
			mailbox.Deliver(ctx, &mailbox.Post{Message: m, To: []*mailbox.Box{team.Box("alice")}})
		}
	}
	for _, c := range []struct {
		name  string
		do    func(*Team, wire.ID)
		with  func(*wire.Message)
		still bool
	}{
		{name: "nothing", do: func(*Team, wire.ID) {}, still: true},
		{name: "a reply", do: answer("bob", "")},
		{name: "somebody else's", do: answer("carol", ""), still: true},
		{name: "a notice", do: answer("bob", wire.TypeNotice), still: true},
		{name: "an ack", still: true, do: func(team *Team, id wire.ID) {
			it, err := team.Box("bob").Get(id)
			must(t, err)
			_, err = team.root.Ack(ctx, team.Box("bob"), it.Message, "", nil)
			must(t, err)
		}},
		{name: "who took it has finished", do: func(team *Team, id wire.ID) {
			bob := team.Box("bob")
			h, err := bob.Hold(ctx, mailbox.HoldOptions{By: team.Box("carol").Address(), For: time.Minute}, nil)
			must(t, err)
			_, err = team.root.AckTaken(ctx, bob, team.Box("carol").Address(), h.Key, h.Message, "", nil)
			must(t, err)
		}},
		{name: "withdrawn", do: func(team *Team, id wire.ID) {
			_, err := team.Box("bob").Withdraw(ctx, id, team.Box("alice").Address())
			must(t, err)
		}},
		{name: "superseded", do: func(team *Team, id wire.ID) {
			postDue(t, team, "alice", "bob", "better", func(m *wire.Message) { m.Supersedes, m.DueAt = id, time.Time{} })
		}},
		{name: "superseded by somebody else", still: true, do: func(team *Team, id wire.ID) {
			postDue(t, team, "carol", "bob", "better", func(m *wire.Message) { m.Supersedes, m.DueAt = id, time.Time{} })
		}},
		{name: "expired", do: func(*Team, wire.ID) {}, with: func(m *wire.Message) { m.ExpiresAt = m.DueAt }},
		{name: "from nobody", do: func(*Team, wire.ID) {}, with: func(m *wire.Message) { m.From.Agent = "drop" }},
		{name: "the sender has gone", do: func(team *Team, id wire.ID) {
			_, err := team.Retire(ctx, "alice")
			must(t, err)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			team := newTeam(t, newRoot(t), "alice", "bob", "carol", "lead")
			with := c.with
			if with == nil {
				with = func(*wire.Message) {}
			}
			id := postDue(t, team, "alice", "bob", "?", with)
			c.do(team, id)
			for range 2 {
				must(t, team.Remind(ctx, team.Box("bob"), DueLook{Between: true}))
			}
			told := 0
			for _, body := range unreadOf(t, team, "lead") {
				if strings.Contains(body, "has not") {
					told++
				}
			}
			if (told == 1) != c.still || told > 1 {
				t.Errorf("the lead was told %d times", told)
			}
			if n := overdueAt(t, team, "bob"); (n == 1) != c.still {
				t.Errorf("%d are overdue", n)
			}
		})
	}
}

// Where nobody leads, or the lead itself owes the answer, nobody else is told.
func TestOverdueWithoutALead(t *testing.T) {
	ctx := context.Background()
	team := newTeam(t, newRoot(t), "alice", "bob", "lead")
	postDue(t, team, "bob", "lead", "?")
	readAll(t, team, "lead")
	for range 2 {
		must(t, team.Remind(ctx, team.Box("lead"), DueLook{Between: true}))
	}
	if got := unreadOf(t, team, "lead"); len(got) != 1 || !strings.Contains(got[0], "Your answer") {
		t.Error(got)
	}
	answers, err := team.OverdueAnswers(ctx, nil)
	if err != nil || len(answers) != 1 || answers[0].Agent != "lead" || !answers[0].Read {
		t.Error(answers, err)
	}
}

// However little time a look has, and however much was told before, the next
// one gets on: what nobody was told of goes first.
func TestRemindedInAHurry(t *testing.T) {
	ctx := context.Background()
	team := newTeam(t, newRoot(t), "alice", "bob", "carol", "dave", "lead")
	tell := func(who wire.Name, n int, told mailbox.Told) {
		for i := range n {
			postDue(t, team, "alice", who, fmt.Sprint(i))
		}
		list, err := team.Box(who).Overdue(time.Now())
		must(t, err)
		for _, d := range list {
			must(t, team.Box(who).Tell(d, told))
		}
	}
	untold := func() (n int) {
		for _, who := range []wire.Name{"bob", "carol", "dave"} {
			list, err := team.Box(who).Overdue(time.Now())
			must(t, err)
			for _, d := range list {
				if d.Told == mailbox.NotTold {
					n++
				}
			}
		}
		return n
	}
	tell("bob", maxDue+1, mailbox.AgentTold)
	tell("carol", 2, mailbox.NotTold)
	tell("dave", 2, mailbox.NotTold)
	for left := 3; left >= 0; left-- {
		must(t, team.RemindAll(ctx, DueLook{Thorough: true, Patience: 1}))
		if n := untold(); n > left {
			t.Fatalf("%d are still untold, not %d", n, left)
		}
	}
	if got := unreadOf(t, team, "lead"); len(got) != 4 {
		t.Error(got)
	}
}

// An answer that was looked for in vain, where all was said, is not looked for
// again at once.
func TestLookedForInVain(t *testing.T) {
	ctx := context.Background()
	team := newTeam(t, newRoot(t), "alice", "bob", "lead")
	bob := team.Box("bob")
	id := postDue(t, team, "alice", "bob", "?")
	readAll(t, team, "bob")
	look := func() {
		t.Helper()
		must(t, team.Remind(ctx, bob, DueLook{Between: true, Thorough: true}))
	}
	for range 2 { // told, then looked for once more
		look()
	}
	list, err := bob.Overdue(time.Now())
	if err != nil || len(list) != 1 || list[0].Told != mailbox.AgentTold {
		t.Fatal(list, err)
	}
	d := list[0]
	bob.Rest(d, time.Now().Add(-time.Minute))
	before := time.Now()
	look()
	if !bob.Rests(d, before, restsMost) {
		t.Error("it is not noted that it was looked for")
	}
	bob.Rest(d, time.Now().Add(restsMost/2))
	m := &wire.Message{
		ID: wire.NewID(), From: bob.Address(), To: []wire.Address{team.Box("alice").Address()}, InReplyTo: id, Body: "!",
		Payload: []byte(`{"in_reply_to":"x"}`), SentAt: time.Now().UTC(),
	}
	mailbox.Deliver(ctx, &mailbox.Post{Message: m, To: []*mailbox.Box{team.Box("alice")}})
	if look(); overdueAt(t, team, "bob") != 1 {
		t.Error("it was looked for")
	}
	bob.Rest(d, time.Now().Add(2*restsMost)) // the clock was wrong
	if look(); overdueAt(t, team, "bob") != 0 {
		t.Error("it was not looked for")
	}
}

// Who is about to read a message is not said not to have read it.
func TestNotToldWhileItReads(t *testing.T) {
	ctx := context.Background()
	team := newTeam(t, newRoot(t), "alice", "bob", "lead")
	postDue(t, team, "alice", "bob", "?")
	must(t, team.Remind(ctx, team.Box("bob"), DueLook{Reading: true}))
	if got := unreadOf(t, team, "lead"); len(got) != 0 {
		t.Error(got)
	}
	readAll(t, team, "bob")
	must(t, team.Remind(ctx, team.Box("bob"), DueLook{Busy: true}))
	if got := unreadOf(t, team, "lead"); len(got) != 1 || !strings.Contains(got[0], "bob has not answered") {
		t.Error(got)
	}
}

func TestAnswersOne(t *testing.T) {
	id := string(wire.NewID())
	asked := map[string][]*owing{id: {{}}}
	for raw, want := range map[string]bool{
		`{"in_reply_to":"` + id + `"}`:                                         true,
		`{"in_reply_to" : "` + id + `"}`:                                       true,
		`{"payload":{"in_reply_to":"x"},"in_reply_to":"` + id + `"}`:           true,
		`{"in_reply_to":"` + string(wire.NewID()) + `","thread":"` + id + `"}`: false,
		`{"in_reply_to"`:             false,
		`{"in_reply_to":"` + id[:30]: false,
		`{"body":"` + id + `"}`:      false,
	} {
		if got := answersOne([]byte(raw), asked); got != want {
			t.Errorf("%s: %t", raw, got)
		}
	}
}
