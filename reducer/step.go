package reducer

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/agentteammail/atm/wire"
)

// Input is one thing that happened, and when. At most one of the others is set; with none it is a tick of the clock.
type Input struct {
	Now     time.Time
	Event   *wire.Event // appended to the agent's log
	Arrived *Mail       // lies in the inbox; or what is known of it now
	Settled wire.ID     // is answered, acknowledged or withdrawn
}

// Apply is the reducer: it changes the state by an input and says what is to be done now.
func (s *State) Apply(in Input) []Effect {
	switch {
	case in.Event != nil:
		s.applyEvent(in.Event, in.Now)
	case in.Arrived != nil:
		s.mail.add(*in.Arrived, in.Now)
	case in.Settled != "":
		s.mail.remove(in.Settled)
	}
	s.mail.expire(in.Now)
	return s.mail.decide(s.handoverWord(), in.Now)
}

// handoverWord is the word by which messages are handed over: blocked while any session asks something,
// also one that is not shown.
func (s *State) handoverWord() Word {
	if len(s.Requests()) > 0 {
		return WordBlocked
	}
	return s.Turn().Word()
}

// event is an event on its way into the state.
type event struct {
	wire.Body                          // what it says beyond these
	kind, source, session, turn string // "": it names none
	seq                         uint64
	at                          time.Time

	lastError string // the agent's newest error
	errorAt   time.Time
	isUnknown bool // the event's kind
	isOnWire  bool // it came in another vocabulary, and not from a hook
}

// idOf is a field that is an id, which some write as a number.
func (e *event) idOf(name string) string {
	if n, ok := e.Uint(name); ok {
		return strconv.FormatUint(n, 10)
	}
	return shortID(e.Text(name))
}

// applyEvent folds one event, unless it is another agent's or was folded before.
func (s *State) applyEvent(logged *wire.Event, now time.Time) {
	if s.Agent == "" {
		s.Team, s.Agent = logged.Team, logged.Agent
	}
	if logged.Team != s.Team || logged.Agent != s.Agent || logged.Seq > 0 && logged.Seq <= s.Seq {
		return
	}
	e := event{
		Body: logged.Body(), kind: logged.Kind, source: logged.Source, at: jsonTime(logged.At),
		lastError: s.LastError, errorAt: s.ErrorAt,
		isOnWire: logged.Wire != nil && logged.Source != "hook",
	}
	e.session, e.turn = shortID(e.Text("session")), shortID(e.Text("turn_id"))
	e.seq = cmp.Or(logged.Seq, s.Seq+1) // 0: it comes from no log
	s.Seq = max(s.Seq, e.seq)
	if id := shortID(logged.EventID); id != "" {
		if slices.Contains(s.EventIDs, id) {
			return
		}
		s.EventIDs = remember(s.EventIDs, id, maxEventIDs)
	}
	if e.at.IsZero() {
		e.at = jsonTime(now)
	}
	before := s.handoverWord()
	s.fold(&e)
	if s.handoverWord() != before {
		s.mail.changes++
	}
	s.mail.applyEvent(logged, now)
}

// quietKinds are the known kinds that say nothing about a turn of their own, and whether they are a sign
// of life: those that others say about the agent, or that tell of an end, are none.
var quietKinds = map[string]bool{
	wire.EventRead: true, wire.EventAcked: true, wire.EventAnnounced: true, wire.EventInjected: true,
	wire.EventWithdrawn: false, wire.EventInjecting: false, wire.EventInjectionFailed: false,
	wire.EventReturned: false, wire.EventAgain: false, wire.EventStage: false,
	"message_taken": false, "message_aside": false, // in the logs of the first generation
	wire.StreamFailed: false, wire.DroppedCounters: false, "error": true,
	"spawned": true, "exited": false, "restarting": false, "session_end": false,
	"session_new": false, "session_load": false, "session_cancel": false, // a client asks for it
	"agent_output": true, "draft_ready": true, "goal_complete": true, "status_update": true,
	"user_message_chunk": true, "plan": true, "available_commands_update": true,
	"current_mode_update": true, "config_option_update": true, "session_info_update": true, "usage_update": true,
}

// fold is the table of what each kind of event does to the state. The kinds that are about a turn stand in Turn.apply.
func (s *State) fold(e *event) {
	isLife, isQuiet := quietKinds[e.kind]
	isLife = isLife && e.Text("by") == "" // by another member, who held a message under a lease
	switch e.kind {
	case wire.EventRead, wire.EventInjected:
		if e.Text("as") == "" { // else it was only told of it
			s.Read = e.at
		}
	case wire.StreamFailed, "error":
		s.Errors++
		summary := e.Text("error_summary", "summary", "message", "error")
		if code := e.Text("code"); code != "" {
			summary = code + ": " + summary
		}
		s.LastError, s.ErrorAt = wire.Clip(summary, maxText), e.at
	case wire.DroppedCounters:
		dropped, _ := e.Uint("dropped")
		unknown, _ := e.Uint("unknown")
		s.Dropped.Dropped += min(dropped, math.MaxUint64-s.Dropped.Dropped)
		s.Dropped.Unknown += min(unknown, math.MaxUint64-s.Dropped.Unknown)
	case "spawned":
		s.applySpawned(e)
	case "exited":
		s.applyExited(e)
	case "restarting":
		s.applyRestarting(e)
	case "session_end":
		s.endSession(e)
	default:
		if !isQuiet {
			isLife = s.foldTurn(e)
		}
	}
	if isLife {
		s.Heard = e.at
	}
	word := s.Turn().Word()
	if word != WordOff && (word != WordError || s.Run == nil || !s.Run.HasExited) {
		s.Gone = time.Time{}
	} else if s.Gone.IsZero() {
		s.Gone = e.at
	}
}

// foldTurn folds an event about one session, and reports whether it is a sign of life. What is about a turn of an
// earlier program, which like this one named no session, is late; but a start is not, since ids may be used again.
func (s *State) foldTurn(e *event) (isLife bool) {
	isPast := e.session == "" && slices.Contains(s.PastTurns, e.turn)
	if isPast && e.kind == wire.TurnStarted {
		s.PastTurns, isPast = forget(s.PastTurns, e.turn), false
	}
	t, i := s.turnFor(e)
	if isPast {
		t, i = Turn{}, -1
	}
	before := t.Word()
	isNews := t.apply(e)
	switch {
	case e.isUnknown:
		s.Unknown++
		return false
	case isPast:
		return false
	case i >= 0:
		s.Turns[i] = t
	}
	if isNews {
		s.keep(e, t, before)
		isNewSession := e.kind == "session_start" && slices.Contains([]string{"", "startup", "resume"}, e.Text("source"))
		if isNewSession && s.Run != nil && !s.Run.HasExited {
			s.Run.Sessions++
		}
	}
	return !t.isOver() && t.Activity != Error
}
