// Package follow is the program atm-codex: it gives a member's mail to the thread of Codex that its person has started.
// It is a program of its own because it links an HTTP client.
//
//	atm codex follow NAME THREAD [--server SOCKET]
//
// The hooks start it when a turn begins. It ends with the program that shows the thread, when that shows another one, or
// when the agent is retired or run by atm. What you may rely on:
//
//   - One process follows for a member: it holds the lock teams.FollowLock.
//   - A message is claimed before it is given (mailbox.Box.HandOver) and read once the server says that the agent has it,
//     or the thread's hook shows it. After a kill the server's queue and the thread's items tell what is in already.
//   - While a turn runs the hooks hand over the mail, behind the running tool; only what is urgent is put into the turn.
//   - What is withdrawn or read elsewhere is taken out of the server's queue.
//   - Nothing is given to a thread whose program has ended, although the server keeps it for a minute. The program is the
//     one that the hooks have noted with the thread: see teams.Program.
//   - It listens to a thread only while a turn runs or a message is under way, since the server keeps a thread that
//     somebody listens to.
//   - The hooks report the turns. It reports none.
package follow

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/hook"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/push/codex"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/driver/agents"
	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// Main runs the program and returns its exit code.
func Main(version string, words []string) int {
	return command.RunCompanion("codex", version, words, func(c *cli.Context) error {
		if c.Args().Get(0) != "follow" || c.Args().Len() != 3 {
			return failure.Usage("this is started by hooks: atm codex follow NAME THREAD")
		}
		s, err := app.OpenTeam(command.Given(c))
		if err != nil {
			return err
		}
		box, err := s.Team.Member(wire.Name(c.Args().Get(1)))
		if err != nil {
			return err
		}
		f := &follower{
			team: s.Team, box: box, thread: c.Args().Get(2), socket: c.String("server"),
			log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		}
		return s.Await(f.run)
	})
}

// Times; tests shorten them.
var (
	lookEvery = 30 * time.Second // without any news
	retry     = 2 * time.Second  // after the server was gone, or refused something
	patience  = time.Minute      // for the server to come back with the thread, and for the lock
)

// errEnded ends the program.
var errEnded = errors.New("there is nothing to follow any more")

// errNotLoaded says that the server does not have the thread: its terminal has gone, or has not come back yet.
var errNotLoaded = errors.New("codex's server does not have the thread")

// isThread matches an id that may stand in a file's name and in an argument.
var isThread = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`).MatchString

type follower struct {
	team   *teams.Team
	box    *mailbox.Box
	thread string
	socket string
	log    *slog.Logger

	client *codex.Client
	status codex.Status
	turn   string // the running one; "": none, or its name is not known

	isListening bool
	inside      map[wire.ID]string // messages that the server has and the agent has not, with their place in the queue or ""
	questions   questions
}

// run follows the thread until there is nothing to follow. It has one goroutine, that of a client, and one a question.
func (f *follower) run(ctx context.Context) error {
	if !isThread(f.thread) {
		return failure.Usage("%q is no id of a thread", f.thread)
	}
	lock, err := lockfile.In(f.team.Dir()).Lock(ctx, teams.FollowLock(f.box.Agent()), lockfile.Exclusive, retry, nil)
	if _, isHeld := errors.AsType[*lockfile.HeldError](err); isHeld {
		return nil // the other one follows this thread, or is about to see that the name has this one now
	}
	if err != nil {
		return err
	}
	defer lock.Unlock()
	w, err := watcher.Open(ctx, []*mailbox.Box{f.box}, watcher.Options{Messages: true, Events: true})
	if err != nil {
		return err
	}
	defer w.Close()
	news := make(chan watcher.Entry)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for watching.Err() == nil {
			e, err := w.Next(watching)
			e.Err = cmp.Or(e.Err, err)
			select {
			case news <- e:
			case <-watching.Done():
			}
		}
	}()
	lastSeen := time.Now()
	for {
		err := f.connect(ctx)
		if err == nil {
			lastSeen = time.Now()
			err = f.serve(ctx, news)
			f.hangUp()
		}
		switch {
		case errors.Is(err, errEnded):
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case time.Since(lastSeen) > patience:
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		case e := <-news:
			if errors.Is(e.Err, mailbox.ErrNoAgent) {
				return nil
			}
		}
	}
}

// connect connects to the server, and finds out what it has already.
func (f *follower) connect(ctx context.Context) (err error) {
	if err := f.checkBound(); err != nil {
		return err
	}
	if f.socket == "" {
		if f.socket, err = f.findSocket(); err != nil {
			return err
		}
	}
	if f.client, err = codex.Dial(ctx, f.socket); err != nil {
		return err
	}
	if err = f.recover(ctx); err != nil {
		f.hangUp()
	}
	return err
}

// findSocket returns the socket of the server of which the bound program shows a thread.
func (f *follower) findSocket() (string, error) {
	p, _ := f.team.Conversation(f.box.Agent(), f.thread)
	return codex.FindSocket(process.Environment(p.PID))
}

func (f *follower) hangUp() {
	f.questions.end()
	f.client.Close()
	f.isListening, f.turn = false, ""
}

// recover asks the server what it has of the thread.
func (f *follower) recover(ctx context.Context) error {
	loaded, err := f.client.Loaded(ctx)
	if err == nil && !slices.Contains(loaded, f.thread) {
		err = errNotLoaded
	}
	if err != nil {
		return err
	}
	if err := f.note(); err != nil {
		return err
	}
	thread, err := f.client.Read(ctx, f.thread)
	if err != nil {
		return err
	}
	f.status = thread.Status
	if err := f.settle(ctx, ""); err != nil {
		return err
	}
	f.inside, err = f.queue(ctx)
	return err
}

// note notes that the server gives the mail to the conversation.
func (f *follower) note() error {
	p, ok := f.team.Conversation(f.box.Agent(), f.thread)
	if !ok {
		return errEnded
	}
	if p.Server == f.socket && slices.Contains(p.Opens, agents.ServerQueue) {
		return nil
	}
	p.Server, p.Opens = f.socket, []string{agents.ServerQueue}
	return f.team.NoteProgram(f.box.Agent(), p, false)
}

// checkBound returns errEnded unless a program under the name still shows the conversation.
func (f *follower) checkBound() error {
	if err := f.box.CheckPresent(); errors.Is(err, mailbox.ErrNoAgent) {
		return errEnded
	}
	if running, err := f.team.Running(f.box.Agent()); running && err == nil {
		return errEnded // a runner gives it the mail
	}
	if _, ok := f.team.Conversation(f.box.Agent(), f.thread); !ok {
		return errEnded
	}
	return nil
}

// serve gives mail until the connection or the thread ends.
func (f *follower) serve(ctx context.Context, news <-chan watcher.Entry) error {
	isDue, again := true, lookEvery
	for {
		if isDue {
			var err error
			if again, err = f.look(ctx); err != nil {
				return err
			}
		}
		isDue = true
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(again):
		case e := <-news:
			if errors.Is(e.Err, mailbox.ErrNoAgent) {
				return errEnded
			}
		case e, ok := <-f.client.Events():
			if !ok {
				return f.client.Err()
			}
			if e.Thread != f.thread {
				isDue = false
				continue
			}
			if err := f.handle(ctx, e); err != nil {
				return err
			}
			isDue = e.Method == codex.StatusChanged || e.Method == codex.QueueChanged || e.Method == codex.ItemCompleted
		}
	}
}

// handle takes an event of the thread.
func (f *follower) handle(ctx context.Context, e codex.Event) error {
	switch e.Method {
	case codex.ThreadClosed:
		return errNotLoaded // its program may load it again
	case codex.StatusChanged:
		if f.status = e.Status(); f.status.Type != codex.Active {
			f.turn = ""
		}
	case codex.TurnStarted:
		f.turn = e.TurnID
	case codex.TurnCompleted:
		f.turn = ""
	case codex.ItemCompleted:
		if item := e.Item(); item.Type == codex.UserMessage {
			return f.settleItems(ctx, e.TurnID, []codex.Item{item})
		}
	case codex.ApproveCommand, codex.ApproveFileChange:
		f.ask(ctx, e)
	case codex.Resolved:
		f.questions.resolve(e.Request)
	}
	return nil
}

// look gives what can be given now, takes back what is moot, and says when to look again.
func (f *follower) look(ctx context.Context) (again time.Duration, err error) {
	if err := cmp.Or(f.checkBound(), f.note()); err != nil {
		return 0, err
	}
	unread, err := f.box.UnreadIDs()
	if err != nil {
		return retry, nil
	}
	if err := f.takeBack(ctx, unread); err != nil {
		return 0, err
	}
	isActive := f.status.Type == codex.Active
	if err := f.listen(ctx, isActive || len(f.inside) > 0); err != nil {
		return 0, err
	}
	p, _ := f.team.Bound(f.box.Agent())
	isMine := p.Session == f.thread // else another program was used since
	switch {
	case len(unread) == 0, !isMine:
		return lookEvery, nil
	case isActive:
		return f.giveUrgent(ctx)
	case f.status.Type != codex.Idle || len(f.inside) > 0:
		return lookEvery, nil
	}
	return f.give(ctx, func(*mailbox.Item) bool { return true }, f.queueUp)
}

// listen subscribes to the thread, or ends that.
func (f *follower) listen(ctx context.Context, wants bool) (err error) {
	switch {
	case wants == f.isListening:
		return nil
	case !wants:
		f.isListening = false
		return f.client.Unsubscribe(ctx, f.thread)
	}
	_, err = f.client.Resume(ctx, f.thread)
	if _, isRefused := errors.AsType[*codex.RefusedError](err); isRefused { // the first turn has only begun
		return nil
	}
	f.isListening = err == nil
	if err == nil { // what has happened meanwhile
		err = f.settle(ctx, "")
	}
	return err
}

// takeBack removes from the server's queue what is not unread any more.
func (f *follower) takeBack(ctx context.Context, unread []wire.ID) error {
	for id, place := range f.inside {
		if slices.Contains(unread, id) {
			continue
		}
		if place != "" {
			deleted, err := f.client.QueueDelete(ctx, f.thread, place)
			if err = ignoreRefusal(err); err != nil {
				return err
			}
			if deleted { // the agent never saw it, so it need not be told that it was withdrawn
				f.box.Withdraw(ctx, wire.Derive("withdrawn", id, f.box.Address()), f.box.Address())
			}
		}
		delete(f.inside, id)
	}
	return nil
}

// queue returns the messages of ours that wait in the server's queue.
func (f *follower) queue(ctx context.Context) (map[wire.ID]string, error) {
	all, err := f.client.QueueList(ctx, f.thread)
	inside := map[wire.ID]string{}
	for _, q := range all {
		if f.isMail(q.ClientID) {
			inside[wire.ID(q.ClientID)] = q.ID
		}
	}
	return inside, err
}

// isMail reports whether an id that the server has is of a message to the member. Codex has ids of that form as well, for
// what its person writes.
func (f *follower) isMail(id string) bool {
	if !wire.IsID(id) {
		return false
	}
	_, err := f.box.Get(wire.ID(id))
	return err == nil
}

// maxItems is how many of a thread's last items are looked through for messages of ours.
const maxItems = 100

// settle marks messages as read that the thread's items show.
func (f *follower) settle(ctx context.Context, turn string) error {
	items, err := f.client.Items(ctx, f.thread, maxItems)
	if _, isRefused := errors.AsType[*codex.RefusedError](err); isRefused { // it has none yet
		return nil
	}
	if err != nil {
		return err
	}
	return f.settleItems(ctx, turn, items)
}

func (f *follower) settleItems(ctx context.Context, turn string, items []codex.Item) error {
	call := mailbox.HookCall{Session: f.thread, Name: "receipt", Now: time.Now()}
	for _, item := range items {
		switch {
		case item.Type != codex.UserMessage:
		case f.isMail(item.ClientID):
			call.Shown = append(call.Shown, wire.ID(item.ClientID).Short(32))
			delete(f.inside, wire.ID(item.ClientID))
		}
	}
	if len(call.Shown) == 0 {
		return nil
	}
	h, err := f.box.HandOver(ctx, call, mailbox.ReadOptions{})
	for i := range h.Received {
		h.Received[i].TurnID = turn
	}
	if err = errors.Join(err, f.box.Log().Append(ctx, h.Received...)); err != nil && ctx.Err() == nil {
		f.log.Error("noting what the agent has read", "err", err) // it is noted at the next look
	}
	return nil
}

func (f *follower) giveUrgent(ctx context.Context) (again time.Duration, err error) {
	if f.turn == "" {
		turns, err := f.client.Turns(ctx, f.thread, 1)
		if err != nil || len(turns) == 0 || turns[0].Status != "inProgress" {
			return retry, ignoreRefusal(err)
		}
		f.turn = turns[0].ID
	}
	return f.give(ctx, func(m *mailbox.Item) bool { return m.Urgent() }, f.steer)
}

func (f *follower) queueUp(ctx context.Context, id wire.ID, text string) (place string, err error) {
	queued, err := f.client.QueueAdd(ctx, f.thread, string(id), text)
	return queued.ID, err
}

func (f *follower) steer(ctx context.Context, id wire.ID, text string) (place string, err error) {
	return "", f.client.Steer(ctx, f.thread, f.turn, string(id), text)
}

// give hands over one message. The hooks add the others to the turn that it begins.
func (f *follower) give(ctx context.Context, matches func(*mailbox.Item) bool, put func(context.Context, wire.ID, string) (string, error)) (again time.Duration, err error) {
	name, p := f.box.Agent(), teams.Program{}
	p, _ = f.team.Conversation(name, f.thread)
	ended := f.team.EndedSessions(name)
	l := &letter.Renderer{Now: time.Now(), Team: f.team.Name, Digits: 6, Show: p.Flags}
	h, err := f.box.HandOver(ctx, mailbox.HookCall{
		Session: f.thread, Name: "push " + string(wire.NewID()), IsPush: true, CanCarryMail: true, Now: l.Now,
		IsGone: func(session string) bool { return session != f.thread && slices.Contains(ended, session) },
	}, mailbox.ReadOptions{
		Limit: 1, MaxBytes: 16 << 20, LookAhead: 200, Fits: l.LimitToPage(), Current: true,
		Match: func(m *mailbox.Item) bool { return matches(m) && f.team.HoldReason(m.Message, name) == "" },
	})
	if err != nil || len(h.Items) == 0 { // claimed by another call: a hook's, or ours before a kill
		if err = errors.Join(err, h.NotSent(ctx)); err != nil {
			f.log.Error("claiming mail", "err", err)
		}
		return cmp.Or(againAfterClaim(h), lookEvery), nil
	}
	id := h.Items[0].ID
	if h.Repeat[id] { // perhaps it is in already
		isIn, err := f.isInside(ctx, id)
		if err != nil {
			return 0, errors.Join(err, h.NotSent(context.WithoutCancel(ctx)))
		}
		if isIn {
			return lookEvery, f.sent(ctx, h)
		}
	}
	h.More, h.GivenUp = 0, 0
	place, err := put(ctx, id, hook.PushedMail(h, l))
	if err != nil {
		if _, isRefused := errors.AsType[*codex.RefusedError](err); isRefused {
			f.turn = "" // it may have ended
			f.log.Error("giving mail", "err", err)
			return retry, h.NotSent(context.WithoutCancel(ctx))
		}
		return 0, err // the server may have it: the claim stays until that is known
	}
	f.inside[id] = place
	return 0, errors.Join(f.sent(ctx, h), f.listen(ctx, true))
}

// isInside reports whether the server has the message, and settles it if the agent has it.
func (f *follower) isInside(ctx context.Context, id wire.ID) (bool, error) {
	items, err := f.client.Items(ctx, f.thread, maxItems)
	if err = ignoreRefusal(err); err != nil {
		return false, err
	}
	if slices.ContainsFunc(items, func(i codex.Item) bool { return i.ClientID == string(id) }) {
		return true, f.settleItems(ctx, "", items)
	}
	if f.inside, err = f.queue(ctx); err != nil {
		return false, err
	}
	_, isQueued := f.inside[id]
	return isQueued, nil
}

func (f *follower) sent(ctx context.Context, h *mailbox.Handover) error {
	announced, err := h.Sent(context.WithoutCancel(ctx))
	err = errors.Join(err, f.box.Log().Append(context.WithoutCancel(ctx), announced...))
	if err != nil {
		f.log.Error("noting what was given", "err", err) // it may be given once more, marked
	}
	return nil
}

// againAfterClaim says when to look again for mail that another call has claimed.
func againAfterClaim(h *mailbox.Handover) time.Duration {
	if h.More > 0 || h.Repeated {
		return retry
	}
	return 0
}

func ignoreRefusal(err error) error {
	if _, isRefused := errors.AsType[*codex.RefusedError](err); isRefused {
		return nil
	}
	return err
}
