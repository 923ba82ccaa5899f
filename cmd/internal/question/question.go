// Package question waits for the answer to one question of a program that atm does not run.
//
// Such a program asks on its own screen, and gives a hook that it waits for the chance to answer too. That calls Wait. What
// you may rely on:
//
//   - The question is in the agent's log, and so in `atm pending`: once somebody can answer it, or also if nobody can,
//     because team.toml has mistakes for example.
//   - A rule of team.toml answers at once. Else whoever may answer the agent's questions gets a message, which is
//     withdrawn when the question is over.
//   - The first answer counts; a later one is told who was first. Nobody answers a question that is over, or has another
//     text than the one that was asked.
//   - An answer comes through a socket, from a process whose rights are checked as a runner checks them, and never from a
//     file: agents can write files. A process below the asking program answers nothing.
//   - If this process is killed, the question stays open in the log, and only the program's own terminal can answer it.
//
// On disk is AGENT/run/asks/HASH/control.sock while Wait runs (package control).
package question

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// Question is what a program asks, and what goes with it. Its ID is the program's own, at most 80 bytes; "": Wait makes
// one. Its Kind is reducer.Permission ("") or reducer.Question; without options a permission has AllowOnce and Deny. With the
// Dialog "question" a permission asks for a choice of its Options.
type Question struct {
	ask.Question

	// Rule is what the rules of team.toml see; nil: no rule answers. Its texts come from the program itself, whole, and
	// not from the words that it shows.
	Rule *policy.Request

	// Event begins the event that opens the question: its Session and TurnID, and more fields. Source is wire.SourceHook if
	// it names none.
	Event wire.Event
}

// The options of a question that names none.
var (
	AllowOnce = ask.Option{ID: "allow", Label: "Allow once", Kind: "allow_once"}
	Deny      = ask.Option{ID: "deny", Label: "Deny", Kind: "reject_once"}
)

// Options say how to wait. The zero value is right for a hook that its program has started.
type Options struct {
	// Program is the program that asks; zero: the one that has started this process. No process below it may answer.
	Program process.Info

	// Now says what the program is seen to do: reducer.Confirming or reducer.AwaitingInput while it still asks, Unknown
	// if that cannot be seen. Anything else ends the wait. It is called every few seconds and before an answer counts.
	// nil: the log alone tells.
	Now func() reducer.Activity

	// Give gives the program the answer, and whoever answered gets its error. nil: Wait's caller does it afterwards.
	Give func(ask.Answer) error

	// OnlyRules is for a program that atm runs, or that opens its dialog only after the hook: what no rule answers is left to
	// its runner, or to its server. Then Wait records nothing and returns ErrUnruled.
	OnlyRules bool

	Log *slog.Logger // for what is not worth an end of the wait; nil: silence
}

var (
	// ErrOver says that the question was answered where it was asked, or is moot.
	ErrOver = errors.New("the question is over")
	// ErrAsked says that another process waits for the answer to a question of this ID.
	ErrAsked = errors.New("another process waits for the answer already")
	// ErrUnruled says that no rule answers the question: see Options.OnlyRules.
	ErrUnruled = errors.New("no rule answers the question")

	errAnswered = errors.New("answered") // ends the wait
)

// closeWithin is how long the end of a wait may take: for the log's lock and the lead's mailbox.
const closeWithin = 2 * time.Second

// Wait asks, and returns the answer, ErrOver, or ErrAsked. If ctx is cancelled, the program no longer asks, and Wait
// records that; at a deadline of ctx it still asks, so the question stays open for its own terminal. Either way Wait
// returns ctx's cause. It has two goroutines, a watcher's, and the server's; all have ended when it returns.
func Wait(ctx context.Context, team *teamdir.Team, box *maildir.Box, q Question, o Options) (ask.Answer, error) {
	w := &wait{q: q, o: o, team: team, box: box}
	err := w.prepare(ctx)
	if o.OnlyRules && (err != nil || w.ruledOption() == nil) {
		return ask.Answer{}, errors.Join(ErrUnruled, err)
	}
	if err == nil {
		err = w.serve(ctx, func(ctx context.Context) error {
			return watcher.Until(ctx, []watcher.Mailbox{box}, watcher.Options{Events: true}, func(e watcher.Entry) (isOver bool, err error) {
				if e == (watcher.Entry{}) {
					return false, w.open(ctx)
				}
				return false, w.lookAgain()
			})
		})
	}
	if w.answer != nil {
		return *w.answer, nil
	}
	if !w.isRecorded && !errors.Is(err, ErrAsked) {
		err = errors.Join(err, w.record(ctx))
	}
	return ask.Answer{}, err
}

// wait is one call of Wait.
type wait struct {
	refusing
	q Question
	o Options

	team   *teamdir.Team
	box    *maildir.Box
	scope  *app.Scope
	policy policy.Policy
	notice wire.ID // of the message about it
	end    context.CancelCauseFunc

	isRecorded bool // the question is in the log

	mu     sync.Mutex       // guards what follows
	asked  *reducer.Waiting // as it is in the log; nil: not yet
	next   reducer.Activity // what an answer lets the program do, but for a rejection
	answer *ask.Answer      // nil: nobody has answered
	after  reducer.Activity // what the program was seen to do instead of asking
}

func (w *wait) prepare(ctx context.Context) (err error) {
	w.scope = app.Of(w.team)
	q := &w.q
	q.Kind, q.Event.Source = cmp.Or(q.Kind, reducer.Permission), cmp.Or(q.Event.Source, wire.SourceHook)
	if q.Kind == reducer.Question {
		q.Dialog = "question"
	}
	q.Dialog = cmp.Or(q.Dialog, "permission")
	q.ID = cmp.Or(q.ID, string(wire.NewID()))
	if wire.Clip(q.ID, 80) != q.ID { // the log's state would keep its hash
		return fmt.Errorf("the id of a question is longer than 80 bytes: %.100s", q.ID)
	}
	if w.notice = wire.ID(q.ID); !wire.IsID(q.ID) {
		w.notice = wire.NewID()
	}
	if len(q.Options) == 0 && q.Kind == reducer.Permission {
		q.Options = []ask.Option{AllowOnce, Deny}
	}
	if w.o.Program == (process.Info{}) {
		w.o.Program, _ = process.Program()
	}
	if w.o.Log == nil {
		w.o.Log = slog.New(slog.DiscardHandler)
	}
	if err := w.team.Store.MayAct(ctx); err != nil {
		return err
	}
	if w.policy, _, err = w.team.PolicyFor(w.box.Agent()); err != nil {
		return err
	}
	if _, isInAgent := w.scope.AgentOf(w.o.Program.PID); isInAgent && !w.o.OnlyRules { // no person has started it
		w.policy = w.policy.DenyOnly()
	}
	return nil
}

// serve has others reach the question while follow runs, which a first answer ends as well, and closes it then.
func (w *wait) serve(ctx context.Context, follow func(context.Context) error) error {
	name := w.box.Agent()
	server, err := programs.ListenToQuestion(ctx, w.team, name, w.q.ID)
	if err != nil {
		return err
	}
	if server == nil {
		return ErrAsked
	}
	var serving sync.WaitGroup
	served, stop := context.WithCancel(context.WithoutCancel(ctx))
	serving.Go(func() { server.Serve(served, w) })
	following, end := context.WithCancelCause(ctx)
	w.end = end
	err = follow(following)
	stop()
	serving.Wait() // whoever has answered is told
	end(nil)
	server.Close()
	isCancelled := w.close(ctx)
	err = errors.Join(err, programs.RemoveQuestionDir(w.team, name, w.q.ID))
	if isCancelled {
		w.seeAfter(ctx)
	}
	return err
}

// record appends the event that opens the question.
func (w *wait) record(ctx context.Context) error {
	q, e := w.q, w.q.Event
	if e.Kind = wire.ConfirmRequired; q.Kind == reducer.Question {
		e.Kind = wire.WaitingForInput
	}
	e = e.With(wire.FieldID, q.ID)
	for _, pair := range [][2]string{{"prompt", q.Prompt}, {"tool", q.Tool}, {"input", q.Input}} {
		if pair[1] != "" {
			e = e.With(pair[0], pair[1])
		}
	}
	if q.Dialog == "question" {
		e = e.With("dialog", q.Dialog)
	}
	if len(q.Options) > 0 {
		e = e.With(wire.FieldOptions, q.Options)
	}
	err := w.box.Log().Append(ctx, e)
	w.isRecorded = err == nil
	return err
}

// open appends the question, and has a rule answer it or notifies whoever may.
func (w *wait) open(ctx context.Context) error {
	if isRuled, err := w.openInLog(ctx); err != nil || isRuled {
		return err
	}
	err := notices.NotifyRequest(ctx, w.team, w.box, w.q.Question, w.notice, &wire.Origin{Via: "hook", UID: w.scope.Origin().UID})
	if err != nil {
		w.o.Log.Error("telling the lead about a question", "err", err)
	}
	return nil
}

// openInLog appends the question, and has a rule answer it.
func (w *wait) openInLog(ctx context.Context) (isRuled bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.record(ctx); err != nil {
		return false, err
	}
	isInTurn := false
	if w.asked, isInTurn, err = w.inLog(); err != nil {
		return false, err
	}
	if w.asked == nil { // as late as its turn
		return false, ErrOver
	}
	if w.next = reducer.ToolRunning; !isInTurn {
		w.next = reducer.Idle
	}
	w.seen() // a first look, while it certainly asks
	if o := w.ruledOption(); o != nil {
		return true, w.accept(ctx, ask.Answer{Deny: o.Denies(), By: ask.ByRule}, *o)
	}
	return false, nil
}

// ruledOption returns the option that a rule chooses; nil: none.
func (w *wait) ruledOption() *ask.Option {
	if w.q.Rule == nil || w.q.Rule.Tool == "" || w.q.Kind != reducer.Permission {
		return nil
	}
	rule := w.policy.Rules.Decide(*w.q.Rule)
	if rule != policy.Allow && rule != policy.Deny {
		return nil
	}
	return w.q.Once(rule == policy.Deny)
}

// inLog returns the question as the log has it, nil if it is over, and whether a turn is open that it belongs to.
func (w *wait) inLog() (found *reducer.Waiting, isInTurn bool, err error) {
	s, err := w.team.State(w.box.Agent())
	if err != nil {
		return nil, false, err
	}
	for _, ses := range s.Sessions {
		for _, r := range ses.Requests {
			if r.ID == w.q.ID {
				return &r, ses.Turn.IsOpen(), nil
			}
		}
	}
	return nil, false, nil
}

// checkOpen returns ErrOver unless the program still asks what it asked first.
func (w *wait) checkOpen() error {
	now, _, err := w.inLog()
	switch {
	case err != nil:
		return err
	case now == nil:
		return ErrOver
	case !now.Since.Equal(w.asked.Since) || now.Tool != w.asked.Tool || now.Prompt != w.asked.Prompt || now.Input != w.asked.Input:
		return errors.New("the log has another text for the question than was asked")
	}
	if a := w.seen(); a != reducer.Unknown && a != reducer.Confirming && a != reducer.AwaitingInput {
		w.after = a
		return ErrOver
	}
	return nil
}

func (w *wait) seen() reducer.Activity {
	if w.o.Now == nil {
		return reducer.Unknown
	}
	return w.o.Now()
}

// lookAgain ends the wait if the question is over. A log that cannot be read now may be read later.
func (w *wait) lookAgain() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.checkOpen(); errors.Is(err, ErrOver) {
		return err
	}
	return nil
}

// accept gives the program the answer, and records it.
func (w *wait) accept(ctx context.Context, a ask.Answer, o ask.Option) error {
	a.Option = o.ID
	if w.o.Give != nil {
		if err := w.o.Give(a); err != nil {
			w.end(err)
			return err
		}
	}
	w.answer = &a
	e := w.closing(w.next)
	if a.Deny && w.next != reducer.Idle {
		e = w.closing(reducer.Thinking)
	}
	w.append(ctx, e.With("answer", o.Label).With(wire.FieldBy, a.By).With("option_id", o.ID).With("decision", a.Decision()))
	w.end(errAnswered)
	return nil
}

// closing returns the event that ends the question.
func (w *wait) closing(now reducer.Activity) wire.Event {
	previous := reducer.Confirming
	if w.q.Kind == reducer.Question {
		previous = reducer.AwaitingInput
	}
	e := wire.Event{Kind: wire.StateChange, Source: w.q.Event.Source, Session: w.q.Event.Session, TurnID: w.q.Event.TurnID}
	return e.With("previous", string(previous)).With(wire.FieldNew, string(now)).With(wire.FieldID, w.q.ID)
}

// append appends an event, also after the end of ctx.
func (w *wait) append(ctx context.Context, e wire.Event) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
	defer cancel()
	if err := w.box.Log().Append(limited, e); err != nil {
		w.o.Log.Error("recording the end of a question", "err", err)
	}
}

// close records how a question that was opened has ended, unless the log says so or it is still open, and withdraws the
// message about it. isUnclear says that it could not record what the program does instead. It is quick: the program that
// has ended this process with a signal may not wait.
func (w *wait) close(ctx context.Context) (isUnclear bool) {
	if w.asked == nil {
		return false
	}
	if isLate := errors.Is(ctx.Err(), context.DeadlineExceeded); w.answer == nil && !isLate {
		if now, _, err := w.inLog(); err == nil && now != nil {
			isUnclear = w.after == ""
			w.append(ctx, w.closing(cmp.Or(w.after, reducer.Unknown)))
		}
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
	defer cancel()
	if err := notices.WithdrawRequest(limited, w.team, w.box, w.notice); err != nil {
		w.o.Log.Error("withdrawing a question", "err", err)
	}
	return isUnclear
}

// seeAfter records that the program is seen to be idle or to have ended, if it is within a second and nothing else has
// happened. That it works is what the log has already.
func (w *wait) seeAfter(ctx context.Context) {
	log := w.box.Log()
	closed, err := log.LastSeq()
	for until := time.Now().Add(time.Second); w.o.Now != nil && err == nil && time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		a := w.o.Now()
		if a != reducer.Idle && a != reducer.Exited {
			continue
		}
		if last, err := log.LastSeq(); err == nil && last == closed {
			e := w.closing(a)
			w.append(ctx, e.With("previous", string(reducer.Unknown)))
		}
		return
	}
}
