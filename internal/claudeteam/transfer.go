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

func (s *Sync) change(ctx context.Context, m member, f func(list []entry) ([]entry, error)) error {
	if err := s.create(m.inbox(), []byte("[]"), 0o600); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return s.rewrite(ctx, m.inbox(), func(old []byte) ([]byte, error) {
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

// takeIn stores here what lies in an inbox file of ours, and removes it there. In an inbox of theirs it looks for
// who is idle.
func (s *Sync) takeIn(ctx context.Context, m member, isOurs bool) error {
	data, err := s.root.ReadFile(m.inbox(), maxFile)
	if errors.Is(err, fs.ErrNotExist) && isOurs {
		return s.create(m.inbox(), []byte("[]"), 0o600)
	}
	list, decodeErr := decodeInbox(data)
	err = errors.Join(err, decodeErr)
	stored := map[wire.ID]bool{}
	for i, e := range list {
		kind, failed := control(e.Text).Text("type"), e.bad
		if failed == nil {
			if e.Read || !isOurs && kind != idle {
				continue // some programs keep what they have read
			}
			if kind == idle {
				failed = s.noteIdle(ctx, &e)
			} else {
				failed = s.store(ctx, m, &e, kind)
			}
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("entry %d is left there: %w", i+1, failed))
			continue
		}
		stored[s.idOf(&e, m.box)] = true
	}
	if isOurs && len(stored) > 0 {
		err = errors.Join(err, s.change(ctx, m, func(list []entry) ([]entry, error) {
			return slices.DeleteFunc(list, func(e entry) bool {
				return e.bad == nil && !e.Read && stored[s.idOf(&e, m.box)]
			}), nil
		}))
	}
	return err
}

// store makes an entry for one of ours a message, durably. The other fields are kept in meta.
func (s *Sync) store(ctx context.Context, m member, e *entry, kind string) error {
	theirs, err := wire.ReadObject(e.raw)
	if err != nil {
		return err
	}
	theirs = slices.DeleteFunc(theirs, func(f wire.Member) bool { return f.Name == "text" || f.Name == "read" })
	meta, err := theirs.With("team", wire.Quote(filepath.Base(s.Dir))).MarshalJSON()
	if err != nil {
		return err
	}
	msg := &wire.Message{
		ID: s.idOf(e, m.box), From: wire.Address{Agent: s.nameHere(e.From), Team: s.Team.Name},
		To: []wire.Address{m.box.Address()}, Subject: e.Summary, Body: e.Text, SentAt: e.at(),
		Origin: &wire.Origin{Via: "bridge"}, Meta: slices.Concat([]byte(`{"claude":`), meta, []byte("}")),
	}
	if kind != "" {
		msg.Type = "claude_" + kind // their permission_request is none of ours
	}
	post := &mailbox.Post{Message: msg, To: []*mailbox.Box{m.box}, Given: true}
	if from := s.Team.Box(msg.From.Agent); from.Exists() {
		post.Sender = from
	}
	mailbox.Deliver(ctx, post)
	out := post.Outcomes[0]
	if out.Err == nil && !out.Known {
		s.Report(Transfer{Kind: "taken_in", ID: msg.ID, From: string(msg.From.Agent), To: string(m.box.Agent()), Title: msg.Title()})
	}
	if _, isContent := errors.AsType[*mailbox.ContentError](out.Err); isContent {
		return errors.New(out.Err.Error()) // it is theirs, not of a command line
	}
	return out.Err
}

// idle is the type of what a member of theirs tells its lead when its turn is over.
const idle = "idle_notification"

// noteIdle appends to the events of one of theirs that it is idle, and what cut its turn short, unless they say so
// already.
func (s *Sync) noteIdle(ctx context.Context, e *entry) error {
	i := slices.IndexFunc(s.theirs, func(m member) bool { return m.name == e.From })
	if i < 0 {
		return nil
	}
	box, status := s.theirs[i].box, control(e.Text).Text("idleReason")
	id := string(s.idOf(e, box))
	isIdle := wire.Event{Kind: wire.TurnIdle, Source: "bridge", EventID: id}
	events := []wire.Event{isIdle}
	if status == "interrupted" || status == "failed" {
		end := wire.Event{Kind: wire.TurnCompleted, Source: "bridge", EventID: id + ".turn"}
		events = []wire.Event{end.With("status", status), isIdle}
	}
	if err := box.Log().Append(ctx, events...); err != nil {
		return err
	}
	if events[len(events)-1].Seq > 0 {
		s.Report(Transfer{Kind: idle, From: string(box.Agent())})
	}
	return nil
}

func (s *Sync) handOver(ctx context.Context, m member) error {
	n, err := m.box.Count(ctx)
	if err == nil && n.Unread == 0 && n.Leased > 0 {
		err = errors.New("somebody else hands mail over to it, or was killed at that less than ten seconds ago")
	}
	if err != nil || n.Unread == 0 {
		return err
	}
	if age := time.Since(m.joined); age >= 0 && age < joining {
		return fmt.Errorf("%s has just joined: its mail waits for %s", m.name, joining)
	}
	for {
		it, err := m.box.Lease(ctx, m.box.Address(), 10*time.Second, true, func(it *mailbox.Item, _ mailbox.Lease) (bool, error) {
			e := s.newEntry(m, it)
			err := s.change(ctx, m, e.addTo)
			return err == nil, err
		})
		if it == nil || err != nil {
			return err
		}
		done := context.WithoutCancel(ctx)
		// It is at work in a moment, and tells nobody.
		unknown := wire.Event{Kind: "state_change", Source: "bridge"}.With("new", "unknown")
		if err = errors.Join(m.box.MarkRead(done, it.ID), m.box.Log().Append(done, unknown)); err != nil {
			return err
		}
		s.Report(Transfer{"handed_over", it.ID, s.nameThere(it.From), string(m.box.Agent()), it.Title(), it.Times > 0})
	}
}

// newEntry is a message of ours for one of theirs. What their model could not know is said in its text.
func (s *Sync) newEntry(m member, it *mailbox.Item) *entry {
	text, as := it.Body, fmt.Sprintf("%s --as %s", it.ID.Short(6), m.box.Agent())
	if strings.TrimSpace(text) == "" {
		text = it.Subject + string(it.Payload)
	}
	if strings.HasPrefix(trim(text), "{") {
		text = "atm: " + text // it tells their program nothing, whatever JSON that reads
	}
	note := func(isSo bool, what string) {
		if isSo {
			text = "(" + what + ")\n" + text
		}
	}
	note(len(it.Attachments) > 0, letter.Many(len(it.Attachments), "file")+" attached: atm show "+as+" --save DIR")
	note(it.RequiresAck, "wants ack: atm ack "+as)
	note(it.ReplyWanted == "no", "no answer wanted")
	note(it.Times > 0, "may be a repeat")
	return &entry{
		Type: "message", From: s.nameThere(it.From), Text: text, Timestamp: it.SentAt.UTC().Format(milliseconds),
		Summary: letter.FirstLine(it.Title(), 80), MsgV: 1, MsgID: string(it.ID),
	}
}

// addTo appends the entry to a list; nil: its message is there. Claude Code tells entries apart by sender, time
// and text alone, so the time is moved until no other has it.
func (e *entry) addTo(list []entry) (_ []entry, err error) {
	for i := 0; i < len(list); i++ {
		if list[i].MsgID == e.MsgID {
			return nil, nil
		}
		if list[i].Timestamp == e.Timestamp {
			at := cmp.Or(e.at(), time.UnixMilli(0).UTC()) // of a message without a time
			e.Timestamp, i = at.Add(time.Millisecond).Format(milliseconds), -1
		}
	}
	e.raw, err = json.Marshal(e)
	return append(list, *e), err
}
