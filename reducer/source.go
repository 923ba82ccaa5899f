package reducer

import (
	"time"

	"github.com/agentteammail/atm/wire"
)

// A Source is what an activity rests on:
//
//	source    who says it
//	protocol  a program that speaks ACP
//	hook      the program's hooks
//	event     a program of your own (atm event, a file)
//	declared  the program itself, with a status sequence (OSC 7501)
//	file      a file that the program keeps of its state, or its server
//	screen    what a driver reads from its screen
//	runner    whoever started the program: that it starts, ends, cannot
//
// One of them counts at a time: who tells is believed (State.Tells). Of a program that tells its turns its screen adds that it
// asks something, that it asks no more what only a hook has told of, and that it has been at its prompt for MissedEnd although
// it is said to work. What only claims to be a question authorises nothing: answers rest on a dialog that was read.
type Source string

// The sources. "" is an event that names none, as those of an older atm.
const (
	fromProtocol Source = "protocol"
	fromHook     Source = "hook"
	fromEvent    Source = "event"
	FromDeclared Source = "declared"
	FromFile     Source = "file"
	FromScreen   Source = "screen"
	fromRunner   Source = "runner"
)

// StaleAfter is how long a source counts as fresh after it was last heard.
const StaleAfter = 2 * time.Second

// MissedEnd is how many times StaleAfter a program must be at its prompt before its turn counts as over although nobody has
// told its end. Claude Code does not report the end of a prompt that another hook refused.
const MissedEnd = 15

// Tells reports whether the program itself tells its turns, by hooks, a server or a protocol: then nothing else is believed of
// them. opencode does from its first session on, or from the first turn in one that goes on.
func (s *State) Tells() bool {
	ses := s.Session()
	return s.Run != nil && (s.Run.Sessions > 0 || ses.HasStart || ses.Source == fromHook || ses.Source == fromProtocol)
}

// restsOn returns what an event rests on.
func (e *event) restsOn() Source {
	switch e.source {
	case wire.SourceACP:
		return fromProtocol
	case wire.SourceHook:
		return fromHook
	case wire.SourcePTY:
		switch s := Source(e.Text("evidence")); s {
		case FromDeclared, FromFile:
			return s
		}
		switch e.kind {
		case wire.Spawned, wire.Exited, wire.Restarting:
			return fromRunner
		}
		return FromScreen
	}
	return fromEvent
}
