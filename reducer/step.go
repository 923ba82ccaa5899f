package reducer

import (
	"hash/fnv"
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
	if in.Event != nil {
		out = s.event(in.Event)
	}
	return s.mail.step(s, in, out)
}

// event folds one event. Only here is decided what an event means.
func (s *State) event(e *wire.Event) (out []Effect) {
	if s.Agent == "" {
		s.Team, s.Agent = e.Team, e.Agent
	}
	if e.Team != s.Team || e.Agent != s.Agent || e.Seq > 0 && e.Seq <= s.Seq {
		return nil // another's log, or folded before
	}
	s.Seq = max(s.Seq, e.Seq)
	if s.repeated(e) {
		return nil
	}
	switch e.Kind {
	// The mailbox's own: they are about messages, not about the turn.
	case wire.EventRead:
		s.Read, s.Heard = later(s.Read, e.At), later(s.Heard, e.At)
		return nil
	case wire.EventAcked:
		s.Heard = later(s.Heard, e.At)
		return nil
	case wire.EventAnnounced, wire.EventWithdrawn, wire.EventInjecting, wire.EventInjected, wire.EventInjectionFailed:
		return nil
	// Counted, whatever the turn does.
	case "stream_error", "error":
		s.Errors++
		b := e.Body()
		s.LastError = clip(b.Text("error_summary", "summary", "message", "error"), 512)
		s.heard(e)
		return nil
	case "dropped_counters":
		b := e.Body()
		d, _ := b.Uint("dropped")
		u, _ := b.Uint("unknown")
		s.Dropped.Dropped, s.Dropped.Unknown = add(s.Dropped.Dropped, d), add(s.Dropped.Unknown, u)
		return nil
	}
	t := s.turn(e)
	was, asked := t.Word(), t.Waiting
	b := e.Body()
	id := e.TurnID
	if id == "" {
		id = b.Text("turn_id")
	}
	switch e.Kind {
	case "turn_started":
		if t.over(id) || t.Status == TurnBusy && id != "" && t.ID == id {
			t.thread(b, false) // late, or again
			break
		}
		t.begin(e, id)
		t.thread(b, true)
		t.doing(Thinking, "")

	case "turn_completed", "turn_complete":
		if id == "" {
			id = t.ID
		}
		if !t.names(id) {
			break
		}
		if t.Status == TurnIdle && t.ID != "" {
			t.ended(e, id, b) // its idle came first
			break
		}
		if t.Status == TurnTerminal && t.Last != nil && t.Last.ID == id {
			break
		}
		t.ID = id
		t.thread(b, true)
		t.ended(e, id, b)
		t.Status = TurnTerminal
		t.doing(Idle, "")

	case "turn_idle":
		if id == "" {
			id = t.ID
		}
		if !t.names(id) {
			break
		}
		t.ID = id
		t.thread(b, true)
		t.close()
		t.Status = TurnIdle
		t.doing(Idle, "")

	case "message_delta", "agent_message_chunk", "agent_thought_chunk":
		if t.works(e, id) {
			a := Responding
			if e.Kind == "agent_thought_chunk" {
				a = Thinking
			}
			t.doing(a, "")
		}

	case "tool_call_start", "tool_call":
		if t.works(e, id) {
			t.doing(ToolRunning, clip(b.Text("tool", "tool_name", "title", "name"), 80))
		}

	case "tool_call_update":
		switch b.Text("status") {
		case "completed", "failed":
			t.toolEnded(e, id, b)
		case "in_progress":
			if t.works(e, id) {
				t.doing(ToolRunning, clip(or(b.Text("tool", "title", "name"), t.Detail), 80))
			}
		}

	case "tool_call_end":
		t.toolEnded(e, id, b)

	case "thread_active":
		if t.works(e, id) && t.Word() != WordBusy {
			t.doing(Thinking, "")
		}

	case "waiting_for_input":
		t.waits(id, &Waiting{ID: b.Text("id"), Kind: "prompt", Prompt: clip(b.Text("prompt", "message"), 1024), Since: e.At}, AwaitingInput, "question")

	case "confirm_required":
		w := &Waiting{ID: b.Text("id"), Kind: "permission", Prompt: clip(b.Text("prompt", "message"), 1024), Tool: clip(b.Text("tool", "tool_name", "title"), 80), Since: e.At}
		if raw := b.Raw("options"); len(raw) <= 16<<10 {
			w.Options = slices.Clone(raw)
		}
		t.waits(id, w, Confirming, "permission")

	case "state_change":
		t.changed(e, id, b)

	case "session_start":
		s.Gone = time.Time{}
		if b.Text("source") == "compact" && t.Status == TurnBusy {
			break // in the middle of a turn
		}
		t.close()
		t.Status = TurnIdle
		t.doing(Idle, "")

	case "session_end":
		t.cut(e)
		t.doing(Exited, clip(b.Text("reason"), 80))
		s.Gone = e.At

	case "spawned":
		s.Run = &Run{Started: e.At}
		if pid, ok := b.Uint("pid"); ok && pid < math.MaxInt32 {
			s.Run.PID = int64(pid)
		}
		s.Gone = time.Time{}
		t.cut(e)
		t.doing(Starting, "")

	case "exited":
		t.cut(e)
		detail := ""
		if s.Run == nil {
			s.Run = &Run{}
		} else {
			r := *s.Run
			s.Run = &r
		}
		s.Run.Over, s.Run.Signal = true, clip(b.Text("signal"), 32)
		if code, ok := b.Uint("code"); ok && code < math.MaxInt32 {
			n := int64(code)
			s.Run.Code = &n
			if n != 0 {
				detail = "exit " + strconv.FormatInt(n, 10)
			}
		}
		t.doing(Exited, or(s.Run.Signal, detail))
		s.Gone = e.At

	case "restarting":
		t.cut(e)
		detail := "restarting"
		if n, ok := b.Uint("attempt"); ok {
			detail = "restart " + strconv.FormatUint(n, 10)
		}
		t.doing(Starting, detail)

	case "agent_output", "draft_ready", "goal_complete", "status_update", "server_request",
		"user_message_chunk", "plan", "available_commands_update", "current_mode_update",
		"config_option_update", "session_info_update", "usage_update":
		// Known, and no evidence about the turn.

	default:
		if s.Unknown < math.MaxUint64 {
			s.Unknown++
		}
	}
	if w := t.Word(); w != was || t.Since.IsZero() {
		t.Since = e.At
		s.mail.changed()
		if w == WordOff && len(s.Turns) > 1 && e.Kind == "session_end" {
			s.fallBack()
		}
	}
	s.heard(e)
	if t.Waiting != nil && t.Waiting != asked {
		w := *t.Waiting
		out = append(out, Effect{Do: Ask, Waiting: &w})
	}
	return out
}

// heard notes a sign of life.
func (s *State) heard(e *wire.Event) {
	switch e.Kind {
	case "session_end", "exited":
		return
	}
	s.Heard = later(s.Heard, e.At)
	if e.At.After(s.Gone) && s.Turn().Word() != WordOff {
		s.Gone = time.Time{}
	}
}

// repeated reports whether an event of this id is among the newest.
func (s *State) repeated(e *wire.Event) bool {
	if e.EventID == "" {
		return false
	}
	h := fnv.New64a()
	h.Write([]byte(e.EventID))
	sum := h.Sum64()
	if slices.Contains(s.Recent, sum) {
		return true
	}
	if len(s.Recent) >= keptRecent {
		s.Recent = append(s.Recent[:0], s.Recent[1:]...)
	}
	s.Recent = append(s.Recent, sum)
	return false
}

// turn is the session that an event belongs to, which becomes the one shown.
func (s *State) turn(e *wire.Event) *Turn {
	n := len(s.Turns)
	if n > 0 && (e.Session == "" || s.Turns[n-1].Session == e.Session) {
		return &s.Turns[n-1]
	}
	for i := range s.Turns {
		if s.Turns[i].Session == e.Session {
			t := s.Turns[i]
			s.Turns = append(append(s.Turns[:i], s.Turns[i+1:]...), t)
			return &s.Turns[n-1]
		}
	}
	if n >= keptTurns {
		s.Turns = append(s.Turns[:0], s.Turns[1:]...)
	}
	t := Turn{Session: e.Session, Status: TurnIdle, Activity: Unknown}
	if n > 0 {
		t.Thread, t.Transport = s.Turns[len(s.Turns)-1].Thread, s.Turns[len(s.Turns)-1].Transport
		if e.Session != "" && s.Turns[len(s.Turns)-1].Session == "" && s.Turns[len(s.Turns)-1].Activity == Starting {
			// What a runner started has named its session.
			s.Turns = s.Turns[:len(s.Turns)-1]
		}
	}
	s.Turns = append(s.Turns, t)
	return &s.Turns[len(s.Turns)-1]
}

// fallBack shows another session that still has a turn open when the one shown
// has ended.
func (s *State) fallBack() {
	for i := len(s.Turns) - 2; i >= 0; i-- {
		if t := s.Turns[i]; t.Status == TurnBusy {
			s.Turns = append(append(s.Turns[:i], s.Turns[i+1:]...), t)
			s.Gone = time.Time{}
			return
		}
	}
}

func add(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// clip cuts a text to so many bytes, at a character's end.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}
