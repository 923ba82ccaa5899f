package mailbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
)

// hand makes a call of a session's hook that takes mail, at a moment.
func hand(t testing.TB, b *Box, session, name string, now time.Time) *Handover {
	t.Helper()
	return meets(t, b, HookCall{Session: session, Name: name, Shows: true, Want: true, Now: now})
}

func meets(t testing.TB, b *Box, call HookCall) *Handover {
	t.Helper()
	h, err := b.HandOver(ctx, call, ReadOptions{Limit: 20})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// out lets the answer go out.
func out(t testing.TB, h *Handover) *Handover {
	t.Helper()
	announced, err := h.Out(ctx)
	if err != nil || len(announced) != len(h.Items) {
		t.Fatal(announced, err)
	}
	return h
}

func handed(t testing.TB, h *Handover, again bool, ids ...wire.ID) {
	t.Helper()
	if got := idsOf(h.Items); !slices.Equal(got, ids) {
		t.Errorf("handed over %v, not %v", got, ids)
	}
	for _, id := range ids {
		if h.Again[id] != again {
			t.Errorf("%s may be a repeat: %v", id, h.Again[id])
		}
	}
}

func claimsIn(t testing.TB, b *Box) []claim {
	t.Helper()
	r, err := b.enter()
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	all, err := r.claims()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func claimFileOf(b *Box) string { return filepath.Join(b.Path(), runDir, claimFile) }

func writeClaim(t testing.TB, b *Box, text string) {
	t.Helper()
	os.MkdirAll(filepath.Dir(claimFileOf(b)), 0o700)
	if err := os.WriteFile(claimFileOf(b), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run holds the runner's lock, as a runner does.
func runs(t testing.TB, s *Store, agent string) *lockfile.Lock {
	t.Helper()
	l, err := s.locks.Try(agent+".runner", lockfile.Exclusive, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// What a hook hands over stays unread until the session's next call.
func TestHandOver(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	now := time.Now()
	list := deliverN(t, bob, 2)
	ack := message("alice", "with ack")
	ack.RequiresAck = true
	deliver(t, bob, ack)
	list = append(list, ack.ID)

	h := out(t, hand(t, bob, "s1", "prompt 1", now))
	handed(t, h, false, list...)
	if c := takeCensus(t, teamPath(s), "bob"); c.place(list[0]) != placeNew {
		t.Error("moved before anything showed that it was taken")
	}
	var file struct {
		IDs     []wire.ID `json:"ids"`
		At      time.Time `json:"at"`
		Session string    `json:"session"`
	}
	data, _ := os.ReadFile(claimFileOf(bob))
	if err := json.Unmarshal(data, &file); err != nil || !slices.Equal(file.IDs, list) || !file.At.Equal(now) || file.Session != "s1" {
		t.Errorf("%s: %v", data, err)
	}

	h = hand(t, bob, "s1", "tool 1", now.Add(time.Second))
	handed(t, h, false)
	if len(h.Settled) != 3 || h.Settled[0].Field("batch") == "" || h.Settled[0].Field("batch") != h.Settled[2].Field("batch") ||
		h.Settled[0].Kind != wire.EventRead || h.Settled[0].Session != "s1" || h.Settled[0].Source != "hook" {
		t.Error(h.Settled)
	}
	c := takeCensus(t, teamPath(s), "bob")
	if c.place(list[0]) != placeDone || c.place(list[1]) != placeDone || c.place(ack.ID) != placeCur {
		t.Error(c.places)
	}
	if _, err := os.Stat(claimFileOf(bob)); !os.IsNotExist(err) {
		t.Error("a claim of nothing is left: ", err)
	}
	if err := bob.Append(ctx, AppendOptions{}, h.Settled...); err != nil {
		t.Fatal(err)
	}
	if last, err := bob.LastBatch(); err != nil || len(last) != 3 {
		t.Error(last, err)
	}
}

// The same call made twice, as by hooks that are installed twice, hands each
// message over once, and is no sign of having taken it.
func TestSameCallTwice(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	now := time.Now()
	list := deliverN(t, bob, 1)
	for _, loose := range []bool{false, true} {
		call := HookCall{Session: "s1", Name: fmt.Sprint("stop ", loose), Loose: loose, Shows: true, Want: true, Now: now}
		first, second := meets(t, bob, call), meets(t, bob, call)
		handed(t, first, false, list...)
		handed(t, second, false)
		if first.Goes || !second.Goes || len(second.Settled) > 0 {
			t.Error("the second does not know of the first")
		}
		out(t, first)
		later := call
		later.Now = now.Add(time.Minute)
		third := meets(t, bob, later)
		if loose != (len(third.Settled) == 1) {
			t.Errorf("loose %v: a minute later it is the same call: %v", loose, third.Settled)
		}
		if loose == third.Goes {
			t.Errorf("loose %v: goes %v", loose, third.Goes)
		}
		if !loose { // for the next round
			h := hand(t, bob, "s1", "other", now)
			if len(h.Settled) != 1 {
				t.Fatal(h.Settled)
			}
			list = deliverN(t, bob, 1)
		}
	}
}

// Who is at work at the same time gets each message once.
func TestHandOverAtOnce(t *testing.T) {
	t.Parallel()
	path := scratch(t)
	s := openStore(t, path, nil, "bob")
	list := deliverN(t, s.Box("bob"), 50)
	var mu sync.Mutex
	got := map[wire.ID]int{}
	var all sync.WaitGroup
	now := time.Now()
	for i := range 8 {
		b := openStore(t, path, nil).Box("bob")
		all.Go(func() {
			for n := range 5 {
				h := hand(t, b, fmt.Sprint("s", i%3), fmt.Sprint("call ", n, i%2), now)
				mu.Lock()
				for _, it := range h.Items {
					got[it.ID]++
				}
				mu.Unlock()
				out(t, h)
			}
		})
	}
	all.Wait()
	for _, id := range list {
		if got[id] != 1 {
			t.Errorf("%s went out %d times", id, got[id])
		}
	}
}

// Offered once more when nothing showed that it was taken, and then left.
func TestHandedOverInVain(t *testing.T) {
	t.Parallel()
	for about, lapse := range map[string]func(t *testing.T, bob *Box, session string, now time.Time) time.Time{
		"ten minutes": func(t *testing.T, bob *Box, session string, now time.Time) time.Time {
			before := hand(t, bob, "other", "look", now.Add(9*time.Minute))
			handed(t, before, false)
			return now.Add(11 * time.Minute)
		},
		"the session's end": func(t *testing.T, bob *Box, session string, now time.Time) time.Time {
			h := meets(t, bob, HookCall{Session: session, Name: "end", Ends: true, Now: now})
			if len(h.Settled) > 0 {
				t.Error("an end is no sign")
			}
			return now.Add(time.Second)
		},
		"it begins anew": func(t *testing.T, bob *Box, session string, now time.Time) time.Time {
			h := meets(t, bob, HookCall{Session: session, Name: "start", Begins: true, Now: now})
			if len(h.Settled) > 0 {
				t.Error("a resumed session is no sign")
			}
			return now.Add(time.Second)
		},
	} {
		t.Run(about, func(t *testing.T) {
			s := openStore(t, scratch(t), nil, "bob")
			bob := s.Box("bob")
			list := deliverN(t, bob, 1)
			now := time.Now()
			handed(t, out(t, hand(t, bob, "s1", "1", now)), false, list...)
			now = lapse(t, bob, "s1", now)
			list = append(list, deliverN(t, bob, 1)...)
			h := out(t, hand(t, bob, "s2", "2", now))
			if !slices.Equal(idsOf(h.Items), list) || !h.Again[list[0]] || h.Again[list[1]] {
				t.Error(idsOf(h.Items), h.Again)
			}
			now = lapse(t, bob, "s2", now)
			h = out(t, hand(t, bob, "s3", "3", now))
			handed(t, h, true, list[1])
			if h.Left != 1 {
				t.Errorf("%d are left", h.Left)
			}
			now = lapse(t, bob, "s3", now)
			h = hand(t, bob, "s4", "4", now)
			handed(t, h, false)
			if h.Left != 2 {
				t.Errorf("%d are left", h.Left)
			}
			// Nothing is lost: who reads sees them.
			if b, err := bob.Read(ctx, ReadOptions{}, takeAll); err != nil || len(b.Items) != 2 {
				t.Error(b, err)
			}
			if h = hand(t, bob, "s5", "5", now); h.Left != 0 || len(h.Items) != 0 {
				t.Error(h)
			}
		})
	}
}

// Killed between the claim and the answer, or between the answer and the note
// that it is out: never lost, and shown once too often at most.
func TestHandOverKilled(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	list := deliverN(t, bob, 1)
	now := time.Now()
	handed(t, hand(t, bob, "s1", "1", now), false, list...) // and killed
	// A parallel call must not take it for shown, nor show it.
	h := hand(t, bob, "s1", "2", now.Add(time.Second))
	handed(t, h, false)
	if len(h.Settled) > 0 || takeCensus(t, teamPath(s), "bob").place(list[0]) != placeNew {
		t.Error("moved, and nothing went out")
	}
	h = hand(t, bob, "s1", "3", now.Add(time.Minute))
	handed(t, h, true, list...)
	out(t, h)
	if h = hand(t, bob, "s1", "4", now.Add(time.Minute)); len(h.Settled) != 1 {
		t.Error(h.Settled)
	}
}

// An answer that could not be written was none.
func TestHandOverBack(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	list := deliverN(t, bob, 1)
	now := time.Now()
	h := hand(t, bob, "s1", "1", now)
	if err := h.Back(ctx); err != nil || len(claimsIn(t, bob)) > 0 {
		t.Fatal(err, claimsIn(t, bob))
	}
	handed(t, out(t, hand(t, bob, "s1", "2", now)), false, list...)
	meets(t, bob, HookCall{Session: "s1", Name: "end", Ends: true, Now: now})
	h = hand(t, bob, "s2", "3", now)
	handed(t, h, true, list...)
	if err := h.Back(ctx); err != nil {
		t.Fatal(err)
	}
	handed(t, hand(t, bob, "s2", "4", now), true, list...)
}

// Calls of another session, or of which nothing follows, move nothing.
func TestNoSign(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	deliverN(t, bob, 1)
	now := time.Now()
	out(t, hand(t, bob, "s1", "1", now))
	for _, call := range []HookCall{
		{Session: "s2", Name: "other", Shows: true, Want: true, Now: now},
		{Session: "s1", Name: "2", Now: now},
		{Session: "s1", Name: "1", Shows: true, Want: true, Now: now},
	} {
		h := meets(t, bob, call)
		if len(h.Settled)+len(h.Items) > 0 {
			t.Error(call, h)
		}
	}
	// Not even after a long time, if it is the same session's: it lives.
	if h := hand(t, bob, "s1", "2", now.Add(time.Hour)); len(h.Settled) != 1 {
		t.Error(h)
	}
}

// What a runner types is passed over by readers and hooks, and cannot be
// withdrawn, as long as the runner lives.
func TestRunnersClaim(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	list := deliverN(t, bob, 2)
	writeClaim(t, bob, fmt.Sprintf(`{"ids":[%q],"at":%q,"by":"a runner"}`, list[0], time.Now().UTC().Format(time.RFC3339Nano)))
	runner := runs(t, s, "bob")
	if b, err := bob.Read(ctx, ReadOptions{}, func(b Batch) (int, error) { return 0, nil }); err != nil || !slices.Equal(idsOf(b.Items), list[1:]) {
		t.Error(idsOf(b.Items), err)
	}
	now := time.Now()
	handed(t, out(t, hand(t, bob, "s1", "1", now)), false, list[1])
	if all := claimsIn(t, bob); len(all) != 2 || all[0].Session != "" || all[0].IDs[0] != list[0] {
		t.Error("the runner's claim was touched: ", all)
	}
	if _, err := bob.Withdraw(ctx, list[0], wire.Address{Agent: "alice", Team: "main"}); !errors.Is(err, ErrBeingTyped) {
		t.Error(err)
	}
	runner.Unlock()
	h := hand(t, bob, "s1", "2", now.Add(time.Second))
	handed(t, h, true, list[0])
	if len(h.Settled) != 1 {
		t.Error(h.Settled)
	}
	if state, err := bob.Withdraw(ctx, list[0], wire.Address{Agent: "alice", Team: "main"}); err != nil || state != Owed {
		t.Errorf("its reader is not told: %s, %v", state, err)
	}
}

// A reader shows what is handed over and not yet moved, and settles it.
func TestReadOfWhatWasHandedOver(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	list := deliverN(t, bob, 1)
	now := time.Now()
	out(t, hand(t, bob, "s1", "1", now))
	if b, err := bob.Read(ctx, ReadOptions{}, takeAll); err != nil || !slices.Equal(idsOf(b.Items), list) {
		t.Error(b, err)
	}
	if h := hand(t, bob, "s1", "2", now); len(h.Settled)+len(h.Items) > 0 || len(claimsIn(t, bob)) > 0 {
		t.Error(h, claimsIn(t, bob))
	}
}

// What was dropped goes out as well, and what is not worth an answer does not.
func TestHandOverChooses(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	drop(t, bob, "inbox", "note", []byte("dropped"))
	drop(t, bob, "inbox/new", "other", []byte("dropped too"))
	now := time.Now()
	call := HookCall{Session: "s1", Name: "stop", Shows: true, Want: true, Now: now, Worth: func(Batch) bool { return false }}
	if h := meets(t, bob, call); len(h.Items) != 0 || h.More != 2 || len(claimsIn(t, bob)) > 0 {
		t.Error(h, claimsIn(t, bob))
	}
	call.Worth = nil
	if h := meets(t, bob, call); len(h.Items) != 2 {
		t.Error(h.Items)
	}
}

// Whatever lies there as a claim: nothing is lost by it.
func TestBrokenClaims(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	list := deliverN(t, bob, 1)
	for _, text := range []string{
		"", "{", "[]", `"x"`, `{"ids":"x"}`, `{"ids":[1]}`, `{"ids":["../../x"],"at":"2026-01-01T00:00:00Z"}`, `{"ids":["` + string(list[0]) + `"],"at":"yesterday"}`,
		`{"others":[{"ids":["nobody"]}]}`, strings.Repeat("[", 1<<16),
	} {
		writeClaim(t, bob, text)
		h := hand(t, bob, "s1", "1", time.Now())
		handed(t, h, false, list...)
		h.Back(ctx)
	}
	// Handed over long ago, by whoever wrote that.
	writeClaim(t, bob, `{"ids":["`+string(list[0])+`"],"session":"old"}`)
	handed(t, hand(t, bob, "s1", "1", time.Now()), true, list...)
}

// Without mail, and without a claim, a call takes no lock and makes nothing.
func TestHandOverTouchesNothing(t *testing.T) {
	t.Parallel()
	path := scratch(t)
	var mu sync.Mutex
	var made []string
	s := openStore(t, path, func(op atomicfile.Op, name string) error {
		switch op {
		case atomicfile.OpOpen, atomicfile.OpList, atomicfile.OpRead:
		default:
			mu.Lock()
			made = append(made, string(op)+" "+name)
			mu.Unlock()
		}
		return nil
	}, "bob")
	bob := s.Box("bob")
	made = nil
	held, err := s.locks.Try("bob.reader", lockfile.Exclusive, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Unlock()
	for _, call := range []HookCall{{Session: "s", Name: "1", Shows: true, Want: true}, {Session: "s", Ends: true}, {Session: "s", Begins: true}} {
		call.Now = time.Now()
		meets(t, bob, call)
	}
	if len(made) > 0 {
		t.Error(made)
	}
}

func TestAdopt(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	if bob.Adopted("ses_1") {
		t.Error("adopted before")
	}
	for i := range maxChildren + 10 {
		for range 2 {
			if err := bob.Adopt(ctx, fmt.Sprint("ses_", i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !bob.Adopted(fmt.Sprint("ses_", maxChildren+9)) || bob.Adopted("ses_1") || bob.Adopted("") {
		t.Error("the newest are kept, and no others")
	}
}
