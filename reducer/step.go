package reducer

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/wire"
)

// event is an event that is being folded.
type event struct {
	wire.Body
	kind, source, session, turn string // "": it names none
	seq                         uint64
	at                          time.Time

	lastError string // the agent's newest error
	errorAt   time.Time
	isUnknown bool // its kind is unknown
	isOnWire  bool // it came in another vocabulary, and not from a hook
}

// idOf returns a field that is an id; some programs write a number.
func (e *event) idOf(name string) string {
	if id := string(e.Raw(name)); id != "" && strings.Contains("-0123456789", id[:1]) {
		return shortID(id)
	}
	return shortID(e.Text(name))
}

// Apply is the reducer: it folds the next event of the agent's log, or one that is in no log. It reports whether the event
// counts: it is no other agent's, and no repeat.
func (s *State) Apply(logged *wire.Event) (counts bool) {
	if s.Agent == "" {
		s.Team, s.Agent = logged.Team, logged.Agent
	}
	if logged.Team != s.Team || logged.Agent != s.Agent || logged.Seq > 0 && logged.Seq <= s.Seq {
		return false
	}
	e := event{
		Body: logged.Body(), kind: logged.Kind, source: logged.Source, at: logged.At,
		seq:       cmp.Or(logged.Seq, s.Seq+1), // 0: it is in no log
		lastError: s.LastError, errorAt: s.ErrorAt,
		isOnWire: logged.Wire != nil && logged.Source != wire.SourceHook,
	}
	e.session, e.turn = shortID(e.Text("session")), shortID(e.Text("turn_id"))
	s.Seq = max(s.Seq, e.seq)
	if logged.IsFreshStart() {
		*s = State{Team: s.Team, Agent: s.Agent, Seq: s.Seq, FreshAt: e.at}
		return true
	}
	if id := shortID(logged.EventID); id != "" {
		id = logged.Source + " " + id // one source cannot use up the ids of another
		if slices.Contains(s.EventIDs, id) {
			return false
		}
		s.EventIDs = remember(s.EventIDs, id, maxEventIDs)
	}
	s.fold(&e)
	s.answerOnChannel(logged)
	return true
}

// agentKinds are the known kinds that are about the agent and not about a turn. True is a sign of life; an event that
// others report about the agent, or that reports an end, is none.
var agentKinds = map[string]bool{
	wire.EventRead: true, wire.EventAcked: true, wire.EventAnnounced: true, wire.EventInjected: true,
	wire.EventWithdrawn: false, wire.EventInjecting: false, wire.EventInjectionFailed: false,
	wire.EventReturned: false, wire.EventUnread: false, wire.EventStage: false,
	wire.StreamError: false, wire.DroppedCounters: false, wire.CommandFailed: false,
	wire.Spawned: true, wire.Exited: false, wire.Restarting: false, wire.SessionEnd: false,
	wire.SessionNew: false, wire.SessionLoad: false, wire.SessionCancel: false, // a client asks for it
	wire.AgentOutput: true, wire.DraftReady: true, wire.GoalComplete: true, wire.StatusUpdate: true,
	"user_message_chunk": true, "plan": true, "available_commands_update": true,
	"current_mode_update": true, "config_option_update": true, "session_info_update": true, wire.Usage: true,
}

// fold is the table of what each kind of event does to the state. Turn.apply has the kinds that are about a turn.
func (s *State) fold(e *event) {
	isLife, isAboutAgent := agentKinds[e.kind]
	isLife = isLife && e.Text(wire.FieldBy) == "" // another member did it, under a lease
	before := s.Session().Word()
	if s.asksBesideTurns(e) {
		s.askOnChannel(e)
		isLife, isAboutAgent = true, true
	}
	switch e.kind {
	case wire.EventRead, wire.EventInjected:
		if e.Text("as") == "" { // else it was only told about the message
			s.Read = e.at
		}
	case wire.StreamError:
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
	case wire.Usage:
		s.addUsage(e)
	case wire.DraftReady:
		s.addDraft(e)
	case wire.GoalComplete:
		s.addGoal(e)
	case wire.Spawned, wire.Exited, wire.Restarting:
		switch {
		case s.Shown.isHeldAgainst(e) || e.kind != wire.Spawned && s.runnerKnowsBetter(e):
			return
		case e.kind == wire.Spawned:
			s.applySpawned(e)
			s.closeUnnamedUsage()
		case e.kind == wire.Exited:
			s.applyExited(e)
		default:
			s.applyRestarting(e)
		}
	case wire.SessionEnd:
		if s.runnerKnowsBetter(e) && e.session == "" && e.source != wire.SourceHook {
			return
		}
		s.endSession(e)
	default:
		if !isAboutAgent {
			isLife = s.foldSession(e)
		}
	}
	if isLife {
		s.HeardAt = e.at
	}
	s.noteLimit(e)
	word := s.Session().Word()
	if word != before && (word == WordOff || word == WordStarting) {
		s.Asked = nil // with its program
	}
	if word != WordOff && (word != WordError || s.Run == nil || !s.Run.HasExited) {
		s.OffSince = time.Time{}
	} else if s.OffSince.IsZero() {
		s.OffSince = e.at
	}
}

// foldSession folds an event about one session and reports whether it is a sign of life.
func (s *State) foldSession(e *event) (isLife bool) {
	ses, isShown := s.sessionFor(e)
	if ses.isHeldAgainst(e) {
		return false
	}
	before, hadStart := ses.Word(), ses.HasStart
	isNews := ses.apply(e)
	switch {
	case e.isUnknown:
		s.Unknown++
		return false
	case isNews:
		s.store(e, ses, before, isShown)
	case isShown:
		s.Shown = ses
	}
	if source := e.Text("source"); isNews && e.kind == wire.SessionStart && e.session == "" && source != "resume" && source != "compact" {
		s.closeUnnamedUsage()
	}
	isStart := e.kind == wire.SessionStart && slices.Contains([]string{"", "startup", "resume"}, e.Text("source"))
	isFirst := isNews || !hadStart && ses.HasStart // else a repeat
	if s.isRun() {
		if isStart && isFirst {
			s.Run.Sessions++
		}
		s.Run.noteConversation(e, isStart && isFirst)
	}
	return !ses.isOver() && ses.Activity != Error
}
