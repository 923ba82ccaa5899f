package hook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/questions"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// A question is what a program asks. Its ID is the program's own, at most 80 bytes; "": the wait makes one. Without options
// it has allowOnce and deny. With the Dialog "question" it asks for a choice of its Options.
type question struct {
	ask.Question
	rule  *policy.Request // what the rules of team.toml see, whole, and not the words that the program shows; nil: no rule answers
	event wire.Event      // begins the event that opens the question: its Session and TurnID, and more fields
}

// The options of a question that names none.
var (
	allowOnce = ask.Option{ID: "allow", Label: "Allow once", Kind: "allow_once"}
	deny      = ask.Option{ID: "deny", Label: "Deny", Kind: "reject_once"}
)

// An asker is the program that asks.
type asker struct {
	program process.Info // no process below it may answer

	// now says what the program is seen to do: reducer.Confirming or reducer.AwaitingInput while it still asks, Unknown
	// if that cannot be seen. Anything else ends the wait. It is called every few seconds and before an answer counts.
	now func() reducer.Activity

	give func(ask.Answer) error // gives it the answer. Its error ends the wait, and is for whoever answered

	// onlyRules is for a program that atm runs, or that opens its dialog only after the hook: what no rule answers is left to
	// its runner, or to its server. Then nothing is recorded, and the error is errUnruled.
	onlyRules bool
}

var (
	// errOver says that the question was answered where it was asked, or is moot.
	errOver = errors.New("the question is over")
	// errAsked says that another process waits for the answer to a question of this ID.
	errAsked = errors.New("another process waits for the answer already")
	// errUnruled says that no rule answers the question: see asker.onlyRules.
	errUnruled = errors.New("no rule answers the question")

	errAnswered = errors.New("answered") // ends the wait
)

// closeWithin is how long the end of a wait may take: for the log's lock and the lead's mailbox.
const closeWithin = 2 * time.Second

// waitFor asks, and waits for the answer to a question of a program that atm does not run. Such a program asks on its own
// screen, and gives its hook the chance to answer too. What package questions says holds, and beside that:
//
//   - The question is in the agent's log, and so in `atm pending`: once somebody can answer it, or also if nobody can,
//     because team.toml has mistakes for example.
//   - Nobody answers a question that is over, or has another text in the log than the one that was asked.
//   - An answer comes through a socket, from a process whose rights are checked as a runner checks them, and never from a
//     file: agents can write files. A process below the asking program answers nothing.
//   - If this process is killed, the question stays open in the log, and only the program's own terminal can answer it.
//
// It returns nil when the program has the answer, errOver, or errAsked. If ctx is cancelled, the program no longer asks, and
// the log says so; at a deadline of ctx it still asks, so the question stays open for its own terminal. Either way the error
// is ctx's cause. Its goroutines have ended when it returns. On disk is AGENT/run/asks/HASH/control.sock meanwhile (package
// control).
func waitFor(ctx context.Context, s *app.Scope, q question, a asker) error {
	w := &wait{ctx: ctx, q: q, asker: a, scope: s}
	w.questions = questions.Questions{Owner: w, Agent: s.Me.Agent(), Patience: closeWithin}
	err := w.prepare()
	if a.onlyRules {
		return w.answerByRule(err)
	}
	var server *control.Server
	if err == nil {
		server, err = programs.ListenToQuestion(ctx, s.Team, s.Me.Agent(), w.q.ID)
	}
	if err != nil { // nobody can answer it
		return errors.Join(err, s.Me.Log().Append(ctx, questions.Opening(&w.q.Question, w.q.event)))
	}
	if server == nil {
		return errAsked
	}
	return w.serve(server)
}

// A wait is one call of waitFor: the control.Handler of its socket, and the questions.Owner of its question.
type wait struct {
	ctx   context.Context
	q     question
	asker asker

	scope  *app.Scope
	policy policy.Policy
	notice wire.ID // of the message about it
	end    context.CancelCauseFunc

	sync.WaitGroup // of all that goes on beside

	mu        sync.Mutex // guards what follows
	questions questions.Questions
	asked     *reducer.Waiting // as it is in the log; nil: not yet
	next      reducer.Activity // what an answer lets the program do, but for a rejection
}

func (w *wait) prepare() (err error) {
	q := &w.q
	q.Kind, q.Served = reducer.Permission, true
	q.ID = cmp.Or(q.ID, string(wire.NewID()))
	if wire.Clip(q.ID, 80) != q.ID { // the log's state would keep its hash
		return fmt.Errorf("the id of a question is longer than 80 bytes: %.100s", q.ID)
	}
	if w.notice = wire.ID(q.ID); !wire.IsID(q.ID) {
		w.notice = wire.NewID()
	}
	if len(q.Options) == 0 {
		q.Options = []ask.Option{allowOnce, deny}
	}
	if err := w.scope.Team.Store.MayAct(w.ctx); err != nil {
		return err
	}
	if w.policy, _, err = w.scope.Team.PolicyFor(w.scope.Me.Agent()); err != nil {
		return err
	}
	if _, isInAgent := w.scope.AgentOf(w.asker.program.PID); isInAgent && !w.asker.onlyRules { // no person has started it
		w.policy = w.policy.DenyOnly()
	}
	return nil
}

// rule returns what the rules decide.
func (w *wait) rule() policy.Decision {
	if w.q.rule == nil || w.q.rule.Tool == "" {
		return policy.Ask
	}
	return w.policy.Rules.Decide(*w.q.rule)
}

// serve asks, has others reach the question until it is answered or over, and closes it then.
func (w *wait) serve(server *control.Server) error {
	served, stop := context.WithCancel(context.WithoutCancel(w.ctx))
	w.Go(func() { server.Serve(served, w) })
	following, end := context.WithCancelCause(w.ctx)
	w.end = end
	err := watcher.Until(following, []watcher.Mailbox{w.scope.Me}, watcher.Options{Events: true}, func(e watcher.Entry) (isOver bool, err error) {
		w.Call(func() {
			if e == (watcher.Entry{}) {
				w.asker.now() // a first look, while it certainly asks
				err = w.questions.Open(w.q.Question, w.q.event, w.rule(), w.give)
			} else if over := w.checkOpen(); over == errOver { // a log that cannot be read now may be read later
				err = over
			}
		})
		return false, err
	})
	stop()
	w.Wait() // whoever has answered is told
	end(nil)
	server.Close()
	isUnclear := w.close()
	err = errors.Join(err, programs.RemoveQuestionDir(w.scope.Team, w.scope.Me.Agent(), w.q.ID))
	if isUnclear {
		w.seeAfter()
	}
	if context.Cause(following) == errAnswered {
		return nil
	}
	return err
}

// answerByRule gives the program the answer of a rule, whatever its runner sees and asks in that instant: the program has
// asked this process, and takes the first answer.
func (w *wait) answerByRule(err error) error {
	o := questions.Ruled(&w.q.Question, w.rule())
	if err != nil || o == nil {
		return errors.Join(errUnruled, err)
	}
	if err = w.scope.Me.Log().Append(w.ctx, questions.Opening(&w.q.Question, w.q.event)); err != nil {
		return err
	}
	a := ask.Answer{Option: o.ID, Deny: o.Denies(), By: ask.ByRule}
	if err = w.asker.give(a); err != nil {
		return errors.Join(errUnruled, err)
	}
	next := reducer.ToolRunning
	if a.Deny {
		next = reducer.Thinking
	}
	return w.Append(questions.Closing(&w.q.Question, w.q.event, o, a.By, next))
}

// find returns the question as the log has it, nil if it is over, and what an answer lets the program do.
func (w *wait) find() (found *reducer.Waiting, next reducer.Activity, err error) {
	s, err := w.scope.Team.State(w.scope.Me.Agent())
	if err != nil {
		return nil, "", err
	}
	for ses := range s.Sessions() {
		for _, r := range ses.Requests {
			if r.ID == w.q.ID && ses.Turn.IsOpen() {
				return &r, reducer.ToolRunning, nil
			} else if r.ID == w.q.ID {
				return &r, reducer.Idle, nil
			}
		}
	}
	return nil, "", nil
}

// checkOpen returns errOver unless the program still asks what it asked first.
func (w *wait) checkOpen() error {
	now, _, err := w.find()
	switch {
	case err != nil:
		return err
	case now == nil:
		return errOver
	case !now.Since.Equal(w.asked.Since) || now.Tool != w.asked.Tool || now.Prompt != w.asked.Prompt || now.Input != w.asked.Input:
		return errors.New("the log has another text for the question than was asked")
	}
	if a := w.asker.now(); a != reducer.Unknown && a != reducer.Confirming && a != reducer.AwaitingInput {
		w.questions.Close("", a)
		return errOver
	}
	return nil
}

// give gives the program the answer.
func (w *wait) give(a ask.Answer, _ ask.Option) error {
	err := w.asker.give(a)
	if err == nil {
		if a.Deny && w.next != reducer.Idle {
			w.next = reducer.Thinking
		}
		w.questions.Close("", w.next)
	}
	w.end(cmp.Or(err, errAnswered))
	return err
}

// close closes a question that nobody has answered, unless the log says that or it is still open, and withdraws the message
// about it. isUnclear says that nobody knows what the program does. It is quick: the program that has ended this process
// with a signal may not wait.
func (w *wait) close() (isUnclear bool) {
	if w.asked == nil {
		return false
	}
	isAsked, isLate := w.questions.Asked() != nil, errors.Is(w.ctx.Err(), context.DeadlineExceeded)
	if found, _, err := w.find(); isAsked && !isLate && err == nil && found != nil {
		isUnclear = true
		w.questions.Close("", reducer.Unknown)
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), closeWithin)
	defer cancel()
	notices.WithdrawRequest(limited, w.scope.Team, w.scope.Me, w.notice)
	return isUnclear
}

// seeAfter records that the program is seen to be idle or to have ended, if it is within a second and nothing else has
// happened. That it works is what the log has already.
func (w *wait) seeAfter() {
	closed, err := w.scope.Me.Log().LastSeq()
	for until := time.Now().Add(time.Second); err == nil && time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		a := w.asker.now()
		if a != reducer.Idle && a != reducer.Exited {
			continue
		}
		if last, err := w.scope.Me.Log().LastSeq(); err == nil && last == closed {
			e := wire.Event{Kind: wire.StateChange, Source: w.q.event.Source, Session: w.q.event.Session, TurnID: w.q.event.TurnID}
			w.Append(e.With("previous", string(reducer.Unknown)).With(wire.FieldNew, string(a)).With(wire.FieldID, w.q.ID))
		}
		return
	}
}

// CheckRight refuses more than a runner's: below a program that a person has started under another member's name, a process
// is that member's, even if it has removed from its environment that it is an agent's.
func (w *wait) CheckRight(right control.Right, pid int, by string) error {
	var members []wire.Address
	if right == control.Answer {
		members = programs.OwnersOf(w.scope.Team.Root(), process.Ancestors(pid))
	}
	for _, of := range members { // if they share it, it may be any one of them
		if of.Team != w.scope.Team.Name {
			return control.Refused(of.String() + " is of another team")
		}
		if err := w.policy.Check(policy.Answer, w.scope.Me.Agent(), policy.Actor{Name: of.Agent, IsAgent: true}); err != nil {
			return control.Refused(err.Error())
		}
		by = string(of.Agent)
	}
	err := w.scope.CheckRight(w.policy, w.scope.Me.Agent(), w.asker.program.PID, right, pid, by)
	if err != nil {
		return control.Refused(err.Error())
	}
	return nil
}

func (w *wait) Answer(ctx context.Context, a ask.Answer) (control.Outcome, error) {
	return w.questions.Answer(ctx, a)
}

func (w *wait) Call(f func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	return true
}

func (w *wait) Check(a ask.Answer) error {
	switch {
	case w.asked == nil:
		return &control.Error{Code: control.Locked, Message: "it is only just asking; try again"}
	case !a.Since.IsZero() && !a.Since.Equal(w.asked.Since):
		return control.Refused("that question is closed")
	}
	err := w.checkOpen()
	if err == errOver {
		err = questions.ErrGone
	}
	return err
}

// Append appends an event, one that closes the question also after the end of ctx. What is as late as its turn is not asked.
func (w *wait) Append(e wire.Event) (err error) {
	if e.Kind == wire.StateChange {
		limited, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), closeWithin)
		defer cancel()
		return w.scope.Me.Log().Append(limited, e)
	}
	if err = w.scope.Me.Log().Append(w.ctx, e); err == nil {
		w.asked, w.next, err = w.find()
	}
	if err == nil && w.asked == nil {
		return errOver
	}
	return err
}

func (w *wait) MayRule() error { return nil }

// Tell sends a message; close withdraws it.
func (w *wait) Tell(q ask.Question, isOver bool) {
	if !isOver {
		w.Go(func() {
			notices.NotifyRequest(w.ctx, w.scope.Team, w.scope.Me, q, w.notice, &wire.Origin{Via: "hook", UID: w.scope.Origin().UID})
		})
	}
}
