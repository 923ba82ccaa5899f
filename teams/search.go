package teams

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// Replies are the messages in box that answer a message, oldest first; from a
// recipient, or from anybody when from is zero (Answers). It looks from a day
// before the id on.
func Replies(ctx context.Context, box *mailbox.Box, id wire.ID, from wire.Address) []*mailbox.Item {
	var out []*mailbox.Item
	quoted := []byte(id)
	box.Walk(ctx, mailbox.Range{
		Unread: true, Owed: true, Done: true, Archive: true, Since: id.Time().Add(-24 * time.Hour),
		Keep: func(raw []byte) bool { return bytes.Contains(raw, quoted) },
	}, func(it *mailbox.Item) bool {
		if Answers(it.Message, id) && (from == wire.Address{} || it.From == from) {
			out = append(out, it)
		}
		return true
	})
	slices.SortFunc(out, byID)
	return out
}

// Answers reports whether m is a reply to a message: neither an ack, nor a notice
// of what became of it.
func Answers(m *wire.Message, id wire.ID) bool {
	return m.InReplyTo == id && m.Type != wire.TypeAck && m.Type != wire.TypeNotice
}

func byID(a, b *mailbox.Item) int { return strings.Compare(string(a.ID), string(b.ID)) }

// Thread is a conversation: every message of the thread in the mailboxes of
// the team and among what its members sent, each once, in order.
func (t *Team) Thread(ctx context.Context, thread wire.ID) ([]*mailbox.Item, error) {
	id := []byte(thread)
	out, err := t.gather(ctx, mailbox.Range{
		Unread: true, Owed: true, Done: true, Withdrawn: true, Archive: true, Sent: true,
		Since: thread.Time().Add(-24 * time.Hour),
		Keep:  func(raw []byte) bool { return bytes.Contains(raw, id) },
	}, nil, func(it *mailbox.Item) bool { return it.ThreadID() == thread })
	// By time: an ack or a notice has an id derived from what it is about.
	slices.SortFunc(out, func(a, b *mailbox.Item) int {
		if c := a.SentAt.Compare(b.SentAt); c != 0 {
			return c
		}
		return byID(a, b)
	})
	return out, err
}

// gather walks all members' mailboxes, several at a time, and returns the
// messages that fit accepts, each once. tick is told of progress.
func (t *Team) gather(ctx context.Context, rg mailbox.Range, tick func(), fits func(*mailbox.Item) bool) ([]*mailbox.Item, error) {
	boxes, err := t.Boxes()
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var first error
	seen := map[wire.ID]*mailbox.Item{}
	keep := rg.Keep
	rg.Keep = func(raw []byte) bool {
		if tick != nil {
			tick()
		}
		return ctx.Err() == nil && (keep == nil || keep(raw))
	}
	slots := make(chan struct{}, 2)
	for _, b := range boxes {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			_, _, err := b.Walk(ctx, rg, func(it *mailbox.Item) bool {
				if fits(it) {
					mu.Lock()
					// A copy in a mailbox says more than the sender's index.
					if old := seen[it.ID]; old == nil || old.State == "" {
						seen[it.ID] = it
					}
					mu.Unlock()
				}
				return ctx.Err() == nil
			})
			if err != nil && !errors.Is(err, mailbox.ErrNoAgent) { // retired meanwhile
				mu.Lock()
				if first == nil {
					first = err
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := make([]*mailbox.Item, 0, len(seen))
	for _, it := range seen {
		out = append(out, it)
	}
	return out, first
}

// Query is what `atm search` looks for: all of it must fit.
type Query struct {
	Words []string // in subject or body, lower case
	From  string   // agent or agent@team
	To    string
	In    []string // new, cur, done; empty: everywhere
	Since time.Time
}

// ParseQuery reads words, from:, to:, in:new|cur|done and since:. A duration
// in since: is before now.
func ParseQuery(words []string, now time.Time, duration func(string) (time.Duration, error)) (Query, error) {
	var q Query
	for _, w := range words {
		key, value, ok := strings.Cut(w, ":")
		switch {
		case ok && key == "from":
			q.From = value
		case ok && key == "to":
			q.To = value
		case ok && key == "in":
			for _, in := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == '|' }) {
				if in != "new" && in != "cur" && in != "done" {
					return q, fmt.Errorf("in:%s: new, cur or done", in)
				}
				q.In = append(q.In, in)
			}
		case ok && key == "since":
			t, err := Since(value, now, duration)
			if err != nil {
				return q, err
			}
			q.Since = t
		default:
			q.Words = append(q.Words, strings.Fields(strings.ToLower(w))...)
		}
	}
	return q, nil
}

// Since reads a moment: a duration before now, a day, or RFC 3339.
func Since(s string, now time.Time, duration func(string) (time.Duration, error)) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t, nil
	}
	if t, err := time.ParseInLocation(time.DateOnly, s, time.Local); err == nil {
		return t, nil
	}
	d, err := duration(s)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is no moment: 2h, 7d, 2026-05-01 or 2026-05-01T12:00:00Z", s)
	}
	return now.Add(-d), nil
}

// Search looks through every message of the team. tick is called for each one
// looked at, from several goroutines. The result is newest first.
func (t *Team) Search(ctx context.Context, q Query, tick func()) ([]*mailbox.Item, error) {
	rg := mailbox.Range{Since: q.Since, Times: !q.Since.IsZero(), Keep: q.rough}
	for _, in := range q.In {
		rg.Unread = rg.Unread || in == "new"
		rg.Owed = rg.Owed || in == "cur"
		rg.Done = rg.Done || in == "done"
	}
	rg.Archive = rg.Done
	if len(q.In) == 0 {
		rg.Unread, rg.Owed, rg.Done, rg.Archive, rg.Withdrawn = true, true, true, true, true
	}
	out, err := t.gather(ctx, rg, tick, func(it *mailbox.Item) bool { return q.fits(it, t.Name) })
	slices.SortFunc(out, func(a, b *mailbox.Item) int { return byID(b, a) })
	return out, err
}

// rough looks for the words in the raw text: what it refuses does not fit.
func (q Query) rough(raw []byte) bool {
	for _, w := range q.Words {
		if !plain(w) {
			continue // may stand escaped
		}
		if !containsFold(raw, w) {
			return false
		}
	}
	return true
}

// plain reports whether a word stands in JSON as it is, but for case.
func plain(w string) bool {
	for _, r := range w {
		if r >= unicode.MaxASCII || r < ' ' || r == '"' || r == '\\' || r == '/' || r == '<' || r == '>' || r == '&' {
			return false
		}
	}
	return true
}

// containsFold reports whether an ASCII word in lower case is in b, whatever
// the case there.
func containsFold(b []byte, word string) bool {
	first := word[0]
	for i := 0; i+len(word) <= len(b); i++ {
		c := b[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c == first && strings.EqualFold(string(b[i:i+len(word)]), word) {
			return true
		}
	}
	return false
}

func (q Query) fits(it *mailbox.Item, team wire.Name) bool {
	if q.From != "" && !named(q.From, it.From, team) {
		return false
	}
	if q.To != "" && !slices.ContainsFunc(it.To, func(a wire.Address) bool { return named(q.To, a, team) }) {
		return false
	}
	if !q.Since.IsZero() && it.Written.Before(q.Since) {
		return false
	}
	text := strings.ToLower(it.Subject + "\n" + it.Body)
	for _, w := range q.Words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

func named(s string, a wire.Address, team wire.Name) bool {
	return s == a.String() || s == string(a.Agent) && a.Team == team || s == string(a.Agent) && a.Agent == "drop"
}
