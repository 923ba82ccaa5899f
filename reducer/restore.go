package reducer

import (
	"encoding/base64"
	"time"

	"github.com/agentteammail/atm/wire"
)

// A state is read back without encoding/json: every command that says how an
// agent is does it, and reflection costs more there than all the rest.

// restored is the state that a text holds, as encoding/json wrote it.
func restored(data []byte) (State, error) {
	p := wire.ReadParts(data)
	s := State{
		Team: wire.Name(p.Text("team")), Agent: wire.Name(p.Text("agent")), Seq: p.Uint("seq"),
		Heard: p.Time("heard"), Gone: p.Time("gone"), Read: p.Time("read"),
		Errors: p.Uint("errors"), LastError: p.Text("last_error"), ErrorAt: p.Time("error_at"), Unknown: p.Uint("unknown"),
		Recent: marksIn(p, "recent"), Past: marksIn(p, "past"),
	}
	if d, ok := p.Object("dropped"); ok {
		s.Dropped = Dropped{d.Uint("dropped"), d.Uint("unknown")}
	}
	if r, ok := p.Object("run"); ok {
		s.Run = &Run{
			PID: r.Int("pid"), Started: r.Time("started"), Signal: r.Text("signal"),
			Over: r.Bool("over"), Locked: r.Bool("locked"), Begun: r.Bool("begun"), Left: r.Bool("left"),
		}
		if r.Raw("code") != nil {
			code := r.Int("code")
			s.Run.Code = &code
		}
	}
	for _, t := range p.Objects("turns") {
		s.Turns = append(s.Turns, turnIn(t))
	}
	return s, p.Err()
}

func turnIn(p wire.Parts) Turn {
	t := Turn{
		Session: p.Text("session"), ID: p.Text("turn_id"), Own: p.Bool("own"), Thread: p.Text("thread_id"), Transport: p.Text("transport"),
		Status: TurnStatus(p.Text("turn_status")), Activity: Activity(p.Text("activity")), Detail: p.Text("detail"),
		Since: p.Time("since"), Began: p.Time("began"),
		Begun: p.Bool("begun"), Came: p.Uint("came"), Spoke: p.Uint("spoke"), Heard: p.Time("heard"),
		Over: marksIn(p, "over"), Calls: marksIn(p, "calls"),
		Soft: p.Bool("soft"), Anew: int(p.Int("anew")), Next: p.Bool("next"), Lost: p.Bool("lost"),
	}
	if l, ok := p.Object("last_turn"); ok {
		t.Last = &Last{
			ID: l.Text("turn_id"), Status: l.Text("status"), At: l.Time("at"),
			Duration: time.Duration(l.Int("duration_ms")) * time.Millisecond, Why: l.Text("error"), Cut: l.Bool("cut"),
		}
	}
	if w, ok := p.Object("waiting_on"); ok {
		w := waitingIn(w)
		t.Waiting = &w
	}
	for _, w := range p.Objects("behind") {
		t.Behind = append(t.Behind, waitingIn(w))
	}
	return t
}

func waitingIn(p wire.Parts) Waiting {
	return Waiting{
		ID: p.Text("id"), Call: p.Text("tool_call_id"), Kind: p.Text("kind"), Prompt: p.Text("prompt"), Tool: p.Text("tool"),
		Input: p.Text("input"), Dialog: p.Text("dialog"), Options: p.Raw("options"), Since: p.Time("since"), Cut: p.Bool("cut"),
	}
}

// marksIn reads what marks.MarshalJSON wrote.
func marksIn(p wire.Parts, key string) marks {
	b, err := base64.StdEncoding.DecodeString(p.Text(key))
	if err != nil || len(b)%6 != 0 {
		p.Fail(key, "no marks")
		return nil
	}
	if len(b) == 0 {
		return nil
	}
	m := make(marks, 0, len(b)/6)
	for ; len(b) > 0; b = b[6:] {
		m = append(m, uint64(b[0])<<40|uint64(b[1])<<32|uint64(b[2])<<24|uint64(b[3])<<16|uint64(b[4])<<8|uint64(b[5]))
	}
	return m
}
