package reducer

import "time"

// A Claim is what a program shows of itself, as its runner reads it from what it declares, its title or its screen.
type Claim struct {
	Activity  Activity
	Source    Source
	Since     time.Time // since when it claims that
	QuietFrom time.Time // since when it has shown nothing new
	IsAsked   bool      // it shows what it asks: no other source counts more
	IsPrompt  bool      // it shows that it waits for a text

	Declared time.Time // when what it declares last changed; zero: it declares nothing
}

// missedEnd is how many times StaleAfter a program must be quiet at its prompt before its turn counts as over although
// a hook has reported only its start. Claude Code does not report the end of a prompt that another hook refused.
const missedEnd = 15

// Weigh reports whether a claim counts now against what events have said, or else when to weigh it again; zero: not
// before something changes. staleAfter is StaleAfter, but in tests.
//
// Where hooks report the turns, a claim counts when it says something else than they do, is not overruled (see Source),
// and is newer than the hook's word; but that the agent waits for a person or has reached a limit, which hooks may not
// know, need not be newer.
func (s *State) Weigh(c Claim, now time.Time, staleAfter time.Duration) (counts bool, again time.Time) {
	counts = true
	overrules := func(other Source, heard time.Time) {
		fresh := heard.Add(staleAfter)
		switch isFresh := !heard.IsZero() && now.Before(fresh); {
		case c.Source.MayOverrule(c.Activity, other, isFresh):
		case isFresh && c.Source.MayOverrule(c.Activity, other, false):
			counts, again = false, later(again, fresh)
		default:
			counts = false
		}
	}
	if !c.Declared.IsZero() {
		overrules(FromDeclared, c.Declared)
	}
	t, seen := s.Turn(), Turn{Activity: c.Activity}
	if !s.HasHooks() || c.IsAsked || seen.Word() == t.Word() {
		return counts, again
	}
	overrules(t.Source, t.HeardAt)
	if isOld := c.Since.Before(t.HeardAt) && c.Source.rank() < t.Source.rank(); !isOld || seen.Word() == WordBlocked || seen.Word() == WordLimited {
		return counts, again
	}
	if c.Activity != Idle || !c.IsPrompt {
		return false, time.Time{}
	}
	again = later(again, later(c.QuietFrom, t.HeardAt).Add(missedEnd*staleAfter))
	return counts && !now.Before(again), again
}

// HasHooks reports whether the program's own hooks report its turns. opencode's begin with its first session.
func (s *State) HasHooks() bool {
	return s.Run != nil && (s.Run.Sessions > 0 || s.Turn().HasSessionStart)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
