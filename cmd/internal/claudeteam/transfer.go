package claudeteam

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// joinGrace is how long a new member gets no mail: Claude Code empties the inbox of a member that it starts.
const joinGrace = 5 * time.Second

// idle is the type of the message with which one of Claude's tells its lead that its turn is over.
const idle = "idle_notification"

// ingest stores the entries of one of our inbox files here, and removes them there. Read entries, which some programs
// keep, stay.
func (s *Sync) ingest(ctx context.Context, m member) error {
	if err := s.createInbox(m); err != nil {
		return err
	}
	list, err := s.readInbox(m)
	stored := map[wire.ID]bool{}
	for i, e := range list {
		if e.Read {
			continue
		}
		if e.bad == nil {
			e.bad = s.store(ctx, m, &e)
		}
		if e.bad != nil {
			left := fmt.Errorf("left entry %d there: %v", i+1, e.bad)
			if e.bad == errNotAMessage {
				left = &FileError{m.inboxFile(), left}
			}
			err = errors.Join(err, left)
		} else {
			stored[s.idOf(&e, m.box.Address())] = true
		}
	}
	if len(stored) == 0 {
		return err
	}
	return errors.Join(err, s.changeInbox(ctx, m, func(list []entry) ([]entry, error) {
		return slices.DeleteFunc(list, func(e entry) bool { return e.bad == nil && !e.Read && stored[s.idOf(&e, m.box.Address())] }), nil
	}))
}

// store durably stores an entry for one of ours. Unknown fields are kept in meta.
func (s *Sync) store(ctx context.Context, m member, e *entry) error {
	kind := e.control().Text("type")
	if kind == idle {
		return s.storeIdle(ctx, e)
	}
	fields, err := wire.ReadObject(e.raw)
	if err != nil {
		return err
	}
	meta := fields.Without("text", "read").With("team", wire.Quote(filepath.Base(s.Dir))).Encode()
	msg := wire.Message{
		ID: s.idOf(e, m.box.Address()), From: wire.Address{Agent: s.nameHere(e.From), Team: s.Team.Name()}, Subject: e.Summary, Body: e.Text, SentAt: e.sentAt,
		Origin: &wire.Origin{Via: "bridge"}, Meta: slices.Concat([]byte(`{"claude":`), meta, []byte("}")),
	}
	if kind != "" {
		msg.Type = "claude_" + kind // Claude's permission_request is not ours
	}
	out, err := m.box.Deliver(ctx, msg)
	for errors.Is(err, mailbox.ErrIDTaken) { // by somebody who knows the entry
		msg.ID = msg.ID.Next()
		out, err = m.box.Deliver(ctx, msg)
	}
	if err == nil && !out.WasDelivered {
		s.Report(Transfer{Kind: "taken_in", ID: msg.ID, From: string(msg.From.Agent), To: string(m.agent()), Title: msg.Title()})
	}
	return err
}

// storeIdle appends an idle notification to its sender's log, with the end of the turn if that was cut short.
func (s *Sync) storeIdle(ctx context.Context, e *entry) error {
	i := slices.IndexFunc(s.theirs, func(m member) bool { return m.name == e.From })
	if i < 0 {
		return nil
	}
	box, status := s.theirs[i].box, e.control().Text("idleReason")
	id := string(s.idOf(e, box.Address()))
	events := []wire.Event{{Kind: wire.TurnIdle, Source: wire.SourceBridge, EventID: id}}
	if status == "interrupted" || status == "failed" {
		end := wire.Event{Kind: wire.TurnCompleted, Source: wire.SourceBridge, EventID: id + ".turn"}
		events = slices.Insert(events, 0, end.With(wire.FieldStatus, status))
	}
	if err := box.Log().Append(ctx, events...); err != nil {
		return err
	}
	if events[len(events)-1].Seq > 0 { // it was new
		s.Report(Transfer{Kind: idle, From: string(box.Address().Agent)})
	}
	return nil
}

// deliver puts the unread mail of one of Claude's into its inbox file. What is in there tells who is idle.
func (s *Sync) deliver(ctx context.Context, m member) error {
	list, _ := s.readInbox(m) // an error is reported when there is something to add
	for _, e := range list {
		if e.bad == nil && !e.Read && e.control().Text("type") == idle {
			s.storeIdle(ctx, &e)
		}
	}
	if age := time.Since(m.joined); age >= 0 && age < joinGrace {
		return nil
	}
	if m.shares != "" {
		var waits error
		for _, err := range m.box.List(ctx) {
			waits = cmp.Or(err, waits, fmt.Errorf("it is the inbox of %s and of %s, so their mail waits here", m.name, m.shares))
		}
		return waits
	}
	var unlogged error
	err := m.box.HandOver(ctx, func(msg *wire.Message, mayBeRepeat bool) error {
		if err := s.changeInbox(ctx, m, s.newEntry(msg, mayBeRepeat).addTo); err != nil {
			return err
		}
		s.Report(Transfer{"handed_over", msg.ID, s.nameThere(msg.From), string(m.agent()), msg.Title(), mayBeRepeat})
		// It will start to work in a moment, and does not say so.
		unknown := wire.Event{Kind: wire.StateChange, Source: wire.SourceBridge}.With(wire.FieldNew, "unknown")
		unlogged = errors.Join(unlogged, m.box.Log().Append(context.WithoutCancel(ctx), unknown))
		return nil
	})
	return errors.Join(err, unlogged)
}

// newEntry makes the entry of a message. Its text starts with the header that our readers see. So Claude Code never takes
// it for a control message, nor for another one, although it tells entries apart by sender, time and text only.
func (s *Sync) newEntry(msg *wire.Message, mayBeRepeat bool) *entry {
	r := &letter.Renderer{Now: time.Now(), Team: s.Team.Name(), Digits: 6}
	body, _ := r.Body(r.Text(msg)+"\n"+string(msg.Payload), 0, 0)
	text := fmt.Sprintf("[atm %s]\n%s%s", r.Header(msg, letter.Flags{Repeat: mayBeRepeat}), body, letter.End)
	return &entry{
		Type: "message", From: s.nameThere(msg.From), Text: text, Timestamp: msg.SentAt.UTC().Format("2006-01-02T15:04:05.000Z"),
		Summary: letter.OneLine(msg.Title(), 80), MsgV: 1, MsgID: string(msg.ID),
	}
}
