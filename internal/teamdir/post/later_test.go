package post

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/wire"
)

// sendLater has alice write a message that is due after a while; a negative one: it has been for so long.
func sendLater(t *testing.T, team *teamdir.Team, in time.Duration, body string, to ...wire.Name) (*Outgoing, Later) {
	t.Helper()
	o := &Outgoing{From: team.Box("alice"), Message: &wire.Message{Body: body}}
	for _, name := range to {
		o.To = append(o.To, team.Box(name).Address())
	}
	sent, err := SendLater(t.Context(), team.Root(), o, time.Now().Add(in))
	teamtest.Must(t, err)
	return o, *sent.Later
}

// bodiesOf returns the bodies of all that a member has received, sorted.
func bodiesOf(t *testing.T, team *teamdir.Team, name wire.Name) (out []string) {
	t.Helper()
	_, err := inbox.Walk(t.Context(), team.Box(name), maildir.Range{Unread: true, Owed: true, Done: true, Withdrawn: true}, func(it *maildir.Item) bool {
		out = append(out, it.Body)
		return true
	})
	teamtest.Must(t, err)
	slices.Sort(out)
	return out
}

func in(t *testing.T, team *teamdir.Team, state maildir.State) int {
	t.Helper()
	all, err := ListLater(team, state)
	teamtest.Must(t, err)
	return len(all)
}

// What cannot spend long on others' mail delivers some of much, the first.
func TestDeliverSome(t *testing.T) {
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "alice", "bob")
	var want []string
	for i := range atOnce + 20 {
		body := fmt.Sprintf("%03d", i)
		sendLater(t, team, time.Duration(i)*time.Second-time.Hour, body, "bob")
		want = append(want, body)
	}
	DeliverSome(t.Context(), team)
	if got := bodiesOf(t, team, "bob"); !slices.Equal(got, want[:atOnce]) {
		t.Errorf("%d messages, %v", len(got), got)
	}
	DeliverSome(t.Context(), team)
	if got := bodiesOf(t, team, "bob"); !slices.Equal(got, want) {
		t.Errorf("%d messages, %v", len(got), got)
	}
}

// While nothing is due, a look is one listing of one directory, with or without a message that waits, and opens nothing.
func TestLaterCost(t *testing.T) {
	var mu sync.Mutex
	var ops []string
	r := teamtest.NewFaultyRoot(t, nil, func(op, name string) error {
		mu.Lock()
		defer mu.Unlock()
		ops = append(ops, op+" "+name)
		return nil
	})
	team := teamtest.NewTeam(t, r, "alice", "bob")
	for range 2 {
		ops = nil
		next, err := DeliverLater(t.Context(), team)
		teamtest.Must(t, err)
		if len(ops) != 1 || ops[0] != "list main/.later" {
			t.Errorf("%q", ops)
		}
		if waits := in(t, team, ToBeSent) > 0; next.IsZero() == waits {
			t.Errorf("the next is due at %s", next)
		}
		sendLater(t, team, time.Hour, "later", "bob")
	}
}

// A process that is killed at any operation, while it sends later, delivers, withdraws or tries again, loses nothing, and
// whoever goes on makes no second message, whether the recipient has read the first or not.
func TestLaterKilled(t *testing.T) {
	killed := errors.New("killed")
	send := func(team *teamdir.Team) error {
		o := &Outgoing{
			From: team.Box("alice"), To: []wire.Address{team.Box("bob").Address(), team.Box("carol").Address()},
			Message: &wire.Message{Body: "once"}, Once: "key", Files: []File{{"a.txt", strings.NewReader("file")}},
		}
		_, err := SendLater(t.Context(), team.Root(), o, time.Now().Add(-time.Second))
		return err
	}
	deliver := func(team *teamdir.Team) error { _, err := DeliverLater(t.Context(), team); return err }
	each := func(state maildir.State, f func(*teamdir.Team, Later) error) func(*teamdir.Team) error {
		return func(team *teamdir.Team) error {
			all, err := ListLater(team, state)
			for _, l := range all {
				err = errors.Join(err, f(team, l))
			}
			return err
		}
	}
	withdraw := each(ToBeSent, func(team *teamdir.Team, l Later) error {
		_, err := WithdrawLater(t.Context(), team.Root(), team.Box("alice").Address(), l.ID)
		return err
	})
	retry := each(Undelivered, func(team *teamdir.Team, l Later) error { return RetryLater(t.Context(), team, l) })
	for _, step := range []struct {
		name       string
		before, do func(*teamdir.Team) error
	}{
		{"send", nil, send},
		{"deliver", send, deliver},
		{"withdraw", send, withdraw},
		{"retry", func(team *teamdir.Team) error {
			teamtest.Must(t, send(team))
			_, err := team.Retire(t.Context(), "carol")
			teamtest.Must(t, err)
			teamtest.Must(t, deliver(team))
			err = keep.Restore(t.Context(), team.Store, "carol")
			return err
		}, retry},
	} {
		points := 0
		for isOver := false; !isOver; points += 3 {
			r := teamtest.NewRoot(t, nil)
			team := teamtest.NewTeam(t, r, "alice", "bob", "carol")
			if step.before != nil {
				teamtest.Must(t, step.before(team))
			}
			left := points
			var mu sync.Mutex
			durable.FailNext(r.Path, func(op, name string) error {
				mu.Lock()
				defer mu.Unlock()
				if left--; left < 0 {
					return killed
				}
				return nil
			})
			dying, err := teamdir.OpenFound(rootdir.Found{Path: r.Path, Source: rootdir.FromFlag}, nil)
			teamtest.Must(t, err)
			if dead, err := dying.Team("main"); err == nil {
				if err = step.do(dead); err != nil && !errors.Is(err, killed) {
					t.Fatal(step.name, points, err)
				}
			}
			isOver = left >= 0
			dying.Close()

			if points%2 == 0 {
				teamtest.ReadAll(t, team, "bob")
			}
			if step.name == "send" {
				teamtest.Must(t, send(team))
			}
			teamtest.Must(t, deliver(team))
			teamtest.Must(t, retry(team))
			teamtest.Must(t, deliver(team))
			want := []string{"once"}
			if in(t, team, maildir.Withdrawn) > 0 {
				want = nil
			}
			for _, name := range []wire.Name{"bob", "carol"} {
				if got := bodiesOf(t, team, name); !slices.Equal(got, want) {
					t.Fatalf("%s, killed at %d: %s has %q", step.name, points, name, got)
				}
			}
			if n := in(t, team, ToBeSent) + in(t, team, Undelivered); n != 0 {
				t.Fatalf("%s, killed at %d: %d still wait", step.name, points, n)
			}
		}
		t.Logf("%s: killed at %d operations", step.name, points)
	}
}

// On a full disk what is due stays, and goes out once there is room.
func TestLaterFullDisk(t *testing.T) {
	isFull := false
	r := teamtest.NewFaultyRoot(t, nil, func(op, name string) error {
		if isFull && (op == "write" || op == "mkdir") {
			return syscall.ENOSPC
		}
		return nil
	})
	team := teamtest.NewTeam(t, r, "alice", "bob")
	sendLater(t, team, -time.Minute, "due", "bob")
	isFull = true
	if _, err := DeliverLater(t.Context(), team); !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
	if n := in(t, team, ToBeSent); n != 1 {
		t.Errorf("%d wait", n)
	}
	isFull = false
	_, err := DeliverLater(t.Context(), team)
	teamtest.Must(t, err)
	if got := bodiesOf(t, team, "bob"); len(got) != 1 {
		t.Errorf("bob has %q", got)
	}
}

// What is no message is set aside, also what says that it is from somebody else, and the others go out.
func TestLaterHostile(t *testing.T) {
	r := teamtest.NewRoot(t, nil)
	team := teamtest.NewTeam(t, r, "alice", "bob")
	sendLater(t, team, -time.Minute, "good", "bob")
	dir := team.Dir().Join(teamdir.LaterDir)
	put := func(from wire.Name, at time.Time, content string) Later {
		l := Later{At: at.Truncate(time.Millisecond), From: from, ID: wire.NewID(), State: ToBeSent}
		teamtest.Must(t, os.WriteFile(team.Dir().Join(l.file()), []byte(strings.ReplaceAll(content, "ID", string(l.ID))), 0o600))
		return l
	}
	past := time.Now().Add(-time.Hour)
	put("alice", past, "")
	put("alice", past, `{"id":"ID"`)
	put("bob", past, `{"id":"ID","from":"alice@main","to":["bob@main"],"body":"not bob's"}`)
	put("alice", past, `{"id":"ID","from":"alice@main","to":[],"body":"to nobody"}`)
	put("alice", past, `{"id":"`+string(wire.NewID())+`","from":"alice@main","to":["bob@main"],"body":"another"}`)
	link := put("alice", past, "")
	teamtest.Must(t, os.Remove(team.Dir().Join(link.file())))
	teamtest.Must(t, os.Symlink("/etc/passwd", team.Dir().Join(link.file())))
	teamtest.Must(t, os.Mkdir(team.Dir().Join(put("alice", past, "").file())+"x", 0o700))
	teamtest.Must(t, os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("stray"), 0o600))
	for range 2 {
		_, err := DeliverLater(t.Context(), team)
		teamtest.Must(t, err)
	}
	if got := bodiesOf(t, team, "bob"); !slices.Equal(got, []string{"good"}) {
		t.Errorf("bob has %q", got)
	}
	bad, err := ListLater(team, Undelivered)
	teamtest.Must(t, err)
	if len(bad) != 7 || in(t, team, ToBeSent) != 0 {
		t.Errorf("%d are set aside, %d wait", len(bad), in(t, team, ToBeSent))
	}
	for _, l := range bad {
		if why := LaterReason(team, l); why == "" || strings.HasPrefix(why, "no reason") {
			t.Errorf("%s: %q", l.name(), why)
		}
	}
	if stray := LaterStray(team); len(stray) != 2 {
		t.Errorf("%q", stray)
	}
}

// Only its sender withdraws what is to be sent.
func TestLaterOfAnother(t *testing.T) {
	r := teamtest.NewRoot(t, nil)
	team := teamtest.NewTeam(t, r, "alice", "bob")
	_, l := sendLater(t, team, time.Hour, "mine", "bob")
	was, err := WithdrawLater(t.Context(), r, team.Box("bob").Address(), l.ID)
	if was != nil || err != nil || in(t, team, ToBeSent) != 1 {
		t.Errorf("bob has withdrawn %v: %v", was, err)
	}
	was, err = WithdrawLater(t.Context(), r, team.Box("alice").Address(), l.ID)
	if was == nil || err != nil || in(t, team, ToBeSent) != 0 {
		t.Errorf("alice has withdrawn %v: %v", was, err)
	}
}

// Who was retired by then does not get it, the others do, and the sender is told once. When it is tried again nobody gets
// it twice.
func TestLaterRetired(t *testing.T) {
	r := teamtest.NewRoot(t, nil)
	team := teamtest.NewTeam(t, r, "alice", "bob", "carol")
	_, l := sendLater(t, team, -time.Minute, "due", "bob", "carol")
	_, err := team.Retire(t.Context(), "carol")
	teamtest.Must(t, err)
	for range 2 {
		_, err := DeliverLater(t.Context(), team)
		teamtest.Must(t, err)
		l.State = Undelivered
		if why := LaterReason(team, l); why != `no agent "carol" in team "main"` {
			t.Errorf("%q", why)
		}
		if got := bodiesOf(t, team, "bob"); len(got) != 1 {
			t.Errorf("bob has %q", got)
		}
		if got := bodiesOf(t, team, "alice"); len(got) != 1 || !strings.Contains(got[0], `was not delivered: no agent "carol"`) {
			t.Errorf("alice has %q", got)
		}
	}
	err = keep.Restore(t.Context(), team.Store, "carol")
	teamtest.Must(t, err)
	teamtest.ReadAll(t, team, "bob")
	teamtest.Must(t, RetryLater(t.Context(), team, l))
	for _, name := range []wire.Name{"bob", "carol"} {
		if got := bodiesOf(t, team, name); !slices.Equal(got, []string{"due"}) {
			t.Errorf("%s has %q", name, got)
		}
	}
	if in(t, team, ToBeSent)+in(t, team, Undelivered) != 0 {
		t.Error("it is still there")
	}
}

// Of several processes that look at once, and of some that withdraw at that moment, each message has one outcome.
func TestLaterAtOnce(t *testing.T) {
	r := teamtest.NewRoot(t, nil)
	team := teamtest.NewTeam(t, r, "alice", "bob")
	var all []Later
	for i := range 30 {
		_, l := sendLater(t, team, -time.Minute, fmt.Sprint(i), "bob")
		all = append(all, l)
	}
	var wg sync.WaitGroup
	for range 4 {
		other, err := teamdir.Open(r.Path, nil)
		teamtest.Must(t, err)
		t.Cleanup(func() { other.Close() })
		again, err := other.Team("main")
		teamtest.Must(t, err)
		wg.Go(func() {
			for left := all; len(left) > 0; left, _ = ListLater(again, ToBeSent) {
				if _, err := DeliverLater(t.Context(), again); err != nil {
					t.Error(err)
					return
				}
			}
		})
		wg.Go(func() {
			for _, l := range all {
				for isHeld := true; isHeld; { // by the other seven, which take turns
					_, err := WithdrawLater(t.Context(), other, team.Box("alice").Address(), l.ID)
					if _, isHeld = errors.AsType[*lockfile.HeldError](err); err != nil && !isHeld {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	withdrawn, delivered := in(t, team, maildir.Withdrawn), len(bodiesOf(t, team, "bob"))
	if withdrawn+delivered != len(all) || in(t, team, ToBeSent) != 0 {
		t.Errorf("%d withdrawn, %d delivered", withdrawn, delivered)
	}
}
