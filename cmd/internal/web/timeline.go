package web

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

const (
	window = time.Hour

	chartLeft, chartRight            = 110, 990
	firstLane, laneHeight, barHeight = 34, 34, 14
)

// A timeline is a picture of the last hour: a lane for each member on this machine, with a bar for each of its states,
// and an arrow from lane to lane for each message.
type timeline struct {
	since, now                 time.Time
	Height                     int
	Words                      []reducer.Word // the states that occur
	Ticks, Lanes, Bars, Arrows []mark
}

// A mark is a part of the picture.
type mark struct {
	X, Width float64
	Y, To    int // of an arrow: its ends
	State    reducer.Word
	Title    string
}

func (t *timeline) x(at time.Time) float64 {
	part := float64(at.Sub(t.since)) / float64(window)
	return chartLeft + (chartRight-chartLeft)*min(max(part, 0), 1)
}

// timeline draws the last hour, and returns the messages that were sent in it as well, oldest first. An error does not
// hide the rest.
func (p *page) timeline(ctx context.Context) (t *timeline, sent []*maildir.Item, err error) {
	t = &timeline{since: p.Now.Add(-window), now: p.Now, Height: firstLane}
	for at := t.since.Truncate(10 * time.Minute).Add(10 * time.Minute); at.Before(t.now); at = at.Add(10 * time.Minute) {
		t.Ticks = append(t.Ticks, mark{X: t.x(at), Title: at.Local().Format("15:04")})
	}
	middle := map[wire.Address]int{} // the height of each lane's middle
	for _, m := range p.Room.Members {
		if m.Host != "" {
			continue
		}
		box := p.Scope.Team.Box(m.Name)
		middle[box.Address()] = t.Height + barHeight/2
		t.Lanes = append(t.Lanes, mark{Y: t.Height, Title: letter.Clip(string(m.Name), 14)})
		unreadable := t.addBars(box, m)
		_, unreadable2 := box.Walk(maildir.Range{Sent: true, Newest: true, Since: t.since}, func(it *maildir.Item) bool {
			if !it.SentAt.Before(t.since) {
				sent = append(sent, it)
			}
			return it.ID.Time().After(t.since.Add(-time.Hour)) // an ack's id has the time of the acknowledged message
		})
		t.Height += laneHeight
		err = errors.Join(err, unreadable, unreadable2)
	}
	slices.Sort(t.Words)
	slices.SortFunc(sent, func(a, b *maildir.Item) int { return a.SentAt.Compare(b.SentAt) })
	for _, it := range sent {
		for _, a := range it.To {
			from, to := middle[it.From], middle[a]
			if from > 0 && to > 0 && from != to {
				title := fmt.Sprintf("%s %s to %s: %s", letter.Stamp(it.SentAt), it.From.Agent, a.Agent, letter.Escape(letter.Clip(it.Title(), 80)))
				t.Arrows = append(t.Arrows, mark{X: t.x(it.SentAt), Y: from, To: to, Title: title})
			}
		}
	}
	return t, sent, err
}

// addBars folds a member's events into the bars of the newest lane.
func (t *timeline) addBars(box *maildir.Box, m presence.Member) error {
	events, err := box.Log().Tail(func(e *wire.Event) bool {
		return e.At.Before(t.since) && slices.Contains([]string{wire.TurnStarted, wire.TurnCompleted, wire.Spawned, wire.Exited}, e.Kind)
	})
	state, word, began := reducer.State{}, reducer.WordUnknown, t.since
	for i := range events {
		e := &events[i]
		state.Apply(e)
		if next := state.Word(); next != word {
			t.addBar(m.Name, word, began, e.At)
			word, began = next, e.At
		}
	}
	t.addBar(m.Name, word, began, t.now)
	if word != m.State { // a lock or the clock changed it, without an event
		t.addBar(m.Name, m.State, t.now, t.now)
	}
	return err
}

func (t *timeline) addBar(name wire.Name, word reducer.Word, from, to time.Time) {
	if !to.After(t.since) || word == reducer.WordUnknown || word == reducer.WordPerson {
		return
	}
	title := fmt.Sprintf("%s: %s %s to %s", name, word, letter.Stamp(from), letter.Stamp(to))
	t.Bars = append(t.Bars, mark{X: t.x(from), Width: max(t.x(to)-t.x(from), 2), Y: t.Height, State: word, Title: title})
	if !slices.Contains(t.Words, word) {
		t.Words = append(t.Words, word)
	}
}
