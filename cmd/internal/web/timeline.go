package web

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

const (
	maxWindow, minWindow = time.Hour, 10 * time.Second

	chartWidth                       = 840
	firstLane, laneHeight, barHeight = 34, 34, 14 // as in the style sheet
	arrowsApart                      = 10         // closer ones with the same ends are one, with a number
)

// A timeline is a picture of what has happened within the last hour: a lane for each member on this machine, with a bar
// for each of its states, and an arrow from lane to lane for each message.
type timeline struct {
	since, now    time.Time
	Width, Height int
	Words         []reducer.Word // the states that occur
	Ticks         []mark
	Lanes         []lane
	Arrows        []arrow
}

// A mark is a place in the picture, with its text.
type mark struct {
	X    float64
	Text string
}

type lane struct {
	Name wire.Name
	Y    int
	Bars []bar
}

// A bar is a time in which a member was in one state.
type bar struct {
	State    reducer.Word
	from, to time.Time
	X, Width float64
	Y        int
}

// An arrow is for messages from one lane to another.
type arrow struct {
	mark
	From, To, Middle int // heights
	Count            int
}

// Title says what the bar shows.
func (b bar) Title() string {
	return fmt.Sprintf("%s %s to %s", b.State, letter.Stamp(b.from), letter.Stamp(b.to))
}

// OnGround is the bar in a group that is moved to its lane, so that patterns begin with it.
func (b bar) OnGround() bar {
	b.Y = 0
	return b
}

// Legend is a bar of each state that occurs.
func (t *timeline) Legend() (bars []bar) {
	for _, word := range t.Words {
		bars = append(bars, bar{State: word, Width: 28})
	}
	return bars
}

// Last is the state at the end of the lane.
func (l lane) Last() string {
	if len(l.Bars) == 0 {
		return "nothing known"
	}
	return string(l.Bars[len(l.Bars)-1].State)
}

// Since is when the picture begins.
func (t *timeline) Since() time.Time { return t.since }

func (t *timeline) x(at time.Time) float64 {
	part := float64(at.Sub(t.since)) / float64(t.now.Sub(t.since))
	return chartWidth * min(max(part, 0), 1)
}

// timeline draws the last hour, or what there is of it, and returns the messages that were sent in it as well, oldest
// first. An error does not hide the rest.
func (p *page) timeline(ctx context.Context) (t *timeline, sent []*wire.Item, err error) {
	t = &timeline{since: p.Now.Add(-maxWindow), now: p.Now, Width: chartWidth, Height: firstLane}
	middle := map[wire.Address]int{} // the height of each lane's middle
	first := p.Now.Add(-minWindow)
	for _, m := range p.Room.Members {
		if m.Host != "" {
			continue
		}
		box := p.Scope.Team.Box(m.Name)
		middle[box.Address()] = t.Height + barHeight/2
		bars, unreadable := t.bars(box, m)
		t.Lanes = append(t.Lanes, lane{m.Name, t.Height, bars})
		for _, b := range bars {
			first = earlier(first, b.from)
		}
		_, unreadable2 := box.Walk(maildir.Range{Sent: true, Newest: true, Since: t.since}, func(it *wire.Item) bool {
			if !it.SentAt.Before(t.since) {
				sent = append(sent, it)
				first = earlier(first, it.SentAt)
			}
			return it.ID.Time().After(t.since.Add(-time.Hour)) // an ack's id has the time of the acknowledged message
		})
		t.Height += laneHeight
		err = errors.Join(err, unreadable, unreadable2)
	}
	t.since = first
	slices.SortFunc(sent, func(a, b *wire.Item) int { return a.SentAt.Compare(b.SentAt) })
	t.place()
	t.addArrows(sent, middle)
	return t, sent, err
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// bars folds a member's events into bars.
func (t *timeline) bars(box *maildir.Box, m presence.Member) (all []bar, err error) {
	events, err := box.Log().Tail(func(e *wire.Event) bool {
		return e.At.Before(t.since) && slices.Contains([]string{wire.TurnStarted, wire.TurnCompleted, wire.Spawned, wire.Exited}, e.Kind)
	})
	add := func(word reducer.Word, from, to time.Time) {
		if to.After(t.since) && word != reducer.WordUnknown && word != reducer.WordPerson {
			if from.Before(t.since) {
				from = t.since
			}
			all = append(all, bar{State: word, from: from, to: to})
		}
	}
	state, word, began := reducer.State{}, reducer.WordUnknown, t.since
	for i := range events {
		e := &events[i]
		state.Apply(e)
		if next := state.Word(); next != word {
			add(word, began, e.At)
			word, began = next, e.At
		}
	}
	add(word, began, t.now)
	if word != m.State { // a lock or the clock changed it, without an event
		add(m.State, t.now, t.now)
	}
	return all, err
}

// place places the bars, and marks round times.
func (t *timeline) place() {
	for i := range t.Lanes {
		for j := range t.Lanes[i].Bars {
			b := &t.Lanes[i].Bars[j]
			b.Width = max(t.x(b.to)-t.x(b.from), 3)
			b.X, b.Y = min(t.x(b.from), chartWidth-b.Width), t.Lanes[i].Y
			if !slices.Contains(t.Words, b.State) {
				t.Words = append(t.Words, b.State)
			}
		}
	}
	slices.Sort(t.Words)
	step, format := 2*time.Second, "15:04:05"
	for _, longer := range []time.Duration{5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute} {
		if t.now.Sub(t.since) > 8*step {
			step = longer
		}
	}
	if step >= time.Minute {
		format = "15:04"
	}
	for at := t.since.Truncate(step).Add(step); at.Before(t.now); at = at.Add(step) {
		if x := t.x(at); x > 30 && x < chartWidth-30 { // there is room for the text
			t.Ticks = append(t.Ticks, mark{x, at.Local().Format(format)})
		}
	}
}

// addArrows adds an arrow for each message from a lane to another.
func (t *timeline) addArrows(sent []*wire.Item, middle map[wire.Address]int) {
	for _, it := range sent {
		for _, a := range it.To {
			from, to, x := middle[it.From], middle[a], t.x(it.SentAt)
			if from == 0 || to == 0 || from == to {
				continue
			}
			i := slices.IndexFunc(t.Arrows, func(a arrow) bool { return a.From == from && a.To == to && x-a.X < arrowsApart })
			if i >= 0 {
				t.Arrows[i].Count++
				t.Arrows[i].Text = fmt.Sprintf("%d messages %s to %s, %s to %s", t.Arrows[i].Count, it.From.Agent, a.Agent, letter.Stamp(t.at(t.Arrows[i].X)), letter.Stamp(it.SentAt))
				continue
			}
			text := fmt.Sprintf("%s %s to %s: %s", letter.Stamp(it.SentAt), it.From.Agent, a.Agent, letter.Escape(letter.Clip(it.Title(), 80)))
			t.Arrows = append(t.Arrows, arrow{mark{x, text}, from, to, (from+to)/2 + 4, 1})
		}
	}
}

// at is the time at a place.
func (t *timeline) at(x float64) time.Time {
	return t.since.Add(time.Duration(x / chartWidth * float64(t.now.Sub(t.since))))
}
