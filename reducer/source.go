package reducer

import (
	"time"

	"github.com/agentteammail/atm/wire"
)

// A Source is what an activity rests on. Which of several counts is one table, the strongest first:
//
//	source    who says it                                                    and when
//	protocol  a program that speaks ACP                                      always
//	hook      the program's hooks                                            at some points of a turn
//	event     a program of your own (atm event, a file)                      likewise
//	declared  the program itself, with a status sequence (OSC 7501)          always
//	file      a file that the program keeps of its state, or its server       always
//	title     the title of its window                                        always
//	progress  its progress bar (OSC 9;4), which counts as a title does       always
//	screen    what a driver reads from its screen                            always
//	runner    whoever started the program: that it starts, ends, cannot      then
//
// A claim counts against one of the same or of a weaker source. Against a stronger source that is fresh, heard within
// StaleAfter, it does not count. When that is stale, the claim counts if it says that the agent waits for a person; any
// other only against a hook or event, because between two of its points a hook says nothing: not that a person interrupted
// the turn, for example. Then it has to be newer than what they say, with the exceptions that State.Weigh names.
//
// What only claims to be a question authorises nothing: answers rest on a dialog that was read.
type Source string

// The sources. "" is an event that names none, as those of an older atm.
const (
	FromProtocol Source = "protocol"
	FromHook     Source = "hook"
	FromEvent    Source = "event"
	FromDeclared Source = "declared"
	FromFile     Source = "file"
	FromTitle    Source = "title"
	FromProgress Source = "progress"
	FromScreen   Source = "screen"
	FromRunner   Source = "runner"
)

// StaleAfter is how long a source counts as fresh after it was last heard.
const StaleAfter = 2 * time.Second

func (s Source) rank() int {
	switch s {
	case FromProtocol:
		return 4
	case FromHook, FromEvent:
		return 3
	case FromDeclared, FromFile:
		return 2
	case FromTitle, FromProgress:
		return 1
	}
	return 0
}

// mayOverrule reports whether an activity that rests on s counts against what another source said last. isFresh: that
// was within StaleAfter.
func (s Source) mayOverrule(a Activity, other Source, isFresh bool) bool {
	switch {
	case s.rank() >= other.rank():
		return true
	case isFresh:
		return false
	}
	return other.rank() == FromHook.rank() || a == Confirming || a == AwaitingInput
}

// restsOn returns what an event rests on.
func (e *event) restsOn() Source {
	switch e.source {
	case wire.SourceACP:
		return FromProtocol
	case wire.SourceHook:
		return FromHook
	case wire.SourcePTY:
		switch s := Source(e.Text("evidence")); s {
		case FromDeclared, FromFile, FromTitle, FromProgress:
			return s
		}
		switch e.kind {
		case wire.Spawned, wire.Exited, wire.Restarting:
			return FromRunner
		}
		return FromScreen
	}
	return FromEvent
}
