package reducer

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/agentteammail/atm/wire"
)

// Input is one thing that happened, and when. At most one of the pointers and
// ids is set; none is a tick of the clock.
type Input struct {
	Now   time.Time
	Event *wire.Event // appended to the agent's log

	Arrived *Mail   // lies unread in the inbox
	Taken   wire.ID // is no longer unread
	Settled wire.ID // is answered, acknowledged or withdrawn
}

// Step is the reducer: the state after an input, and what is to be done now.
// The state that is given is left as it was.
func Step(s State, in Input) (State, []Effect) {
	s = s.Clone()
	return s, s.Apply(in)
}

// Apply is Step in place, for folding many.
func (s *State) Apply(in Input) []Effect {
	var out []Effect
	if e := in.Event; e != nil {
		was := s.caution()
		ask, ok := s.event(e, in.Now)
		if ask != nil {
			out = append(out, Effect{Do: Ask, Waiting: ask})
		}
		if s.caution() != was {
			s.mail.changes++
		}
		if !ok {
			in.Event = nil
		}
	}
	return s.mail.step(s.caution(), in, out)
}

// caution is the word by which messages are handed over: blocked while any
// session asks something, also one that is not shown.
func (s *State) caution() Word {
	for i := range s.Turns {
		if s.Turns[i].Waiting != nil {
			return WordBlocked
		}
	}
	return s.Turn().Word()
}

// happening is an event on its way into the state.
type happening struct {
	*wire.Event
	seq     uint64
	at      time.Time
	session string
	turn    string // the turn's id; "": it names none

	read wire.Body
	has  bool

	trouble string    // the newest error
	since   time.Time // of that
	ask     *Waiting  // what is asked of people now, whole
}

// body is what the event says beyond the common fields. Most need none of it.
func (h *happening) body() *wire.Body {
	if !h.has {
		h.read, h.has = h.Event.Body(), true
	}
	return &h.read
}

// mayName reports whether any member's name may begin so. Reading a wire takes
// longer than all the rest of an event, and most have not what is looked for.
func (h *happening) mayName(beginnings ...string) bool {
	if len(h.Extra) > 0 || h.has {
		return true
	}
	for _, s := range beginnings {
		for rest := h.Wire; ; {
			i := bytes.Index(rest, []byte(s))
			if i < 0 {
				break
			}
			if i > 0 && rest[i-1] == '"' {
				return true
			}
			rest = rest[i+len(s):]
		}
	}
	return false
}

func (h *happening) time(name string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339Nano, h.body().Text(name))
	t = moment(t)
	return t, err == nil && !t.IsZero()
}

// ident is an id, which some write as a number.
func (h *happening) ident(name string) string {
	if s := h.body().Text(name); s != "" {
		return short(s)
	}
	if raw := h.body().Raw(name); len(raw) > 0 && len(raw) <= 20 && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9') {
		return string(raw)
	}
	return ""
}

// event folds one event. Only here, and in what it calls, is decided what an
// event means. It reports what is asked of people now, and whether the event
// was taken in: not one of another agent, and not one that was before.
func (s *State) event(e *wire.Event, now time.Time) (ask *Waiting, ok bool) {
	if s.Agent == "" {
		s.Team, s.Agent = e.Team, e.Agent
	}
	if e.Team != s.Team || e.Agent != s.Agent || e.Seq > 0 && e.Seq <= s.Seq {
		return nil, false
	}
	h := happening{Event: e, seq: e.Seq, at: e.At, session: short(e.Session), turn: short(e.TurnID)}
	if h.seq == 0 && s.Seq < math.MaxUint64 {
		h.seq = s.Seq + 1 // of no log
	}
	s.Seq = max(s.Seq, h.seq)
	if e.EventID != "" {
		id := mark(e.EventID)
		if s.Recent.has(id) {
			return nil, false
		}
		s.Recent.add(id, keptRecent)
	}
	if h.at.IsZero() {
		h.at = now
	}
	h.at = moment(h.at)

	switch e.Kind {
	// The mailbox's own: they are about messages. Only what the agent did itself
	// is a sign of its life.
	case wire.EventRead:
		s.Read, s.Heard = h.at, h.at
	case wire.EventAcked, wire.EventAnnounced, wire.EventInjected:
		if e.Field("by") == "" { // else who held it under a lease did that
			s.Heard = h.at
		}
	case wire.EventWithdrawn, wire.EventInjecting, wire.EventInjectionFailed, wire.EventTaken, wire.EventReturned, wire.EventAside, wire.EventAgain:

	// Counted, whatever the turn does. The first and the last are said about an
	// agent, not by it.
	case wire.StreamFailed, "error":
		s.Errors = plus(s.Errors, 1)
		s.LastError, s.ErrorAt = clip(h.body().Text("error_summary", "summary", "message", "error"), maxError), h.at
		if e.Kind == "error" {
			s.Heard = h.at
		}
	case wire.DroppedCounters:
		d, _ := h.body().Uint("dropped")
		u, _ := h.body().Uint("unknown")
		s.Dropped.Dropped, s.Dropped.Unknown = plus(s.Dropped.Dropped, d), plus(s.Dropped.Unknown, u)

	// Known, and no evidence about the turn.
	case "agent_output", "draft_ready", "goal_complete", "status_update", "server_request",
		"user_message_chunk", "plan", "available_commands_update", "current_mode_update",
		"config_option_update", "session_info_update", "usage_update":
		s.Heard = h.at

	// The runner's, about the whole program.
	case "spawned":
		s.spawned(&h)
		s.Heard = h.at
	case "exited":
		s.exited(&h)
	case "restarting":
		if s.Run != nil {
			s.Run = copied(s.Run)
			s.Run.Over = true
		}
		detail := "restarting"
		if n, ok := h.body().Uint("attempt"); ok {
			detail = "restart " + strconv.FormatUint(n, 10)
		}
		s.starts(&h, detail)

	case "session_end":
		s.sessionEnds(&h)
	default:
		if !s.turnEvent(&h) {
			s.Unknown = plus(s.Unknown, 1)
		}
	}
	switch word := s.Turn().Word(); {
	case word != WordOff && !(word == WordError && s.Run != nil && s.Run.Over):
		s.Gone = time.Time{}
	case s.Gone.IsZero():
		s.Gone = h.at
	}
	return h.ask, true
}

// turnEvent folds an event about one session, if it is one.
func (s *State) turnEvent(h *happening) (known bool) {
	// What was adopted carries them plainly.
	if h.session == "" && len(h.Wire) > 0 && h.mayName("session") {
		h.session = short(h.body().Text("session"))
	}
	if h.turn == "" && len(h.Wire) > 0 && h.mayName("turn") {
		h.turn = short(h.body().Text("turn_id"))
	}
	if s.before(h) {
		_, known = new(Turn).take(h)
		h.ask = nil
		return known
	}
	h.trouble, h.since = s.LastError, s.ErrorAt
	var fresh Turn
	t, at := s.turnOf(h, &fresh)
	was := t.Word()
	news, known := t.take(h)
	if known && !t.ended() && t.Activity != Error {
		s.Heard = h.at
	}
	if news { // t is no more what it points at
		s.show(h, t, at, was)
		if h.Kind == "session_start" {
			s.Run = s.Run.hosts(h.body().Text("source"))
		}
	}
	return known
}

// before reports whether an event is late, about a turn of the program before,
// which like this one named no session. A start is not: ids may be used again.
func (s *State) before(h *happening) bool {
	if h.session != "" || h.turn == "" || len(s.Past) == 0 {
		return false
	}
	i := slices.Index(s.Past, mark(h.turn))
	if i >= 0 && h.Kind == wire.TurnStarted {
		if s.Past = slices.Delete(s.Past, i, i+1); len(s.Past) == 0 {
			s.Past = nil
		}
		return false
	}
	return i >= 0
}

func plus(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}
