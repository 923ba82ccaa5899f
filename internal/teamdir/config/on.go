package config

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// On is a command of the owner's that is run when something happens to a member.
type On struct {
	Event   Words    // see OnEvents
	Who     Words    // members, and "@name" for a group or a role; none: everybody
	Command []string // a program and its arguments
	Timeout string   // "": OnTimeout
	Tokens  int64    // OnUsage: the member has used so many; 0: no limit
	Cost    float64  // OnUsage: it has used so much money, in one currency; 0: no limit
}

// Words are several words: in a file a list of strings, or one string with commas.
type Words []string

// UnmarshalText implements encoding.TextUnmarshaler.
func (w *Words) UnmarshalText(text []byte) error {
	*w = strings.FieldsFunc(string(text), func(r rune) bool { return r == ',' || r == ' ' })
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (w Words) MarshalText() ([]byte, error) { return []byte(strings.Join(w, ",")), nil }

// What a command may be run on, beside the states. Mail covers urgent mail.
const (
	OnMail       = "mail"
	OnUrgentMail = "urgent-mail"
	OnOverdue    = "overdue"
	OnUsage      = "usage" // the member reaches Tokens or Cost
)

// OnTimeout is how long a command may take.
const OnTimeout = 30 * time.Second

// OnStates are the states that a member can be seen to come into.
var OnStates = []reducer.Word{
	reducer.WordIdle, reducer.WordBusy, reducer.WordBlocked, reducer.WordLimited, reducer.WordError, reducer.WordOff,
}

// OnEvents are the values for an event.
func OnEvents() []string {
	all := []string{OnMail, OnUrgentMail, OnOverdue}
	for _, s := range OnStates {
		all = append(all, string(s))
	}
	return append(all, OnUsage)
}

// Deadline is the timeout as a duration.
func (o On) Deadline() time.Duration {
	d, _ := time.ParseDuration(o.Timeout)
	return cmp.Or(d, OnTimeout)
}

// Matches reports whether the command is to be run on an event.
func (o On) Matches(event string) bool {
	return slices.Contains(o.Event, event) || event == OnUrgentMail && slices.Contains(o.Event, OnMail)
}

// IsReached reports whether a member that had used what is in before reaches a limit with what is in now.
func (o On) IsReached(before, now reducer.Figures) bool {
	limit := uint64(o.Tokens)
	isTokens := limit > 0 && before.TotalTokens < limit && now.TotalTokens >= limit
	return isTokens || o.Cost > 0 && before.Cost < o.Cost && now.Cost >= o.Cost
}

// OnFor returns the commands for a member.
func (c *Config) OnFor(member wire.Name) (all []On) {
	isFor := func(who string) bool { return slices.Contains(c.named(who), member) }
	for _, o := range c.On {
		if len(o.Who) == 0 || slices.ContainsFunc(o.Who, isFor) {
			all = append(all, o)
		}
	}
	return all
}

// named returns whom a word names: a member, or the members of a group or with a role, behind an @.
func (c *Config) named(word string) (names []wire.Name) {
	group, isGroup := strings.CutPrefix(word, "@")
	if !isGroup {
		return []wire.Name{wire.Name(word)}
	}
	if members, isListed := c.Groups[wire.Name(group)]; isListed {
		return members
	}
	for _, n := range slices.Sorted(maps.Keys(c.Members)) {
		if group != "" && c.Members[n].Role == group {
			names = append(names, n)
		}
	}
	return names
}
