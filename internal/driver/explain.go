package driver

import "github.com/agentteammail/atm/internal/driver/agents"

// A Match is a pattern of a driver's file that fits a screen.
type Match struct {
	Key  string `json:"key"`  // asks, busy or prompt
	Row  int    `json:"row"`  // the first one that it matches, from 1 on; 0: the title
	Text string `json:"text"` // that it matches
}

// Explain lists the patterns that fit a screen. The first one counts.
func (d *Driver) Explain(l Look) (matches []Match) {
	s := &d.file.Screen
	for _, a := range []struct {
		key  string
		area *agents.Area
	}{{"asks", &s.Asks.Area}, {"busy", &s.Busy}, {"prompt", &s.Prompt}} {
		if t := a.area.Title; t != nil && t.MatchString(l.Title) {
			matches = append(matches, Match{a.key, 0, t.FindString(l.Title)})
		}
		g := d.regionOf(&l, a.area)
		if m := g.find(a.area); m != nil {
			y, _ := g.rowAt(m[0])
			matches = append(matches, Match{a.key, y + 1, g.text[m[0]:m[1]]})
		}
	}
	return matches
}
