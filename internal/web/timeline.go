package web

import (
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/room"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// A timeline is a picture of the last hour: a lane for each member, with a bar for each of its states, and an arrow
// from lane to lane for each message.
type timeline struct {
	Height                     int
	From, To                   string
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

const (
	chartLeft, chartRight            = 110, 990
	firstLane, laneHeight, barHeight = 34, 34, 14
)

func newTimeline(now time.Time, lanes []room.Lane, sent []*mailbox.Item, team wire.Name) *timeline {
	since := now.Add(-window)
	x := func(t time.Time) float64 {
		part := float64(t.Sub(since)) / float64(window)
		return chartLeft + (chartRight-chartLeft)*min(max(part, 0), 1)
	}
	clock := func(t time.Time) string { return t.Local().Format("15:04:05") }
	t := &timeline{Height: firstLane + laneHeight*len(lanes), From: clock(since), To: clock(now)}
	for at := since.Truncate(10 * time.Minute).Add(10 * time.Minute); at.Before(now); at = at.Add(10 * time.Minute) {
		t.Ticks = append(t.Ticks, mark{X: x(at), Title: at.Local().Format("15:04")})
	}
	middle := map[wire.Name]int{} // the height of each lane's middle
	for i, l := range lanes {
		y := firstLane + i*laneHeight
		middle[l.Name] = y + barHeight/2
		t.Lanes = append(t.Lanes, mark{Y: y, Title: letter.Clip(string(l.Name), 14)})
		for _, s := range l.Spans {
			if s.State == reducer.WordUnknown || s.State == reducer.WordPerson {
				continue
			}
			title := fmt.Sprintf("%s: %s %s to %s", l.Name, s.State, clock(s.From), clock(s.To))
			t.Bars = append(t.Bars, mark{X: x(s.From), Width: max(x(s.To)-x(s.From), 2), Y: y, State: s.State, Title: title})
			if !slices.Contains(t.Words, s.State) {
				t.Words = append(t.Words, s.State)
			}
		}
	}
	slices.Sort(t.Words)
	for _, it := range sent {
		for _, a := range it.To {
			from, to := middle[it.From.Agent], middle[a.Agent]
			if from > 0 && to > 0 && from != to && a.Team == team && a.Host == "" {
				title := fmt.Sprintf("%s %s to %s: %s", clock(it.SentAt), it.From.Agent, a.Agent, letter.Escape(letter.Clip(it.Title(), 80)))
				t.Arrows = append(t.Arrows, mark{X: x(it.SentAt), Y: from, To: to, Title: title})
			}
		}
	}
	return t
}
