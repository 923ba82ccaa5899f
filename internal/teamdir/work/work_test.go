package work

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/wire"
)

// workTeam has the shared inbox jobs, with n messages.
func workTeam(t *testing.T, n int) (team *teamdir.Team, jobs []wire.ID) {
	t.Helper()
	team = teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "alice", "bob", "carol", "jobs")
	teamtest.Must(t, claim.Share(team.Box("jobs")))
	for i := range n {
		jobs = append(jobs, teamtest.Post(t, team, "alice", "jobs", fmt.Sprint("job ", i)))
	}
	return team, jobs
}

func workOf(team *teamdir.Team, name wire.Name) Taker {
	return Taker{Team: team, Agent: name, From: []wire.Name{"jobs"}, Lease: time.Hour}
}

// take has a member look for work, and returns the message that it got a notice of; "": none.
func take(t *testing.T, w Taker) wire.ID {
	t.Helper()
	isTaken, err := w.Take(t.Context())
	teamtest.Must(t, err)
	ids, err := w.Team.Box(w.Agent).UnreadIDs()
	teamtest.Must(t, err)
	for _, id := range ids {
		it, err := w.Team.Box(w.Agent).Get(id)
		teamtest.Must(t, err)
		if work := Of(it.Message); work != "" {
			if !strings.Contains(it.Body, "atm ack "+work.Short(6)+" --done") {
				t.Errorf("%q", it.Body)
			}
			teamtest.Must(t, w.Team.Box(w.Agent).MarkRead(t.Context(), id))
			if !isTaken {
				t.Errorf("a notice of %s, and nothing was taken", work)
			}
			return work
		}
	}
	if isTaken {
		t.Error("taken, and no notice")
	}
	return ""
}

// finish has a member ack what it has taken.
func finish(t *testing.T, team *teamdir.Team, by wire.Name, job wire.ID) {
	t.Helper()
	it, err := team.Box("jobs").Get(job)
	teamtest.Must(t, err)
	ack := &wire.Message{}
	ack.SetOutcome("done")
	_, err = post.Ack(t.Context(), team.Root(), team.Box(by), team.Box("jobs"), it.Message, ack)
	teamtest.Must(t, err)
}

// A member gets one message at a time, after its own mail, and the next one once it has acked that.
func TestWork(t *testing.T) {
	team, jobs := workTeam(t, 3)
	bob, carol := workOf(team, "bob"), workOf(team, "carol")
	teamtest.Post(t, team, "alice", "bob", "own")
	if got := take(t, bob); got != "" {
		t.Errorf("with mail of its own it took %s", got)
	}
	teamtest.ReadAll(t, team, "bob")
	if got := []wire.ID{take(t, bob), take(t, bob), take(t, carol)}; !slices.Equal(got, []wire.ID{jobs[0], "", jobs[1]}) {
		t.Errorf("%q", got)
	}
	finish(t, team, "bob", jobs[0])
	teamtest.Must(t, bob.Look(t.Context(), false))
	if got := take(t, bob); got != jobs[2] {
		t.Errorf("after the ack %q", got)
	}
	if got := take(t, carol); got != "" {
		t.Errorf("without an ack %q", got)
	}
	teamtest.Must(t, carol.GiveBack(t.Context()))
	finish(t, team, "bob", jobs[2])
	if got := take(t, bob); got != jobs[1] {
		t.Errorf("given back, and then %q", got)
	}
	finish(t, team, "bob", jobs[1])
	if got := []wire.ID{take(t, bob), take(t, carol)}; got[0] != "" || got[1] != "" {
		t.Errorf("all is done, but %q", got)
	}
}

// Mail that is kept from a member holds up none of its work.
func TestWorkBesideKeptMail(t *testing.T) {
	team, jobs := workTeam(t, 1)
	teamtest.Must(t, team.Dir().Replace("team.toml", []byte("[members.bob]\nfrom = [\"alice\"]\n"), false))
	teamtest.Post(t, team, "carol", "bob", "kept")
	if got := take(t, workOf(team, "bob")); got != jobs[0] {
		t.Errorf("%q", got)
	}
}

// What is given out again says so, and what its member does not hold any more is not given to it.
func TestWorkAgain(t *testing.T) {
	team, jobs := workTeam(t, 1)
	bob, carol := workOf(team, "bob"), workOf(team, "carol")
	_, err := bob.Take(t.Context()) // which its program does not read
	teamtest.Must(t, err)
	teamtest.Must(t, bob.GiveBack(t.Context()))
	if ids, _ := team.Box("bob").UnreadIDs(); len(ids) != 0 {
		t.Errorf("bob still gets %q", ids)
	}
	_, err = carol.Take(t.Context())
	teamtest.Must(t, err)
	ids, err := team.Box("carol").UnreadIDs()
	teamtest.Must(t, err)
	it, err := team.Box("carol").Get(ids[0])
	teamtest.Must(t, err)
	if Of(it.Message) != jobs[0] || !strings.Contains(it.Body, "It was given out before") || !strings.Contains(it.Body, "given out once before") {
		t.Errorf("%q", it.Body)
	}
}

// What a member is just being given it keeps.
func TestWorkBeingTyped(t *testing.T) {
	team, jobs := workTeam(t, 1)
	bob := workOf(team, "bob")
	_, err := bob.Take(t.Context())
	teamtest.Must(t, err)
	runner, err := claim.HoldRunner(t.Context(), team.Store, "bob")
	teamtest.Must(t, err)
	defer runner.Release()
	ids, err := team.Box("bob").UnreadIDs()
	teamtest.Must(t, err)
	_, err = runner.Claim(t.Context(), ids)
	teamtest.Must(t, err)
	teamtest.Must(t, bob.GiveBack(t.Context()))
	if got := take(t, workOf(team, "carol")); got != "" {
		t.Errorf("carol got it as well: %s", got)
	}
	finish(t, team, "bob", jobs[0])
}

// Of several processes that look for several members at once each gets one, and no message is given to two.
func TestWorkAtOnce(t *testing.T) {
	team, jobs := workTeam(t, 8)
	var wg sync.WaitGroup
	for range 3 {
		for _, name := range []wire.Name{"alice", "bob", "carol"} {
			other, err := teamdir.Open(team.Root().Path, nil)
			teamtest.Must(t, err)
			t.Cleanup(func() { other.Close() })
			again, err := other.Team("main")
			teamtest.Must(t, err)
			wg.Go(func() {
				for range 5 {
					if _, err := workOf(again, name).Take(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	taken := map[wire.ID]int{}
	for _, name := range []wire.Name{"alice", "bob", "carol"} {
		held, err := workOf(team, name).held()
		teamtest.Must(t, err)
		ids, err := team.Box(name).UnreadIDs()
		teamtest.Must(t, err)
		if len(held) != 1 || len(ids) != 1 {
			t.Errorf("%s holds %d, and has %d notices", name, len(held), len(ids))
		}
		for id := range held {
			taken[id]++
		}
	}
	if len(taken) != 3 {
		t.Errorf("%v of %q", taken, jobs)
	}
}

// A process that is killed while it takes or gives back loses nothing: the message is given out by whoever looks after the
// lease.
func TestWorkKilled(t *testing.T) {
	killed := errors.New("killed")
	for _, name := range []string{"take", "give back"} {
		points := 0
		for isOver := false; !isOver; points++ {
			team, jobs := workTeam(t, 1)
			if name == "give back" {
				take(t, workOf(team, "bob"))
			}
			left := points
			var mu sync.Mutex
			fault := func(op, name string) error {
				mu.Lock()
				defer mu.Unlock()
				if left--; left < 0 {
					return killed
				}
				return nil
			}
			dying, err := teamdir.OpenFound(rootdir.Found{Path: team.Root().Path, Source: rootdir.FromFlag, Fault: fault}, nil)
			teamtest.Must(t, err)
			if dead, err := dying.Team("main"); err == nil {
				if name == "take" {
					workOf(dead, "bob").Take(t.Context())
				} else {
					workOf(dead, "bob").GiveBack(t.Context())
				}
			}
			isOver = left >= 0
			dying.Close()

			teamtest.Must(t, workOf(team, "bob").GiveBack(t.Context())) // as the next runner does
			if got := take(t, workOf(team, "carol")); got != jobs[0] {
				t.Fatalf("%s, killed at %d: carol got %q", name, points, got)
			}
			if got := take(t, workOf(team, "bob")); got != "" {
				t.Fatalf("%s, killed at %d: bob got %q", name, points, got)
			}
		}
		t.Logf("%s: killed at %d operations", name, points)
	}
}
