package mailbox

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

// What a backup lists it can read, though it moves meanwhile, and put back
// where it was, once.
func TestListCopyPut(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob", "carol")
	bob, carol := s.Box("bob"), s.Box("carol")
	want := map[wire.ID]State{}
	for i, state := range []State{Unread, Owed, Done, Withdrawn, Unread, Owed} {
		m := message("alice", string(state))
		m.ID, m.RequiresAck = oldID(i), state == Owed
		deliver(t, bob, m)
		var err error
		switch state {
		case Owed, Done:
			_, err = bob.Take(ctx, m.ID)
		case Withdrawn:
			_, err = bob.Withdraw(ctx, m.ID, m.From)
		}
		if err != nil {
			t.Fatal(err)
		}
		want[m.ID] = state
	}
	list, err := bob.List(ctx)
	if err != nil || len(list) != len(want) {
		t.Fatal(list, err)
	}
	for _, e := range list {
		if want[e.ID] != e.State {
			t.Errorf("%s is listed as %s", e.ID, e.State)
		}
	}
	// Everything moves on before it is copied.
	for id, state := range want {
		switch state {
		case Unread, Owed:
			if err := bob.Settle(ctx, id, true); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := bob.GC(ctx, GCOptions{Before: time.Now().AddDate(0, 0, 2)}); err != nil {
		t.Fatal(err)
	}
	for i := range list {
		e := &list[i]
		data, err := bob.Copy(e)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, first := range []bool{true, false} {
			put, err := carol.Put(ctx, want[e.ID], data)
			if err != nil || put != first {
				t.Errorf("put %v, want %v: %v", put, first, err)
			}
		}
		it, err := carol.Get(e.ID)
		if err != nil || it.State != want[e.ID] || it.Body != string(want[e.ID]) {
			t.Errorf("%s came back as %+v: %v", want[e.ID], it, err)
		}
	}
	takeCensus(t, teamPath(s), "carol").sound(t)
	if _, err := bob.Copy(&Entry{ID: wire.NewID()}); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if _, err := carol.Put(ctx, Bad, message("alice", "x").Append(nil)); err == nil {
		t.Error("put back as bad")
	}
	if _, err := carol.Put(ctx, Unread, []byte("{")); err == nil {
		t.Error("a torn message was put back")
	}
}

// A view is the mailbox that was opened, wherever that goes.
func TestView(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	m, read := message("alice", "x"), message("alice", "y")
	deliver(t, bob, m)
	deliver(t, bob, read)
	if _, err := bob.Take(ctx, read.ID); err != nil {
		t.Fatal(err)
	}
	drop(t, bob, "inbox/new", "note", []byte("z"))
	v, err := bob.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	for _, id := range []wire.ID{m.ID, read.ID} {
		if it, err := v.Get(id); err != nil || it.ID != id {
			t.Error(it, err)
		}
	}
	var got []wire.ID
	var foreign []string
	if err := v.Unread(func(id wire.ID) { got = append(got, id) }, func(n string) { foreign = append(foreign, n) }); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, []wire.ID{m.ID}) || !slices.Equal(foreign, []string{"note"}) {
		t.Error(got, foreign)
	}
	if taken, err := bob.TakeInNamed(ctx, foreign...); err != nil || len(taken.Messages) != 1 {
		t.Error(taken, err)
	}
	if _, err := s.Retire(ctx, "bob"); err != nil {
		t.Fatal(err)
	}
	if it, err := v.Get(m.ID); err != nil || it.Body != "x" {
		t.Error(it, err)
	}
	if _, err := bob.Open(); !errors.Is(err, ErrNoAgent) {
		t.Error(err)
	}
}
