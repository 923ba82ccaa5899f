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

// A timeline is a picture of what members did: a lane for each, with a bar for each state that it was in, and
// an arrow from lane to lane for each message. Lengths are those of the drawing.
type timeline struct {
	Height   int
	From, To string
	Words    []reducer.Word // the states that there are
	Ticks    []tick
	Lanes    []lane
	Arrows   []arrow
}

type tick struct {
	X     int
	Label string
}

type lane struct {
	Name     string
	Y, TextY int
	Bars     []bar
}

type bar struct {
	X, Width float64
	Y        int
	State    reducer.Word
	Title    string
}

type arrow struct {
	X        float64
	From, To int
	Title    string
}

const (
	chartLeft, chartRight = 110, 990
	laneHeight, barHeight = 34, 14
	firstLane             = 34
)

func newTimeline(now time.Time, lanes []room.Lane, sent []*mailbox.Item, team wire.Name) *timeline {
	since := now.Add(-window)
	x := func(t time.Time) float64 {
		part := float64(t.Sub(since)) / float64(window)
		return chartLeft + (chartRight-chartLeft)*min(max(part, 0), 1)
	}
	t := &timeline{Height: firstLane + laneHeight*len(lanes), From: since.Format("15:04"), To: now.Format("15:04")}
	for at := since.Truncate(10 * time.Minute).Add(10 * time.Minute); at.Before(now); at = at.Add(10 * time.Minute) {
		t.Ticks = append(t.Ticks, tick{int(x(at)), at.Local().Format("15:04")})
	}
	at := map[wire.Name]int{} // the middle of each lane
	for i, l := range lanes {
		y := firstLane + i*laneHeight
		at[l.Name] = y + barHeight/2
		one := lane{Name: letter.Clip(string(l.Name), 14), Y: y, TextY: y + barHeight - 2}
		for _, s := range l.Spans {
			if s.State == reducer.WordUnknown || s.State == reducer.WordPerson {
				continue
			}
			title := fmt.Sprintf("%s: %s %s to %s", l.Name, s.State, s.From.Local().Format("15:04:05"), s.To.Local().Format("15:04:05"))
			one.Bars = append(one.Bars, bar{x(s.From), max(x(s.To)-x(s.From), 2), y, s.State, title})
			if !slices.Contains(t.Words, s.State) {
				t.Words = append(t.Words, s.State)
			}
		}
		t.Lanes = append(t.Lanes, one)
	}
	slices.Sort(t.Words)
	for _, it := range sent {
		from, isMember := at[it.From.Agent]
		for _, a := range it.To {
			to, alsoMember := at[a.Agent]
			if !isMember || !alsoMember || from == to || a.Team != team || a.Host != "" {
				continue
			}
			title := fmt.Sprintf("%s %s to %s: %s", it.SentAt.Local().Format("15:04:05"), it.From.Agent, a.Agent, letter.Escape(letter.Clip(it.Title(), 80)))
			t.Arrows = append(t.Arrows, arrow{x(it.SentAt), from, to, title})
		}
	}
	return t
}
