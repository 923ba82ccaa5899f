package programs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/agents"
	drivers "github.com/agentteammail/atm/internal/driver/agents"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

// Ask asks the server of a member's program, if it has one, what the program's hooks do not tell: that a turn has failed,
// what it asks, what was answered, which conversation it shows. That is noted in the member's log, for those who only read it. It
// returns what the server says, nil if it says nothing, and the member's state with that. Nobody is told of it who does not look.
func Ask(ctx context.Context, t *teamdir.Team, name wire.Name, s *reducer.State, all []Program) (*agents.Session, *reducer.State) {
	p, ok := lastUsed(all)
	if !ok || p.Server == "" {
		return nil, s
	}
	says, err := p.Says()
	if err != nil { // it may show another one
		if p, err = p.Now(t, name); err == nil {
			says, err = p.Says()
		}
	}
	if err != nil {
		return nil, s
	}
	all[slices.IndexFunc(all, func(old Program) bool { return old.PID == p.PID })].Session = p.Session
	untold := untoldBy(says, s.SessionOf(says.ID), time.Now())
	if len(untold) == 0 {
		return says, s
	}
	t.Box(name).Log().Append(ctx, untold...) // whoever may not write sees it all the same
	copied := &reducer.State{}
	if data, err := json.Marshal(s); err != nil || json.Unmarshal(data, copied) != nil {
		return says, s
	}
	for _, e := range untold {
		e.Team, e.Agent, e.At = s.Team, s.Agent, time.Now()
		copied.Apply(&e)
	}
	return says, copied
}

// dialogTime is how long after its hook has told of a request a program may take to open the dialog.
const dialogTime = 2 * time.Second

// untoldBy returns the events that are missing in a session for what its program says. ses may be nil.
func untoldBy(says *agents.Session, ses *reducer.Session, now time.Time) (untold []wire.Event) {
	add := func(kind, turn string, pairs ...any) {
		e := wire.Event{Source: wire.SourceHook, Kind: kind, Session: says.ID, TurnID: turn}.With("transport", "hook")
		for pair := range slices.Chunk(pairs, 2) {
			e = e.With(pair[0].(string), pair[1])
		}
		untold = append(untold, e)
	}
	if ses == nil || ses.Activity == reducer.Exited {
		add(wire.SessionStart, "", "source", "asked")
		return untold
	}
	turn := ses.Turn.ID
	if name, _, _ := strings.Cut(turn, agents.Again); says.FailedTurn != "" && says.FailedTurn == name && ses.Turn.IsOpen() {
		why := wire.Clip(says.FailedWhy, 1000)
		add(wire.StreamError, "", wire.FieldErrorSummary, why)
		add(wire.TurnCompleted, turn, wire.FieldStatus, reducer.Failed)
		add(wire.TurnIdle, turn)
		if until := drivers.LimitEnd(why, now, now); !until.IsZero() {
			add(wire.StateChange, "", wire.FieldNew, string(reducer.Limited), wire.FieldDetail, why, "until", until.UTC().Format(time.RFC3339))
		}
		for i := range untold { // several may look at once
			untold[i].EventID = fmt.Sprintf("asked/%s/%s", untold[i].Kind, turn)
		}
		return untold
	}
	for i, q := range says.Questions {
		if slices.ContainsFunc(ses.Requests, func(w reducer.Waiting) bool { return Asked(says, w, ses.Requests) == &says.Questions[i] }) {
			continue
		}
		kind := wire.ConfirmRequired
		if q.Kind == reducer.Question {
			kind = wire.WaitingForInput
		}
		add(kind, ses.Turn.ID, wire.FieldID, q.ID, "tool", q.Tool, "prompt", q.Prompt, "dialog", q.Dialog, wire.FieldOptions, q.Options)
	}
	asks := says.Activity == reducer.Confirming || says.Activity == reducer.AwaitingInput
	for _, w := range ses.Requests {
		isOther := !asks || w.ID != "" && len(says.Questions) > 0
		if isOther && Asked(says, w, ses.Requests) == nil && now.Sub(w.Since) > dialogTime {
			add(wire.StateChange, ses.Turn.ID, "previous", string(ses.Activity), wire.FieldNew, string(says.Activity), wire.FieldID, w.ID)
		}
	}
	return untold
}

// Asked returns the question of a program's server that one of a session's requests is; nil: it asks none. A hook has told of it
// under an id of ours.
func Asked(says *agents.Session, w reducer.Waiting, all []reducer.Waiting) *ask.Question {
	if says == nil {
		return nil
	}
	isOnly := len(all) == 1 && len(says.Questions) == 1
	i := slices.IndexFunc(says.Questions, func(q ask.Question) bool {
		return q.ID == w.ID || wire.IsID(w.ID) && (isOnly || q.Tool == w.Tool && q.Prompt == w.Prompt)
	})
	if i < 0 {
		return nil
	}
	return &says.Questions[i]
}

// AnswerAtServer answers a question that a member's program asks through its server, which is asked whether it asks that
// still. isAsked: it has one. why is for the model; isGiven: it gets it.
func AnswerAtServer(ctx context.Context, t *teamdir.Team, name wire.Name, q ask.Question, o ask.Option, why string) (isAsked, isGiven bool, err error) {
	p, ok := Bound(t, name)
	if !ok || p.Server == "" {
		return false, false, nil
	}
	says, err := p.Says()
	if err != nil {
		return true, false, err
	}
	s, err := t.State(name)
	if err == nil && !slices.ContainsFunc(s.Requests(), func(w reducer.Waiting) bool { return w.ID == q.ID }) {
		err = fmt.Errorf("%s: %w any more", q.Short(), ask.ErrNoQuestion)
	}
	if err == nil {
		isGiven, err = says.Answer(ctx, q, o, why)
	}
	return true, isGiven, err
}
