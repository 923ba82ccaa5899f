package acp

import (
	"fmt"
	"strings"

	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

// Event says what has happened. One field is set.
type Event struct {
	Log    *wire.Event // for the agent's log
	Note   string      // for people alone: what it wrote to stderr, how it ended
	Said   string      // the same: words of the agent outside of a turn; more may follow
	Asked  *Question   // the agent asks something. The owner logs that
	Closed *Question   // it was withdrawn
	Heard  string      // the agent has the prompt of this turn: its first word in it, or its answer to the prompt
}

// Question is what the agent asks. It may ask several at once.
type Question struct {
	ask.Question // its Dialog is permission or question; the ID of an option is its number, from 1

	Rule policy.Decision // of the owner's rules

	// Then is what the agent does when it has an answer, or the question is withdrawn: the owner logs that.
	Then reducer.Activity
}

// maxUnreceived is how many bytes may wait for the receiver before nothing more is read from the agent.
const maxUnreceived = 4 << 20

// Events tells what happens, in order, until the agent has ended and everything is told.
func (a *Agent) Events() <-chan Event { return a.events }

func (a *Agent) tell(e Event) {
	a.queue = append(a.queue, e)
	a.unreceived += e.size()
}

func (e *Event) size() int {
	n := 100 + len(e.Note) + len(e.Said)
	switch {
	case e.Log != nil:
		n += len(e.Log.Extra) + len(e.Log.Wire)
	case e.Asked != nil:
		n += len(e.Asked.Prompt) + len(e.Asked.Input)
	}
	return n
}

// deliver sends the events.
func (a *Agent) deliver() {
	defer close(a.events)
	a.mu.Lock()
	defer a.mu.Unlock()
	for {
		events := a.queue
		a.queue = nil
		if len(events) == 0 && a.isOver {
			return
		}
		if len(events) == 0 {
			a.changed.Wait()
			continue
		}
		a.mu.Unlock()
		size := 0
		for _, e := range events {
			a.events <- e
			size += e.size()
		}
		a.mu.Lock()
		a.unreceived -= size
		a.changed.Broadcast()
	}
}

// isFull reports whether the agent must wait, for the receiver or because it does not read what it is told.
func (a *Agent) isFull() bool {
	return !a.hasExited && (a.unreceived > maxUnreceived || a.peer.unsentSize > maxLine)
}

func (a *Agent) note(text string) {
	if text = strings.Trim(text, "\r\n"); text != "" {
		a.tell(Event{Note: text})
	}
}

func (a *Agent) log(e wire.Event) {
	e.Source, e.Session = wire.SourceACP, string(a.session)
	if a.turn != nil {
		e.TurnID = a.turn.id
	}
	e = e.With("transport", wire.SourceACP).With("thread_id", string(a.session))
	a.tell(Event{Log: &e})
}

func (a *Agent) logError(code int, why string) {
	a.log(wire.Event{Kind: wire.StreamError}.With("code", fmt.Sprint(code)).With("error_summary", why))
}

// setActivity logs a change of activity. An open question, which the owner logs, hides every other activity.
func (a *Agent) setActivity(now reducer.Activity, detail string) {
	if a.activity == now || len(a.open) > 0 {
		return
	}
	e := wire.Event{Kind: wire.StateChange}.With("previous", string(a.activity)).With("new", string(now))
	if detail != "" {
		e = e.With("detail", detail)
	}
	a.activity = now
	a.log(e)
}
