package ptyrun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentteammail/atm/internal/agents/all"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/runinfo"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/ptyrun/internal/inbox"
	"github.com/agentteammail/atm/ptyrun/internal/loop"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/reducer/history"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// Handle is an agent that Start has started. Its methods may be called from any goroutine. When their ctx ends before the
// agent has done what they ask for, they return, and the agent may still do it; but a Prompt that it did not begin to
// take is not given.
type Handle struct {
	Leftovers []string // processes that a killed runner of the agent had left, and that Start has ended

	r       *runner
	from    uint64 // the last event in the agent's log before it started
	logged  broadcast
	stop    context.CancelFunc
	release func() error // the mailbox, if Start has opened it
	done    chan struct{}
	exit    Exit
	err     error
}

// Start starts the agent's program, and returns when it runs, or why it does not. It runs until its program has exited
// for good, ctx ends, or somebody stops it.
//
// What the program starts ends with it: see package process, and its Subreaper for what leaves no trace. No other child of
// this process is ended.
func Start(ctx context.Context, o Options) (*Handle, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("start an agent: %w", err)
	}
	mail, release := o.Mail, func() error { return nil }
	if mail == nil {
		var err error
		if mail, release, err = ownMail(ctx, o.temp); err != nil {
			return nil, fmt.Errorf("make a mailbox for the agent's events: %w", err)
		}
	} else if mail.hold == nil {
		if err := mail.Hold(ctx); err != nil {
			return nil, fmt.Errorf("start an agent: %w", err)
		}
		release = mail.Release
	}
	h, err := start(ctx, o, mail)
	if err != nil {
		release()
		return nil, err
	}
	h.release = sync.OnceValue(release)
	return h, nil
}

// ownMail makes a mailbox in a temporary directory for an agent that has none, until release.
func ownMail(ctx context.Context, temp string) (m *Mail, release func() error, err error) {
	dir, err := os.MkdirTemp(temp, "atm-run-")
	if err != nil {
		return nil, nil, err
	}
	m, release = &Mail{}, func() error { return os.RemoveAll(dir) }
	if m.Mailbox, err = mailbox.Create(ctx, filepath.Join(dir, "main", "agent")); err == nil {
		release = func() error { return errors.Join(m.Release(), m.Mailbox.Close(), os.RemoveAll(dir)) }
		m.hold, err = claim.HoldRunner(ctx, m.box().Store(), "agent")
	}
	if err != nil {
		return nil, nil, errors.Join(err, release())
	}
	return m, release, nil
}

func (o *Options) check() error {
	isInject := slices.Contains([]Inject{"", Body, Pointer, Off}, o.Inject)
	isRestart := slices.Contains([]Restart{"", Never, OnCrash, Always}, o.Restart)
	switch {
	case len(o.Command) == 0:
		return errors.New("it needs a command")
	case !isInject:
		return fmt.Errorf("there is no way %q to give it mail", o.Inject)
	case !isRestart:
		return fmt.Errorf("there is no rule %q to restart it", o.Restart)
	}
	return nil
}

func start(ctx context.Context, o Options, m *Mail) (h *Handle, err error) {
	if o.Hooks != "" && o.ACP == nil {
		if err = o.bringHooks(m); err != nil {
			return nil, err
		}
	}
	h = &Handle{from: m.state.Seq, done: make(chan struct{})}
	running, end := context.WithCancel(context.Background())
	r := newRunner(running, o, m)
	r.logged = h.logged.send
	h.r = r
	var opened []func() error // to close if it cannot be started
	defer func() {
		if err == nil {
			return
		}
		end()
		r.WaitLogged()
		r.notes.Wait()
		for _, shut := range slices.Backward(opened) {
			shut()
		}
		h = nil
	}()
	if err = r.openDir(); err != nil {
		return h, err
	}
	opened = append(opened, r.dir.Close)
	if err = r.writeHooks(); err != nil {
		return h, err
	}
	opened = append(opened, r.removeHooks)
	if err = process.CheckTable(); err != nil {
		return h, fmt.Errorf("run a program: %w", err)
	}
	last, err := h.endLastRun()
	if err != nil {
		return h, err
	}
	server, err := control.Listen(r.dir.Path())
	if err != nil {
		return h, err
	}
	opened = append(opened, server.Close)
	if err = r.startRecording(); err != nil {
		return h, err
	}
	opened = append(opened, r.closeRecording)
	if err := inbox.UndoGiven(ctx, r.Box, time.Time{}, r.HasAnswered); err != nil {
		r.Log.Error("making unread what a killed runner's program may not have seen", "err", err)
	}
	r.giveWorkBack(ctx) // after that: what was given out of it must not be given again
	found := watcher.Open(ctx, []watcher.Mailbox{r.Box}, watcher.Options{
		Messages: true, Existing: true, Events: true, After: map[wire.Address]uint64{r.Box.Address(): m.state.Seq},
	})
	opened = append(opened, found.Close)
	r.lastDriver = last.Driver
	if err = r.runInfo().Write(r.dir); err != nil { // before the program starts: its processes are found if this runner is killed
		return h, err
	}
	command, resumed := r.resume()
	if err = r.startProgram(command, resumed); err != nil {
		r.AppendChange(reducer.Starting, reducer.Error, err.Error(), "")
		return h, err
	}
	r.startHelpers(server, found)
	stopping, stop := context.WithCancel(ctx)
	h.stop = stop
	go func() {
		defer close(h.done)
		defer stop()
		r.loop(stopping.Done())
		end()
		h.err = r.shut(errors.Join(r.failed, found.Close(), server.Close()))
		h.exit = r.exit
	}()
	return h, nil
}

// endLastRun ends what the agent's last runner, which was killed, has left running, and returns what that had noted.
func (h *Handle) endLastRun() (runinfo.Info, error) {
	box := h.r.Box
	last, err := runinfo.Read(box.Store().Dir(), box.Agent())
	if _, isDamaged := errors.AsType[*durable.FormatError](err); isDamaged { // as after a power cut, which leaves no process
		h.r.Log.Error("finding the processes left by the last runner", "err", err)
	} else if err != nil {
		return last, err
	}
	ended, err := process.EndLeftovers(last.Run)
	if h.Leftovers = process.Names(ended); err != nil {
		err = fmt.Errorf("end the processes left by the last runner of %s: %w", box.Agent(), err)
	}
	return last, err
}

// giveWorkBack gives back what a program took by itself that has ended.
func (r *runner) giveWorkBack(ctx context.Context) {
	if r.Work == nil {
		return
	}
	if err := r.Work.GiveBack(ctx); err != nil {
		r.Log.Error("giving back work", "err", err)
	}
}

// shut waits for all that works for the runner, whose loop has ended with an error or nil, and releases what it holds.
func (r *runner) shut(err error) error {
	r.closeRecording()
	r.inbox.WaitClaims()
	r.notifier.Wait()
	r.notes.Wait()
	r.Loop.Wait()
	r.WaitLogged()
	r.giveWorkBack(context.Background())
	r.detachFollower(err)
	return errors.Join(err, r.removeHooks(), r.dir.Close())
}

// bringHooks plans the hooks of a run for which atm has planned none.
func (o *Options) bringHooks(m *Mail) error {
	box := m.box()
	if !box.Store().IsOfRoot {
		return errors.New("bring hooks: Mail must be of an open team")
	}
	if o.Env == nil {
		o.Env = os.Environ()
	}
	dir := box.Store().Dir().Path()
	o.Env = append(slices.Clone(o.Env), "ATM_ROOT="+filepath.Dir(dir), "ATM_TEAM="+string(box.Address().Team), "ATM_AGENT="+string(box.Agent()))
	brought, why := all.Bring(o.Hooks, string(box.Agent()), o.Command, o.Env, box.Path())
	if why != "" {
		return fmt.Errorf("bring hooks to %s: %s", o.Command[0], why)
	}
	o.Brought = brought
	return nil
}

// writeHooks writes what the program reads of the hooks that come along, in place of those of a killed runner.
func (r *runner) writeHooks() error {
	if err := r.removeHooks(); err != nil || r.Brought.File == "" {
		return err
	}
	r.Env = append(slices.Clone(r.Env), r.Brought.Env...)
	dir := path.Base(all.HooksDir)
	return cmp.Or(r.dir.Mkdir(dir), r.dir.Replace(dir+"/"+filepath.Base(r.Brought.File), []byte(r.Brought.Text), false))
}

func (r *runner) removeHooks() error { return r.dir.RemoveAll(path.Base(all.HooksDir)) }

// Wait returns how the program exited when it has exited for good, and everything that it started is gone.
func (h *Handle) Wait() (Exit, error) {
	<-h.done
	return h.exit, h.err
}

// Close stops the agent, waits for it, and gives up the runner lock that Start has taken. The events of an agent without a
// mailbox are removed.
func (h *Handle) Close() error {
	h.stop()
	_, err := h.Wait()
	return errors.Join(err, h.release())
}

// Prompt gives the agent a text as if its person had typed it, as soon as it waits for one, and returns when it has
// accepted the text, or why it did not. Texts are given in order, before mail. After ErrUnsure it may have accepted it: a
// program on a screen that neither answers nor moves on, such as an interpreter that computes for seconds.
func (h *Handle) Prompt(ctx context.Context, text string) error {
	return h.r.inbox.Give(ctx, text, false)
}

// Steer is Prompt for a text that waits neither for the end of a turn nor behind other texts: the turn is interrupted.
func (h *Handle) Steer(ctx context.Context, text string) error {
	if err := h.Interrupt(ctx); err != nil {
		return err
	}
	return h.r.inbox.Give(ctx, text, true)
}

// Interrupt ends the turn, and returns when it is over. What an agent that speaks ACP asks is cancelled with it; while
// another asks something, which the key would answer, Interrupt returns an error.
func (h *Handle) Interrupt(ctx context.Context) error {
	return until(ctx, func() error { _, err := h.r.Interrupt(ctx); return err })
}

// Answer answers what the agent asks with one of its options, and returns when it does not ask that any more. question
// is the id in the event confirm_required or waiting_for_input, or "" for the open one; option is an id of its options,
// or "" for the one that allows what is asked, once. What asks for any text (Question.IsTyped) is answered with Type.
func (h *Handle) Answer(ctx context.Context, question, option string) error {
	return until(ctx, func() error {
		_, err := h.r.Answer(ctx, ask.Answer{ID: question, Option: option})
		return err
	})
}

// Reject answers what the agent asks with the option that says no.
func (h *Handle) Reject(ctx context.Context, question string) error {
	return until(ctx, func() error {
		_, err := h.r.Answer(ctx, ask.Answer{ID: question, Deny: true})
		return err
	})
}

// Type types a text like a person, at once, and with enter sends it off. It does not wait for a prompt. An agent without a
// terminal takes it as a prompt, with enter, while it is idle.
func (h *Handle) Type(ctx context.Context, text string, enter bool) error {
	return until(ctx, func() error {
		_, err := h.r.Type(ctx, control.TypeRequest{Text: []byte(text), Enter: enter})
		return err
	})
}

// Ask is Prompt for a text that wants an answer. It returns the turn that the text began when the turn is over, with what the
// agent said in it and how long it took. A program that only a screen shows tells no answer: the Response is empty. Status
// may say a moment later that the agent is free again.
func (h *Handle) Ask(ctx context.Context, text string) (history.FullTurn, error) {
	if isClosed(h.done) {
		return history.FullTurn{}, loop.ErrOver
	}
	turnNow := func() (id string) {
		h.r.Call(func() { id = h.r.State.Session().Turn.ID })
		return id
	}
	from, err := h.r.Box.Log().LastSeq()
	before := turnNow()
	if err == nil {
		err = h.Prompt(ctx, text)
	}
	if err != nil {
		return history.FullTurn{}, err
	}
	id := turnNow() // of the text's turn, if that has begun: a program on a screen shows it a moment later
	var (
		events []wire.Event
		past   history.History
	)
	for e, err := range h.eventsAfter(ctx, from) {
		if err != nil {
			return history.FullTurn{}, err
		}
		events = append(events, e)
		past.Apply(&e)
		for _, turn := range past.Turns(1) {
			isOurs := turn.Is(id)
			if id == before {
				isOurs = !turn.Is(before)
			}
			if isOurs && turn.Ended != nil {
				return history.FullTurn{Turn: turn, Content: turn.Content(events)}, nil
			}
		}
	}
	return history.FullTurn{}, cmp.Or(context.Cause(ctx), errors.New("the agent ended before its turn did"))
}

// Screen is what a terminal shows: its lines, without colours, and where its cursor is, from 0.
type Screen struct {
	Lines            []string
	Cols, Rows       int
	CursorX, CursorY int
	Title            string // that the program has given its terminal
}

// Screen returns what the agent's terminal shows, or of an agent without a terminal the end of its transcript.
func (h *Handle) Screen(ctx context.Context) (Screen, error) {
	s, err := h.r.Screen(ctx, control.ScreenRequest{})
	return Screen{s.Lines, s.Cols, s.Rows, s.CursorX, s.CursorY, s.Title}, err
}

// Status is what an agent does now.
type Status struct {
	PID      int // of its program; 0: none runs
	Activity reducer.Activity
	Detail   string // of the activity
	IsReady  bool   // it has shown its first prompt
}

// Status returns what the agent does now.
func (h *Handle) Status(ctx context.Context) (Status, error) {
	s, err := h.r.Status(ctx)
	return Status{s.ChildPID, reducer.Activity(s.State), s.Detail, s.Ready}, err
}

// Events returns the events in the agent's log from its start on, in order: its own, and what others report of it. It
// waits for more until the agent has ended, or ctx ends. After Close it yields none: an agent's mailbox has them still.
func (h *Handle) Events(ctx context.Context) iter.Seq2[wire.Event, error] {
	return h.eventsAfter(ctx, h.from)
}

func (h *Handle) eventsAfter(ctx context.Context, seq uint64) iter.Seq2[wire.Event, error] {
	return func(yield func(wire.Event, error) bool) {
		cursor := h.r.Box.Log().Follow(seq)
		defer cursor.Close()
		for {
			more, isOver := h.logged.next(), isClosed(h.done)
			e, err := cursor.Next()
			switch {
			case err == nil:
				if !yield(e, nil) {
					return
				}
			case isOver: // and all is read, or the log is gone with the agent
				return
			case !errors.Is(err, io.EOF) && !isClosed(h.done):
				yield(e, err)
				return
			default:
				select {
				case <-more:
				case <-h.done:
				case <-ctx.Done():
					return
				}
			}
		}
	}
}

// until does what may take a while, and returns when ctx ends although it goes on then.
func until(ctx context.Context, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// broadcast tells everybody who waits.
type broadcast struct {
	mu   sync.Mutex
	last chan struct{}
}

// next returns what is closed by the next send.
func (b *broadcast) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last == nil {
		b.last = make(chan struct{})
	}
	return b.last
}

func (b *broadcast) send() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last != nil {
		close(b.last)
		b.last = nil
	}
}

// withMark returns an environment in which the processes of a run are marked, and a program finds a terminal that it
// knows.
func withMark(env []string, run string) []string {
	if env == nil {
		env = os.Environ()
	}
	env = slices.DeleteFunc(slices.Clone(env), func(pair string) bool { return strings.HasPrefix(pair, "ATM_RUN=") })
	if !slices.ContainsFunc(env, func(pair string) bool { return strings.HasPrefix(pair, "TERM=") }) {
		env = append(env, "TERM=xterm-256color")
	}
	return append(env, "ATM_RUN="+run)
}
