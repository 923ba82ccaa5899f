package reducer

import (
	"slices"
	"strconv"
	"time"

	"github.com/agentteammail/atm/wire"
)

// over reports whether a turn is known to have ended.
func (t *Turn) over(id string) bool { return id != "" && slices.Contains(t.Over, id) }

// end notes that a turn is over.
func (t *Turn) end(id string) {
	if id == "" || t.over(id) {
		return
	}
	if len(t.Over) >= keptOver {
		t.Over = append(t.Over[:0], t.Over[1:]...)
	}
	t.Over = append(t.Over, id)
}

// begin opens a turn; one that was open is over, how is not known.
func (t *Turn) begin(e *wire.Event, id string) {
	if t.Status == TurnBusy {
		t.end(t.ID)
	}
	t.ID, t.Own = id, id == ""
	if t.Own {
		t.ID = "turn-" + strconv.FormatUint(e.Seq, 10)
	}
	t.Status, t.Began = TurnBusy, e.At
}

// thread takes over where the turn runs; known says that what was known
// before gives way.
func (t *Turn) thread(b wire.Body, known bool) {
	if s := b.Text("thread_id"); s != "" && (known || t.Thread == "") {
		t.Thread = clip(s, 256)
	}
	if s := b.Text("transport"); s != "" && (known || t.Transport == "") {
		t.Transport = clip(s, 64)
	}
}

// names reports whether an event that gives this turn id speaks of the current
// turn: it names none, or that one, or the first name of one that had none.
func (t *Turn) names(id string) bool {
	if id == "" || id == t.ID || t.ID == "" {
		return true
	}
	if t.Own && t.Status == TurnBusy && !t.over(id) {
		t.ID, t.Own = id, false
		return true
	}
	return false
}

// works takes an event as evidence that a turn is under way: the current one,
// or one whose start was not seen. False: it is late.
func (t *Turn) works(e *wire.Event, id string) bool {
	if t.over(id) {
		return false
	}
	if t.Status != TurnBusy || !t.names(id) {
		t.begin(e, id)
	}
	return true
}

// doing says what the program does now. What it waited for is past.
func (t *Turn) doing(a Activity, detail string) {
	t.Activity, t.Detail, t.Waiting = a, detail, nil
}

// ended notes how a turn ended.
func (t *Turn) ended(e *wire.Event, id string, b wire.Body) {
	status := Completed
	switch b.Text("status") {
	case "interrupted", "cancelled", "canceled":
		status = Interrupted
	case "failed", "error", "inProgress", "in_progress":
		status = Failed
	}
	t.record(e, id, status)
}

func (t *Turn) record(e *wire.Event, id, status string) {
	l := &Last{ID: id, Status: status, At: e.At}
	if !t.Began.IsZero() && e.At.After(t.Began) {
		l.Duration = e.At.Sub(t.Began)
	}
	t.Last = l
	t.end(id)
	t.Began = time.Time{}
}

// close is for a turn that is over without a word about how.
func (t *Turn) close() {
	t.end(t.ID)
	if t.Last != nil && t.Last.ID == t.ID {
		t.Began = time.Time{} // else a late completion may still use it
	}
}

// cut ends an open turn with its process.
func (t *Turn) cut(e *wire.Event) {
	if t.Status == TurnBusy {
		t.record(e, t.ID, Interrupted)
		t.Status = TurnTerminal
	}
}

// toolEnded is the end of a tool call: back to thinking. A dialog about
// another tool stays, and so does a turn that is over.
func (t *Turn) toolEnded(e *wire.Event, id string, b wire.Body) {
	if t.Status != TurnBusy && t.ID != "" && id == "" || t.over(id) {
		return
	}
	tool := b.Text("tool", "tool_name", "name")
	if t.Activity == Confirming && t.Waiting != nil && tool != "" && t.Waiting.Tool != "" && tool != t.Waiting.Tool {
		return
	}
	if t.works(e, id) {
		t.doing(Thinking, "")
	}
}

// waits says that the program asks something. The same thing said again, in
// other words perhaps, is still asked since it was first.
func (t *Turn) waits(id string, w *Waiting, a Activity, detail string) {
	if t.over(id) {
		return
	}
	if old := t.Waiting; old != nil && old.Kind == w.Kind && same(old.ID, w.ID) && same(old.Tool, w.Tool) && (w.Tool != "" || old.Tool != "" || same(old.Prompt, w.Prompt)) {
		merged := *old
		merged.ID, merged.Tool, merged.Prompt = or(old.ID, w.ID), or(old.Tool, w.Tool), or(old.Prompt, w.Prompt)
		if merged.Options == nil {
			merged.Options = w.Options
		}
		if merged.ID == old.ID && merged.Tool == old.Tool && merged.Prompt == old.Prompt && len(merged.Options) == len(old.Options) {
			return
		}
		w = &merged
	}
	t.doing(a, detail)
	t.Waiting = w
}

func same(a, b string) bool { return a == "" || b == "" || a == b }

// changed is what a runner saw on the screen, or a hook said.
func (t *Turn) changed(e *wire.Event, id string, b wire.Body) {
	detail := clip(b.Text("detail"), 200)
	switch a := Activity(b.Text("new")); a {
	case Thinking, Responding, ToolRunning:
		if t.works(e, id) {
			t.doing(a, detail)
		}
	case Idle:
		if t.Status != TurnIdle {
			t.close()
			t.Status = TurnIdle
		}
		t.doing(Idle, detail)
	case Confirming:
		t.waits(id, &Waiting{Kind: "permission", Prompt: detail, Since: e.At}, a, "permission")
	case AwaitingInput:
		t.waits(id, &Waiting{Kind: "prompt", Prompt: detail, Since: e.At}, a, "question")
	case Exited, Error:
		t.cut(e)
		t.doing(a, detail)
	case Starting:
		t.doing(a, detail)
	}
}
