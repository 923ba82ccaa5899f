package teams

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

// Answers reports whether m is a reply to a message: neither an ack, nor a notice of what became of it.
func Answers(m *wire.Message, id wire.ID) bool {
	return m.InReplyTo == id && m.Type != wire.TypeAck && m.Type != wire.TypeNotice
}

// mentioning is the part of a mailbox in which messages about a message, or of a thread,
// can be: from a day before it on, since clocks differ.
func mentioning(id wire.ID) mailbox.Range {
	return mailbox.Range{
		Unread: true, Owed: true, Done: true, Archive: true, Since: id.Time().Add(-24 * time.Hour),
		Keep: func(raw []byte) bool { return bytes.Contains(raw, []byte(id)) },
	}
}

// Replies are the messages in box that answer a message, oldest first; from a recipient,
// or from anybody when from is zero.
func Replies(ctx context.Context, box *mailbox.Box, id wire.ID, from wire.Address) []*mailbox.Item {
	var out []*mailbox.Item
	box.Walk(ctx, mentioning(id), func(it *mailbox.Item) bool {
		if Answers(it.Message, id) && (from == wire.Address{} || it.From == from) {
			out = append(out, it)
		}
		return true
	})
	slices.SortFunc(out, byID)
	return out
}

// replies are the Replies that a message's sender has got; of a sender on another host those that left here.
func (r *Root) replies(ctx context.Context, m *wire.Message, from wire.Address) (out []*mailbox.Item) {
	sender, err := r.Mailbox(m.From)
	if m.From.Host == "" && err == nil {
		return Replies(ctx, sender, m.ID, from)
	}
	if t, err := r.Team(m.From.Team); m.From.Host != "" && err == nil {
		sent := mailbox.Range{Sent: true, Since: m.ID.Time().Add(-24 * time.Hour)}
		out, _ = t.collect(ctx, sent, nil, func(it *mailbox.Item) bool {
			return Answers(it.Message, m.ID) && (from == wire.Address{} || it.From == from)
		})
		slices.SortFunc(out, byID)
	}
	return out
}

func byID(a, b *mailbox.Item) int { return strings.Compare(string(a.ID), string(b.ID)) }

// Thread is a conversation: every message of the thread in the mailboxes of the team and
// among what its members sent, each once, in order. Of some members only, if they are named.
func (t *Team) Thread(ctx context.Context, thread wire.ID, of ...wire.Name) ([]*mailbox.Item, error) {
	rg := mentioning(thread)
	rg.Withdrawn, rg.Sent = true, true
	out, err := t.collect(ctx, rg, of, func(it *mailbox.Item) bool { return it.ThreadID() == thread })
	// By time: an ack or a notice has an id derived from what it is about.
	slices.SortFunc(out, func(a, b *mailbox.Item) int { return cmp.Or(a.SentAt.Compare(b.SentAt), byID(a, b)) })
	return out, err
}

// collect walks the mailboxes of members, all and those of retired ones if none is named, and returns the messages that
// match, each once. What cannot be read hides nothing else.
func (t *Team) collect(ctx context.Context, rg mailbox.Range, of []wire.Name, matches func(*mailbox.Item) bool) ([]*mailbox.Item, error) {
	found := map[wire.ID]*mailbox.Item{}
	walk := func(b *mailbox.Box) error {
		_, _, err := b.Walk(ctx, rg, func(it *mailbox.Item) bool {
			// A copy in a mailbox says more than the sender's index.
			if old := found[it.ID]; (old == nil || old.State == "") && matches(it) {
				found[it.ID] = it
			}
			return ctx.Err() == nil
		})
		return err
	}
	err := t.Each(func(b *mailbox.Box) error {
		if len(of) > 0 && !slices.Contains(of, b.Agent()) {
			return nil
		}
		return walk(b)
	})
	if kept, _ := t.Retired(""); len(of) == 0 {
		for _, b := range kept {
			walk(b) // which may have been restored meanwhile
		}
	}
	return slices.Collect(maps.Values(found)), cmp.Or(ctx.Err(), err)
}

// Query is what `atm search` looks for: all of it must match.
type Query struct {
	Words []string // in subject or body, lower case
	From  string   // agent or agent@team
	To    string
	In    []string // new, cur, done; empty: everywhere
	Since time.Time
}

// Search looks through every message of the team, newest first.
func (t *Team) Search(ctx context.Context, q Query) ([]*mailbox.Item, error) {
	in := func(place string) bool { return len(q.In) == 0 || slices.Contains(q.In, place) }
	rg := mailbox.Range{
		Unread: in("new"), Owed: in("cur"), Done: in("done"), Archive: in("done"), Withdrawn: len(q.In) == 0,
		Since: q.Since,
	}
	out, err := t.collect(ctx, rg, nil, func(it *mailbox.Item) bool { return q.matches(it, t.Name) })
	slices.SortFunc(out, func(a, b *mailbox.Item) int { return byID(b, a) })
	return out, err
}

func (q Query) matches(it *mailbox.Item, team wire.Name) bool {
	// A name without the team means an agent within it.
	isCalled := func(a wire.Address, word string) bool {
		isShown := word == (&letter.Renderer{Team: team}).Who(a) || word == "drop" && a.Agent == "drop"
		return word == "" || word == a.String() || isShown
	}
	if !isCalled(it.From, q.From) || !q.Since.IsZero() && it.Written().Before(q.Since) {
		return false
	}
	if q.To != "" && !slices.ContainsFunc(it.To, func(a wire.Address) bool { return isCalled(a, q.To) }) {
		return false
	}
	text := strings.ToLower(it.Subject + "\n" + it.Body)
	return !slices.ContainsFunc(q.Words, func(w string) bool { return !strings.Contains(text, w) })
}
