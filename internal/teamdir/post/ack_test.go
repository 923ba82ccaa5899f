package post

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/wire"
)

// A message that is acknowledged while its sender withdraws it stays, and the notice of the withdrawal goes.
func TestWithdrawDuringAck(t *testing.T) {
	ctx := context.Background()
	for _, requiresAck := range []bool{true, false} {
		var ack func()
		r := teamtest.NewFaultyRoot(t, nil, func(op, name string) error {
			if op == "rename" && ack != nil && strings.Contains(name, "bob/inbox/tmp/") {
				ack()
			}
			return nil
		})
		team := teamtest.NewTeam(t, r, "alice", "bob")
		alice, bob := team.Box("alice"), team.Box("bob")
		m := &wire.Message{Body: "work", RequiresAck: requiresAck}
		err := sendTo(team, alice, "bob", m)
		teamtest.Must(t, err)
		teamtest.Must(t, bob.MarkRead(ctx, m.ID))
		ack = func() { // in another process
			done := make(chan error)
			go func() {
				_, err := Ack(ctx, r, bob, bob, m, &wire.Message{})
				done <- err
			}()
			teamtest.Must(t, <-done)
		}
		if state, err := Withdraw(ctx, r, alice, m, bob.Address(), nil); state != "" || err != nil {
			t.Error(requiresAck, state, err)
		}
		if it, err := bob.Get(m.ID); err != nil || it.State != wire.Done {
			t.Error(requiresAck, it.State, err)
		}
		if got := teamtest.UnreadOf(t, team, "bob"); len(got) != 0 {
			t.Error(requiresAck, "told: ", got)
		}
	}
}

// If the sender withdraws a message while it is being acknowledged, one of the two wins.
func TestAckDuringWithdraw(t *testing.T) {
	ctx := context.Background()
	var withdraw func()
	r := teamtest.NewFaultyRoot(t, nil, func(op, name string) error {
		if op == "rename" && withdraw != nil && strings.Contains(name, "alice/inbox/tmp/") {
			withdraw()
		}
		return nil
	})
	team := teamtest.NewTeam(t, r, "alice", "bob")
	alice, bob := team.Box("alice"), team.Box("bob")
	id := teamtest.Post(t, team, "alice", "bob", "work")
	it, err := bob.Get(id)
	teamtest.Must(t, err)
	withdraw = func() {
		if state, err := Withdraw(ctx, r, alice, it.Message, bob.Address(), nil); state != wire.Unread || err != nil {
			t.Error(state, err)
		}
	}
	if _, err := Ack(ctx, r, bob, bob, it.Message, &wire.Message{}); !errors.Is(err, maildir.ErrWithdrawn) {
		t.Error(err)
	}
	if got := teamtest.UnreadOf(t, team, "alice"); len(got) != 0 {
		t.Error("told: ", got)
	}
	if _, err := AckOf(r, it.Message, bob.Address()); err == nil {
		t.Error("it counts as acknowledged")
	}
}

// Of acks that one member gives at the same time, each with another text, none is lost, and the last one counts.
func TestOutcomesAtOnce(t *testing.T) {
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "alice", "bob")
	bob := team.Box("bob")
	m := &wire.Message{Body: "work", RequiresAck: true}
	err := sendTo(team, team.Box("alice"), "bob", m)
	teamtest.Must(t, err)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			ack := &wire.Message{Type: wire.TypeAck, Body: strconv.Itoa(i)}
			ack.SetOutcome(wire.Outcomes[i%len(wire.Outcomes)])
			if _, err := Ack(t.Context(), team.Root(), bob, bob, m, ack); err != nil {
				t.Error(i, err)
			}
		})
	}
	all.Wait()
	acks, err := AcksOf(team.Root(), m, bob.Address())
	teamtest.Must(t, err)
	texts := map[string]bool{}
	for _, ack := range acks {
		texts[ack.Body] = true
	}
	if len(acks) != 8 || len(texts) != 8 {
		t.Errorf("%d acks with the texts %v", len(acks), texts)
	}
	last, err := AckOf(team.Root(), m, bob.Address())
	if err != nil || last.ID != wire.AckID(m.ID, bob.Address(), 7) {
		t.Error(last, err)
	}
}

// Nobody makes others look through any number of acks.
func TestTooManyAcks(t *testing.T) {
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "alice", "bob")
	bob := team.Box("bob")
	m := &wire.Message{Body: "work"}
	err := sendTo(team, team.Box("alice"), "bob", m)
	teamtest.Must(t, err)
	for i := range maxAcks + 1 {
		ack := &wire.Message{Type: wire.TypeAck, Body: strconv.Itoa(i)}
		ack.SetOutcome("blocked")
		if _, err = Ack(t.Context(), team.Root(), bob, bob, m, ack); err != nil {
			break
		}
	}
	if acks, _ := AcksOf(team.Root(), m, bob.Address()); err == nil || len(acks) != maxAcks {
		t.Errorf("%d acks, %v", len(acks), err)
	}
}

// A message that is put back while its owner looks for it is found in the owner's mailbox, not in the sender's.
func TestFindDuringUnread(t *testing.T) {
	var putBack func()
	r := teamtest.NewFaultyRoot(t, nil, func(op, name string) error {
		if op == "list" && putBack != nil && strings.HasSuffix(name, "bob/inbox/cur") {
			now := putBack
			putBack = nil
			now()
		}
		return nil
	})
	team := teamtest.NewTeam(t, r, "alice", "bob")
	bob := team.Box("bob")
	m := &wire.Message{Body: "work", RequiresAck: true}
	err := sendTo(team, team.Box("alice"), "bob", m)
	teamtest.Must(t, err)
	teamtest.Must(t, bob.MarkRead(t.Context(), m.ID))
	putBack = func() { teamtest.Must(t, bob.MarkUnread(t.Context(), m.ID)) }
	if it, box, err := Find(team, bob, m.ID.Short(6)); err != nil || box.Agent() != "bob" || it.State != wire.Unread {
		t.Error(it, box, err)
	}
}

// Several acks flush a file each, and their directory once.
func TestAckAll(t *testing.T) {
	ctx := context.Background()
	var files, directories atomic.Int32
	r := teamtest.NewFaultyRoot(t, nil, func(op, name string) error {
		switch op {
		case "fsync":
			files.Add(1)
		case "fsync directory":
			directories.Add(1)
		}
		return nil
	})
	team := teamtest.NewTeam(t, r, "alice", "bob")
	alice, bob := team.Box("alice"), team.Box("bob")
	var acks []ToAck
	for range 5 {
		m := &wire.Message{Body: "work", RequiresAck: true}
		teamtest.Must(t, sendTo(team, alice, "bob", m))
		acks = append(acks, ToAck{bob, m, &wire.Message{}})
	}
	teamtest.Must(t, bob.MarkRead(ctx, acks[0].Message.ID))
	withdrawn := acks[2].Message
	_, err := Withdraw(ctx, r, alice, withdrawn, bob.Address(), nil)
	teamtest.Must(t, err)
	acks = append(acks, ToAck{bob, acks[0].Message, &wire.Message{}}) // once more
	files.Store(0)
	directories.Store(0)
	for i, done := range AckAll(ctx, r, bob, acks...) {
		if i == 2 {
			if !errors.Is(done.Err, maildir.ErrWithdrawn) {
				t.Errorf("a withdrawn message: %v", done.Err)
			}
		} else if done.Err != nil || done.WasAcked != (i == 5) {
			t.Errorf("message %d: %+v", i, done)
		}
	}
	if files.Load() > 6 || directories.Load() != 1 {
		t.Errorf("%d flushes of files, %d of directories", files.Load(), directories.Load())
	}
	for i, one := range acks {
		if it, err := bob.Get(one.Message.ID); err != nil || i != 2 && it.State != wire.Done {
			t.Errorf("message %d: %v, %v", i, it.State, err)
		}
	}
}

// sendTo sends a message as a command does.
func sendTo(team *teamdir.Team, from *maildir.Box, to wire.Name, m *wire.Message) error {
	o := &Outgoing{From: from, To: []wire.Address{team.Box(to).Address()}, Message: m}
	_, err := Send(context.Background(), team.Root(), o)
	return err
}
