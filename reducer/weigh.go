package reducer

import "time"

// A Claim is what a program shows of itself, as its runner reads it from what it declares, its title, its progress bar or
// its screen.
type Claim struct {
	Activity  Activity
	Source    Source
	Since     time.Time // since when it claims that
	QuietFrom time.Time // since when it has shown nothing new
	IsAsked   bool      // it shows what it asks: no hook knows better
	IsPrompt  bool      // it shows that it waits for a text

	Declared time.Time // when what it declares last changed; zero: it declares nothing
}

// MissedEnd is how many times StaleAfter a program must be quiet before its turn counts as over although a hook has
// reported only its start, or its title shows work. Claude Code does not report the end of a prompt that another hook
// refused.
const MissedEnd = 15

// Weigh reports whether a claim counts now against what events have said, or else when to weigh it again; zero: not
// before something changes. staleAfter is StaleAfter, but in tests.
//
// Against what hooks and events say a claim must not be overruled, as Source has it, and has to be newer: the program
// began to show that after the turn began, and after the agent's word changed. Older ones count too
//
//   - that it waits for a person, which hooks may not know,
//   - that it is at a usage limit, if hooks say that it is idle,
//   - that it is at a limit, or at its prompt, if hooks say that it is busy and the program is quiet: they missed the end.
//
// What was declared or shown in a title, and was logged, weighs nothing: what the program declares now does.
func (s *State) Weigh(c Claim, now time.Time, staleAfter time.Duration) (counts bool, again time.Time) {
	from, can := c.countsFrom(FromDeclared, c.Declared, staleAfter)
	ses, seen := s.Session(), Session{Activity: c.Activity}
	if can && !c.IsAsked && ses.Source.rank() >= FromHook.rank() && seen.Word() != ses.Word() {
		var fresh time.Time
		fresh, can = c.countsFrom(ses.Source, ses.HeardAt, staleAfter)
		from = later(from, fresh)
		if isOld := c.Since.Before(later(ses.Since, ses.Turn.Began)); can && isOld {
			var quiet time.Time
			quiet, can = c.countsBehind(ses, staleAfter)
			from = later(from, quiet)
		}
	}
	switch {
	case !can:
		return false, time.Time{}
	case now.Before(from):
		return false, from
	}
	return true, time.Time{}
}

// countsFrom returns from when on the claim may overrule another source that was heard last then; zero: no other was.
func (c *Claim) countsFrom(other Source, heard time.Time, staleAfter time.Duration) (from time.Time, can bool) {
	if heard.IsZero() || c.Source.mayOverrule(c.Activity, other, true) {
		return time.Time{}, true
	}
	return heard.Add(staleAfter), c.Source.mayOverrule(c.Activity, other, false)
}

// countsBehind returns from when on the claim counts although what hooks say of the turn is newer; zero: at once.
func (c *Claim) countsBehind(ses *Session, staleAfter time.Duration) (from time.Time, can bool) {
	isOver := c.Activity == Limited || c.Activity == Idle && c.IsPrompt
	seen := Session{Activity: c.Activity}
	switch word := ses.Word(); {
	case seen.Word() == WordBlocked, c.Activity == Limited && word == WordIdle:
		return time.Time{}, true
	case isOver && word == WordBusy:
		return later(c.QuietFrom, ses.HeardAt).Add(MissedEnd * staleAfter), true
	}
	return time.Time{}, false
}

// HasHooks reports whether the program's own hooks report its turns. opencode's begin with its first session.
func (s *State) HasHooks() bool {
	return s.Run != nil && (s.Run.Sessions > 0 || s.Session().HasStart)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
