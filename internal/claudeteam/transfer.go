package claudeteam

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

// joinGrace is how long a new member gets no mail: Claude Code empties the inbox of a member that it starts.
const joinGrace = 5 * time.Second

// idle is the type of the message with which one of Claude's tells its lead that its turn is over.
const idle = "idle_notification"

// createInbox makes the member's inbox file if there is none.
func (s *Sync) createInbox(m member) error {
	err := s.create(m.inboxFile(), []byte("[]"), 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// changeInbox rewrites an inbox file; if f returns nil, the file stays as it is.
func (s *Sync) changeInbox(ctx context.Context, m member, f func(list []entry) ([]entry, error)) error {
	if err := s.createInbox(m); err != nil {
		return err
	}
	return s.rewrite(ctx, m.inboxFile(), func(old []byte) ([]byte, error) {
		list, err := decodeInbox(old)
		if err == nil {
			list, err = f(list)
		}
		if list == nil || err != nil {
			return nil, err
		}
		return encodeInbox(list)
	})
}

// ingest stores the entries of one of our inbox files here, and removes them there. Read entries, which some programs
// keep, stay.
func (s *Sync) ingest(ctx context.Context, m member) error {
	list, err := s.readInbox(m.inboxFile())
	stored := map[wire.ID]bool{}
	for i, e := range list {
		entryErr := e.bad
		if entryErr == nil && !e.Read {
			if entryErr = s.store(ctx, m, &e); entryErr == nil {
				stored[s.idOf(&e, m.box)] = true
			}
		}
		if entryErr != nil {
			err = errors.Join(err, fmt.Errorf("left entry %d there: %w", i+1, entryErr))
		}
	}
	if len(stored) > 0 {
		err = errors.Join(err, s.changeInbox(ctx, m, func(list []entry) ([]entry, error) {
			return slices.DeleteFunc(list, func(e entry) bool {
				return e.bad == nil && !e.Read && stored[s.idOf(&e, m.box)]
			}), nil
		}))
	}
	return err
}

// store durably stores an entry for one of ours. Unknown fields are kept in meta.
func (s *Sync) store(ctx context.Context, m member, e *entry) error {
	kind := controlMessage(e.Text).Text("type")
	if kind == idle {
		return s.storeIdle(ctx, e)
	}
	fields, err := wire.ReadObject(e.raw)
	if err != nil {
		return err
	}
	fields = slices.DeleteFunc(fields, func(f wire.Member) bool { return f.Name == "text" || f.Name == "read" })
	meta := fields.With("team", wire.Quote(filepath.Base(s.Dir))).Encode()
	msg := &wire.Message{
		ID: s.idOf(e, m.box), From: wire.Address{Agent: s.nameHere(e.From), Team: s.Team.Name},
		To: []wire.Address{m.box.Address()}, Subject: e.Summary, Body: e.Text, SentAt: e.sentAt(),
		Origin: &wire.Origin{Via: "bridge"}, Meta: slices.Concat([]byte(`{"claude":`), meta, []byte("}")),
	}
	if kind != "" {
		msg.Type = "claude_" + kind // Claude's permission_request is not ours
	}
	post := &mailbox.Post{Message: msg, To: []*mailbox.Box{m.box}, Given: true}
	if from := s.Team.Box(msg.From.Agent); from.Exists() {
		post.Sender = from
	}
	mailbox.Deliver(ctx, post)
	out := post.Outcomes[0]
	if out.Err == nil && !out.AlreadyStored {
		s.Report(Transfer{Kind: "taken_in", ID: msg.ID, From: string(msg.From.Agent), To: string(m.box.Agent()), Title: msg.Title()})
	}
	if _, isContent := errors.AsType[*mailbox.ContentError](out.Err); isContent {
		return errors.New(out.Err.Error()) // untyped: the hint for it is about a command line
	}
	return out.Err
}

// recordIdle looks for idle notifications in the inbox of one of Claude's. It reports no errors: deliver does, when it
// has something to add to the file.
func (s *Sync) recordIdle(ctx context.Context, m member) {
	list, _ := s.readInbox(m.inboxFile())
	for _, e := range list {
		if e.bad == nil && !e.Read && controlMessage(e.Text).Text("type") == idle {
			s.storeIdle(ctx, &e)
		}
	}
}

// storeIdle appends an idle notification to its sender's log, with the end of the turn if that was cut short.
func (s *Sync) storeIdle(ctx context.Context, e *entry) error {
	i := slices.IndexFunc(s.theirs, func(m member) bool { return m.name == e.From })
	if i < 0 {
		return nil
	}
	box, status := s.theirs[i].box, controlMessage(e.Text).Text("idleReason")
	id := string(s.idOf(e, box))
	events := []wire.Event{{Kind: wire.TurnIdle, Source: "bridge", EventID: id}}
	if status == "interrupted" || status == "failed" {
		end := wire.Event{Kind: wire.TurnCompleted, Source: "bridge", EventID: id + ".turn"}
		events = slices.Insert(events, 0, end.With("status", status))
	}
	if err := box.Log().Append(ctx, events...); err != nil {
		return err
	}
	if events[len(events)-1].Seq > 0 { // it was new
		s.Report(Transfer{Kind: idle, From: string(box.Agent())})
	}
	return nil
}

// deliver puts the unread mail of one of Claude's into its inbox file.
func (s *Sync) deliver(ctx context.Context, m member) error {
	n, err := m.box.Count(ctx)
	if err == nil && n.Unread == 0 && n.Leased > 0 {
		err = errors.New("another sync is delivering its mail, or was killed less than ten seconds ago")
	}
	if err != nil || n.Unread == 0 {
		return err
	}
	if age := time.Since(m.joined); age >= 0 && age < joinGrace {
		return fmt.Errorf("%s has just joined: its mail goes out after %s", m.name, joinGrace)
	}
	for {
		it, err := m.box.Lease(ctx, m.box.Address(), 10*time.Second, mailbox.ReadOptions{Current: true}, func(it *mailbox.Item, _ mailbox.Lease) (bool, error) {
			e := s.newEntry(m, it)
			err := s.changeInbox(ctx, m, e.addTo)
			return err == nil, err
		})
		if it == nil || err != nil {
			return err
		}
		done := context.WithoutCancel(ctx)
		// It will start to work in a moment, and does not say so.
		unknown := wire.Event{Kind: "state_change", Source: "bridge"}.With("new", "unknown")
		if err = errors.Join(m.box.MarkRead(done, it.ID), m.box.Log().Append(done, unknown)); err != nil {
			return err
		}
		s.Report(Transfer{"handed_over", it.ID, s.nameThere(it.From), string(m.box.Agent()), it.Title(), it.TimesHandedOut > 0})
	}
}

// newEntry makes the entry of a message. Its text starts with the notes that our readers get beside a message.
func (s *Sync) newEntry(m member, it *mailbox.Item) *entry {
	text, args := it.Body, fmt.Sprintf("%s --as %s", it.ID.Short(6), m.box.Agent())
	if strings.TrimSpace(text) == "" {
		text = it.Subject + string(it.Payload)
	}
	if strings.HasPrefix(trim(text), "{") {
		text = "atm: " + text // so that Claude Code never reads it as a control message
	}
	addNote := func(applies bool, note string) {
		if applies {
			text = "(" + note + ")\n" + text
		}
	}
	addNote(len(it.Attachments) > 0, letter.Many(len(it.Attachments), "file")+" attached: atm show "+args+" --save DIR")
	addNote(it.RequiresAck, "wants ack: atm ack "+args)
	addNote(it.ReplyWanted == "no", "no answer wanted")
	addNote(!it.DueAt.IsZero(), "an answer is expected by "+it.DueAt.UTC().Format(time.RFC3339))
	addNote(it.Urgent(), "urgent")
	addNote(it.Type == wire.TypeAck, "acks "+it.InReplyTo.Short(6))
	addNote(it.TimesHandedOut > 0, "may be a repeat")
	return &entry{
		Type: "message", From: s.nameThere(it.From), Text: text, Timestamp: it.SentAt.UTC().Format(milliseconds),
		Summary: letter.FirstLine(it.Title(), 80), MsgV: 1, MsgID: string(it.ID),
	}
}

// addTo appends the entry to a list, and returns nil if its message is in the list already. Claude Code identifies an
// entry by sender, time and text, so addTo advances the time until it is unique.
func (e *entry) addTo(list []entry) (_ []entry, err error) {
	for i := 0; i < len(list); i++ {
		if list[i].MsgID == e.MsgID {
			return nil, nil
		}
		if list[i].Timestamp == e.Timestamp {
			at := cmp.Or(e.sentAt(), time.UnixMilli(0).UTC()) // a message may have no valid time
			e.Timestamp, i = at.Add(time.Millisecond).Format(milliseconds), -1
		}
	}
	e.raw, err = json.Marshal(e)
	return append(list, *e), err
}
