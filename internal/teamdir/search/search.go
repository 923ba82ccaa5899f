// Package search finds messages in all mailboxes of a team.
package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/headers"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/wire"
)

// Own returns a message that the owner of a mailbox received or sent, or maildir.ErrNotFound.
func Own(box *maildir.Box, id wire.ID) (*wire.Item, error) {
	it, err := box.Get(id)
	if errors.Is(err, maildir.ErrNotFound) {
		it = &wire.Item{}
		it.Message, err = box.Sent(id)
	}
	return it, err
}

// OwnMessage returns a message that box's owner received or sent, or nil.
func OwnMessage(box *maildir.Box, id wire.ID) *wire.Message {
	if it, err := Own(box, id); err == nil {
		return it.Message
	}
	return nil
}

// Answering selects the messages that answer one of several.
func Answering(ids []wire.ID, in ...*maildir.Box) maildir.Range {
	asked := map[headers.Key]bool{}
	rg := maildir.Range{Unread: true, Owed: true, Done: true, Archive: true, With: headers.IsReply}
	for _, id := range ids {
		asked[headers.KeyOf(id)] = true
	}
	if len(ids) == 1 { // of many, the first signs cost more than the days that they save
		rg.Since = BeforeAnswers(ids[0], ids[0].Time(), in...)
	}
	rg.Keep = func(h *headers.Header) bool { return asked[h.InReplyTo] }
	return rg
}

// EveryBox returns the mailboxes of the team, also retired ones.
func EveryBox(t *teamdir.Team) []*maildir.Box {
	boxes, _ := t.Boxes()
	retired, _ := keep.Retired(t.Store, "")
	return append(boxes, retired...)
}

func ByID(a, b *wire.Item) int { return strings.Compare(string(a.ID), string(b.ID)) }

// Thread returns the messages of a thread that members have received or sent, each once, in order: all members, or only
// the named ones.
func Thread(ctx context.Context, t *teamdir.Team, thread wire.ID, members ...wire.Name) ([]*wire.Item, error) {
	key := headers.KeyOf(thread)
	rg := maildir.Everywhere
	rg.Later = false
	rg.Sent, rg.Since = true, BeforeAnswers(thread, thread.Time(), EveryBox(t)...)
	rg.Keep = func(h *headers.Header) bool { return h.Thread == key }
	out, err := Collect(ctx, t, rg, members, func(it *wire.Item) bool { return it.ThreadID() == thread })
	// Not by id alone: the id of an ack or a notice is derived from another message's.
	slices.SortFunc(out, func(a, b *wire.Item) int { return cmp.Or(a.SentAt.Compare(b.SentAt), ByID(a, b)) })
	return out, err
}

// Collect returns the matching messages, each once, in the mailboxes of the named members, or of all members and
// retired members. It goes on after an error. A copy of a message that it has looked at is not opened.
func Collect(ctx context.Context, t *teamdir.Team, rg maildir.Range, members []wire.Name, matches func(*wire.Item) bool) ([]*wire.Item, error) {
	found := map[wire.ID]*wire.Item{}
	looked, rejected := 0, map[wire.ID]bool{}
	walk := func(b *maildir.Box) error {
		_, err := inbox.Walk(ctx, b, rg, func(it *wire.Item) bool {
			if looked++; t.Progress != nil {
				t.Progress(looked)
			}
			isCopy := it.State == "" // of what is not due for its recipients
			if isCopy && !b.IsDue(it.Message) {
				rejected[it.ID] = true
			} else if matches(it) {
				found[it.ID] = it
			} else {
				rejected[it.ID] = true
			}
			return ctx.Err() == nil
		})
		return err
	}
	all := func() error {
		err := t.Each(func(b *maildir.Box) error {
			if len(members) > 0 && !slices.Contains(members, b.Agent()) {
				return nil
			}
			return walk(b)
		})
		if retired, _ := keep.Retired(t.Store, ""); len(members) == 0 {
			for _, b := range retired {
				walk(b) // an error may mean that it was restored meanwhile
			}
		}
		return err
	}
	sent := maildir.Range{Sent: rg.Sent, Since: rg.Since, With: rg.With, Keep: rg.Keep, Texts: rg.Texts}
	rg.Sent = false
	rg.Wants = func(id wire.ID) bool { return found[id] == nil } // another recipient's copy may be another text
	err := all()
	if sent.Sent { // these copies have no State
		rg = sent
		rg.Wants = func(id wire.ID) bool { return found[id] == nil && !rejected[id] }
		err = cmp.Or(err, all())
	}
	return slices.Collect(maps.Values(found)), cmp.Or(ctx.Err(), err)
}

// Says selects messages by what they say of themselves; all of its conditions must hold. The zero value selects all.
type Says struct {
	Type     string            // "": any
	Labels   map[string]string // in meta; "": with any value
	IsUrgent bool
	Thread   wire.ID // "": any
}

// IsAll reports whether all messages are selected.
func (s Says) IsAll() bool {
	return s.Type == "" && len(s.Labels) == 0 && !s.IsUrgent && s.Thread == ""
}

// Matches reports whether a message is selected.
func (s Says) Matches(m *wire.Message) bool {
	for key, want := range s.Labels {
		if value, ok := m.Label(key); !ok || want != "" && value != want {
			return false
		}
	}
	return (s.Type == "" || m.Kind() == s.Type) && (!s.IsUrgent || m.Urgent()) && (s.Thread == "" || m.ThreadID() == s.Thread)
}

// AddLabel adds a label as people type it: K=V, or K for any value.
func (s *Says) AddLabel(pair string) error {
	key, value, _ := strings.Cut(pair, "=")
	if key == "" {
		return fmt.Errorf("%q is no label: K=V, or K for any value", pair)
	}
	if s.Labels == nil {
		s.Labels = map[string]string{}
	}
	s.Labels[key] = value
	return nil
}

// Query selects messages for Search; all of its conditions must hold.
type Query struct {
	Says
	Words []string // in subject or body, lower case
	From  string   // agent or agent@team
	To    string
	In    string // new, cur, done; empty: everywhere
	Since time.Time
	Until time.Time // before it
}

// Search looks through every message of the team, newest first.
func Search(ctx context.Context, t *teamdir.Team, q Query) ([]*wire.Item, error) {
	in := func(place string) bool { return q.In == "" || q.In == place }
	rg := maildir.Range{
		Unread: in("new"), Owed: in("cur"), Done: in("done"), Archive: in("done"),
		Withdrawn: q.In == "", Sent: q.In == "", Since: q.Since,
	}
	rg.Texts, rg.Keep = true, q.mayMatch
	out, err := Collect(ctx, t, rg, nil, func(it *wire.Item) bool { return q.matches(it, t.Name) })
	slices.SortFunc(out, func(a, b *wire.Item) int { return ByID(b, a) })
	return out, err
}

// mayMatch reports whether a message may match, by its header.
func (q Query) mayMatch(h *headers.Header) bool {
	from, _, _ := strings.Cut(q.From, "@")
	to, _, _ := strings.Cut(q.To, "@")
	if !strings.Contains(h.About, from) || !strings.Contains(h.About, to) || !strings.HasPrefix(h.About, q.Type) ||
		q.IsUrgent && !h.Has(headers.IsUrgent) || q.Thread != "" && h.Thread != headers.KeyOf(q.Thread) {
		return false
	}
	return !h.Has(headers.IsWhole) || !slices.ContainsFunc(q.Words, func(w string) bool { return !strings.Contains(h.Text, w) })
}

func (q Query) matches(it *wire.Item, team wire.Name) bool {
	isCalled := func(a wire.Address, word string) bool { // a name without a team means a member of this one
		return word == "" || word == a.String() || word == (&letter.Renderer{Team: team}).Who(a)
	}
	if !q.Says.Matches(it.Message) || !isCalled(it.From, q.From) {
		return false
	}
	if !q.Since.IsZero() || !q.Until.IsZero() {
		if at := Written(it); at.Before(q.Since) || !q.Until.IsZero() && !at.Before(q.Until) {
			return false
		}
	}
	if q.To != "" && !slices.ContainsFunc(it.To, func(a wire.Address) bool { return isCalled(a, q.To) }) {
		return false
	}
	text := headers.LowerText(it.Message)
	return !slices.ContainsFunc(q.Words, func(w string) bool { return !strings.Contains(text, w) })
}

// BeforeAnswers returns a time before which nothing mentions a message, by the clock here: a day before it was sent,
// since clocks differ, or before the first sign of it in these mailboxes, since the sender's clock may have been ahead.
func BeforeAnswers(id wire.ID, sent time.Time, in ...*maildir.Box) time.Time {
	first := sent
	for _, b := range in {
		if at := b.FirstSign(id); !at.IsZero() && at.Before(first) {
			first = at
		}
	}
	if now := time.Now(); first.After(now) {
		first = now
	}
	return first.Add(-24 * time.Hour)
}

// Written returns when an item's file was written, or zero if it is no longer there.
func Written(it *wire.Item) (at time.Time) {
	if info, err := os.Lstat(it.File); err == nil {
		at = info.ModTime()
	}
	return at
}
