// Package aswire is for programs that speak one of the vocabularies that atm did not make up, and know nothing else of it:
// what they are told of an agent, and what they are asked.
//
//	acp.go           the older Agent Client Protocol: a session's record, answers, cancelling
//	daemonstream.go  the stream of events that the daemon of agent-team-mail folds
//	missiond.go      a member as a slot of missiond's PTY manager
package aswire

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/reducer/history"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// ACPSession returns a member's current session as clients of the older ACP keep it.
func ACPSession(t *teamdir.Team, name wire.Name) (json.RawMessage, error) {
	running, err := t.Running(name)
	events, unreadable := t.Box(name).Log().Tail(func(e *wire.Event) bool {
		return e.Kind == wire.SessionStart && e.Source == wire.SourceACP && e.Text("source") == "startup"
	})
	if err := cmp.Or(err, unreadable); err != nil {
		return nil, err
	}
	s, ok := history.AcpSession(events, reducer.Evidence{Now: time.Now(), IsRunnerLocked: running})
	if !ok {
		return nil, fmt.Errorf("the session of %s is unknown: %w", name, session.ErrNotFound)
	}
	return s.MarshalJSON()
}

// Answer answers a question on the older ACP wire by an event, for the program that feeds that stream and follows
// `atm events NAME --follow --as-wire acp`. Of two answers at once the first one counts.
func Answer(ctx context.Context, t *teamdir.Team, q ask.Question, r ask.Answer) (o control.Outcome, err error) {
	answer, detail, err := encode(q, r)
	if err != nil {
		return o, err
	}
	log := t.Box(q.Agent).Log()
	isQuestion := func(e *wire.Event) bool {
		b := e.Body()
		return e.Kind == wire.ConfirmRequired && cmp.Or(b.Text(wire.FieldID), string(b.Raw("id"))) == q.ID
	}
	events, err := log.Tail(func(e *wire.Event) bool { return isQuestion(e) || e.At.Before(q.Since) })
	if err != nil {
		return o, err
	}
	if len(events) > 0 && isQuestion(&events[0]) {
		answer = foreign.PermissionResponse(&events[0], answer)
	}
	e, err := foreign.Adopt(answer)
	if err != nil {
		return o, err
	}
	e.Source = wire.SourceCLI
	e = e.With(wire.FieldID, q.ID).With(wire.FieldBy, r.By).With("decision", r.Decision())
	if err := checkOpen(t, q); err != nil { // under the lock it only reads the events that have come since
		return o, err
	}
	unlock, err := t.Store.Lock(ctx, "team", lockfile.Exclusive, nil)
	if err != nil {
		return o, err
	}
	defer unlock()
	err = checkOpen(t, q)
	if err == nil {
		err = log.Append(ctx, e)
	}
	return control.Outcome{Done: "answered", Detail: detail}, err
}

// checkOpen returns an error if a question does not wait any more.
func checkOpen(t *teamdir.Team, q ask.Question) error {
	open, err := presence.Questions(t, q.Agent)
	isThis := func(other ask.Question) bool { return other.ID == q.ID && other.Since.Equal(q.Since) }
	if err == nil && !slices.ContainsFunc(open, isThis) {
		err = fmt.Errorf("%s: %w any more", q.ID, ask.ErrNoQuestion)
	}
	return err
}

// encode encodes the answer; detail names the option.
func encode(q ask.Question, r ask.Answer) (line []byte, detail string, err error) {
	if q.Kind == reducer.ClientTool {
		return toolResult(q, r)
	}
	o, err := q.Pick(r)
	answer := foreign.RequestPermissionResult{Outcome: "selected", OptionID: o.ID}
	if err != nil && !r.Deny {
		return nil, "", failure.Usage("%s", err).WithHint("`atm pending` lists the options")
	} else if err != nil {
		answer = foreign.RequestPermissionResult{Outcome: "cancelled"}
	}
	line, err = answer.MarshalJSON()
	return line, cmp.Or(o.ID, "cancelled"), err
}

// toolResult encodes the answer to a tool call of the client's: the option is the tool's output.
func toolResult(q ask.Question, r ask.Answer) (line []byte, detail string, err error) {
	answer := foreign.ToolExecutionResult{RequestID: q.ID, ToolCallID: q.Call, Success: !r.Deny}
	detail = r.Option
	if r.Deny {
		detail = cmp.Or(r.Reason, "rejected")
		answer.Error = &detail
	} else if answer.Output = json.RawMessage(r.Option); !json.Valid(answer.Output) {
		answer.Output = wire.Quote(r.Option)
	}
	line, err = answer.MarshalJSON()
	return line, detail, err
}

// Cancel asks a member that reports its turn on the older ACP wire to cancel it, by an event for the program that
// feeds that stream. For any other member it does nothing.
func Cancel(ctx context.Context, t *teamdir.Team, name wire.Name) (o control.Outcome, err error) {
	state, err := t.State(name)
	if err != nil {
		return o, err
	}
	shown, log := state.Session(), t.Box(name).Log()
	isOlderACP := func(e *wire.Event) bool {
		return e.Session == shown.ID && foreign.IsOlderACP(e)
	}
	if !shown.Turn.IsOpen() {
		return o, nil
	}
	events, err := log.Tail(func(e *wire.Event) bool { return isOlderACP(e) || e.Seq <= shown.Turn.Seq })
	if err != nil || len(events) == 0 || !isOlderACP(&events[0]) {
		return o, err
	}
	params, turn := foreign.SessionCancelParams{SessionID: shown.ID}, ""
	if !shown.Turn.IsGenerated {
		turn = shown.Turn.ID
		params.TurnID = &turn
	}
	line, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": "session/cancel", "params": params})
	e := wire.Event{Kind: wire.SessionCancel, Source: wire.SourceCLI, Session: shown.ID, TurnID: turn, Wire: line}
	return control.Outcome{Done: "asked to cancel", Detail: turn}, log.Append(ctx, e)
}
