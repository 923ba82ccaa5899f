package notices

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/wire"
)

// postDue sends a message whose answer is overdue.
func postDue(t *testing.T, team *teamdir.Team, from, to wire.Name, body string, with ...func(*wire.Message)) wire.ID {
	t.Helper()
	isDue := func(m *wire.Message) { m.SentAt, m.DueAt = time.Now().UTC(), time.Now().Add(-time.Minute).UTC() }
	return teamtest.Post(t, team, from, to, body, append([]func(*wire.Message){isDue}, with...)...)
}

// take takes a message from an inbox for a member; "" if there is none.
func take(t *testing.T, box *maildir.Box, by wire.Name) wire.ID {
	t.Helper()
	taker := wire.Address{Agent: by, Team: box.Address().Team}
	it, err := claim.Lease(context.Background(), box, taker, time.Minute, inbox.ReadOptions{}, func(*wire.Item, wire.Lease) (bool, error) { return true, nil })
	teamtest.Must(t, err)
	if it == nil {
		return ""
	}
	return it.ID
}

// overdueAt counts the overdue answers of a member.
func overdueAt(t *testing.T, team *teamdir.Team, name wire.Name) int {
	t.Helper()
	answers, err := OverdueAnswers(context.Background(), team)
	teamtest.Must(t, err)
	n := 0
	for _, a := range answers {
		if a.Agent == name {
			n++
		}
	}
	return n
}

// However often and concurrently Remind is called, the lead gets one notice and the agent one reminder: only of what it
// has read, and only between two turns. Somebody else's messages under their ids keep none away.
func TestRemindOnce(t *testing.T) {
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, Tell), "alice", "bob", "lead", "mallory")
	remind := func(betweenTurns bool) {
		t.Helper()
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 2 {
					if err := Remind(context.Background(), team, team.Box("bob"), betweenTurns, nil); err != nil {
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
		for _, body := range teamtest.UnreadOf(t, team, who) {
			if strings.Contains(body, "has not") || strings.Contains(body, "Your answer") {
				n++
			}
		}
		if n != want {
			t.Errorf("%s has %d notices, not %d", who, n, want)
		}
	}
	const many = 5
	for i := range many {
		id := postDue(t, team, "alice", "bob", fmt.Sprint(i))
		notice, reminder := wire.Derive("due-lead", id, team.Box("bob").Address()), wire.Derive("due", id, team.Box("bob").Address())
		teamtest.Post(t, team, "mallory", "lead", "newsletter", func(m *wire.Message) { m.ID = notice })
		teamtest.Post(t, team, "mallory", "lead", "newsletter", func(m *wire.Message) { m.ID = notice.Next() })
		teamtest.Post(t, team, "mallory", "bob", "newsletter", func(m *wire.Message) { m.ID = reminder })
	}
	remind(true)
	count("lead", many)
	count("bob", 0) // reading shows that they are overdue
	teamtest.ReadAll(t, team, "bob")
	remind(false)
	count("bob", 0)
	remind(true)
	count("bob", many)
	count("lead", many)
	if n := overdueAt(t, team, "bob"); n != many {
		t.Errorf("%d are overdue", n)
	}
}

// Only an answer of the recipient counts, in whatever form.
func TestWhatCountsAsAnAnswer(t *testing.T) {
	ctx := context.Background()
	answer := func(from wire.Name, kind string) func(*teamdir.Team, wire.ID) {
		return func(team *teamdir.Team, id wire.ID) {
			m := &wire.Message{
				ID: wire.NewID(), Type: kind, From: team.Box(from).Address(), To: []wire.Address{team.Box("alice").Address()},
				InReplyTo: id, Body: "done", SentAt: time.Now().UTC(),
			}
			maildir.Deliver(ctx, &maildir.Post{Message: m, To: []*maildir.Box{team.Box("alice")}})
		}
	}
	for _, c := range []struct {
		name  string
		do    func(*teamdir.Team, wire.ID)
		with  func(*wire.Message)
		still bool
	}{
		{name: "nothing", do: func(*teamdir.Team, wire.ID) {}, still: true},
		{name: "a reply", do: answer("bob", "")},
		{name: "somebody else's", do: answer("carol", ""), still: true},
		{name: "a notice", do: answer("bob", wire.TypeNotice), still: true},
		{name: "an ack", still: true, do: func(team *teamdir.Team, id wire.ID) {
			it, err := team.Box("bob").Get(id)
			teamtest.Must(t, err)
			_, err = post.Ack(ctx, team.Root(), team.Box("bob"), team.Box("bob"), it.Message, &wire.Message{})
			teamtest.Must(t, err)
		}},
		{name: "who took it has finished", do: func(team *teamdir.Team, id wire.ID) {
			bob := team.Box("bob")
			teamtest.Must(t, claim.Share(bob))
			take(t, bob, "carol")
			it, err := bob.Get(id)
			teamtest.Must(t, err)
			_, err = post.Ack(ctx, team.Root(), team.Box("carol"), bob, it.Message, &wire.Message{})
			teamtest.Must(t, err)
		}},
		{name: "withdrawn", do: func(team *teamdir.Team, id wire.ID) {
			_, err := team.Box("bob").WithdrawRead(ctx, id, team.Box("alice").Address(), nil)
			teamtest.Must(t, err)
		}},
		{name: "superseded", do: func(team *teamdir.Team, id wire.ID) {
			postDue(t, team, "alice", "bob", "better", func(m *wire.Message) { m.Supersedes, m.DueAt = id, time.Time{} })
		}},
		{name: "superseded by somebody else", still: true, do: func(team *teamdir.Team, id wire.ID) {
			postDue(t, team, "carol", "bob", "better", func(m *wire.Message) { m.Supersedes, m.DueAt = id, time.Time{} })
		}},
		{name: "expired", do: func(*teamdir.Team, wire.ID) {}, with: func(m *wire.Message) { m.ExpiresAt = m.DueAt }},
		{name: "from nobody", do: func(*teamdir.Team, wire.ID) {}, with: func(m *wire.Message) { m.From.Agent = "drop" }},
		{name: "the sender has gone", do: func(team *teamdir.Team, id wire.ID) {
			_, err := team.Retire(ctx, "alice")
			teamtest.Must(t, err)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			team := teamtest.NewTeam(t, teamtest.NewRoot(t, Tell), "alice", "bob", "carol", "lead")
			with := c.with
			if with == nil {
				with = func(*wire.Message) {}
			}
			id := postDue(t, team, "alice", "bob", "?", with)
			c.do(team, id)
			for range 2 {
				teamtest.Must(t, Remind(ctx, team, team.Box("bob"), true, nil))
			}
			told := 0
			for _, body := range teamtest.UnreadOf(t, team, "lead") {
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

// If there is no lead, or the lead itself owes the answer, nobody else gets a notice.
func TestOverdueWithoutALead(t *testing.T) {
	ctx := context.Background()
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, Tell), "alice", "bob", "lead")
	postDue(t, team, "bob", "lead", "?")
	teamtest.ReadAll(t, team, "lead")
	for range 2 {
		teamtest.Must(t, Remind(ctx, team, team.Box("lead"), true, nil))
	}
	if got := teamtest.UnreadOf(t, team, "lead"); len(got) != 1 || !strings.Contains(got[0], "Your answer") {
		t.Error(got)
	}
	answers, err := OverdueAnswers(ctx, team)
	if err != nil || len(answers) != 1 || answers[0].Agent != "lead" || !answers[0].Read {
		t.Error(answers, err)
	}
}

// However many answers are overdue, their sender's mail is walked once, and once for what the sender owes itself, after a
// process has looked once what is for later; team.toml is read once.
func TestOverdueCost(t *testing.T) {
	ctx, opened, counts := context.Background(), map[string]int{}, false
	var mu sync.Mutex
	r := teamtest.NewFaultyRoot(t, Tell, func(op, name string) error {
		mu.Lock()
		defer mu.Unlock()
		if counts && op == "open" {
			opened[name]++
		}
		return nil
	})
	team := teamtest.NewTeam(t, r, "alice", "bob")
	once := []string{"main/team.toml"}
	for range 10 {
		postDue(t, team, "alice", "bob", "do it")
		answered := postDue(t, team, "alice", "bob", "do it, too")
		id := teamtest.Post(t, team, "bob", "alice", "done", func(m *wire.Message) { m.InReplyTo = answered })
		once = append(once, "main/alice/inbox/new/"+string(id)+".json")
	}
	counts = true
	answers, err := OverdueAnswers(ctx, team)
	counts = false
	teamtest.Must(t, err)
	if len(answers) != 10 {
		t.Errorf("%d are overdue", len(answers))
	}
	for _, name := range once {
		if opened[name] == 0 || opened[name] > 3 {
			t.Errorf("%s was opened %d times", name, opened[name])
		}
	}
}
