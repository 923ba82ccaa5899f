// Package follow is `atm-more codex`, which atm starts by itself: it gives a member's mail to the thread of Codex that its person has started.
// It is a program of its own because it links an HTTP client.
//
//	atm codex follow NAME THREAD [--server SOCKET]
//	atm codex follow NAME --server SOCKET --program PID
//
// The hooks start it when a turn begins, and whoever sends if it was killed. It goes along to the thread that is
// used next, and ends with the programs that show one, or when the agent is retired or run by atm. The second form is a
// runner's, for the server that its program has for itself: it follows the thread that is newest there. What you may rely on:
//
//   - One process follows for a member: it holds the lock teamdir.FollowLock.
//   - A message is claimed before it is given (claim.HandOver) and read once the server says that the agent has it,
//     or the thread's hook shows it. After a kill the server's queue and the thread's items tell what is in already.
//   - While a turn runs the hooks hand over the mail, behind the running tool; only what is urgent is put into the turn.
//   - What is withdrawn or read elsewhere is taken out of the server's queue.
//   - Nothing is given to a thread whose program has ended, although the server keeps it for a minute. The program is the
//     one that the hooks have noted with the thread: see teamdir.Program.
//   - It listens to a thread only while a turn runs or a message is under way, since the server keeps a thread that
//     somebody listens to.
//   - While the server is away, refuses mail or answers something else, the mail stays unread, and a line beside the
//     program says why (teamdir.Program.Shut). Each answer is waited for two seconds.
//   - The hooks report the turns. It reports only the end of one that failed, of which they tell nothing.
//   - What lies in the inbox while a turn runs and no tool ends is put into the turn after a while.
package follow

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"regexp"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/agents/codex/appserver"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// Main runs the program and returns its exit code.
func Main(version string, words []string) int {
	return command.RunCompanion("codex", version, words, func(c *cli.Context) error {
		isOfRun := c.Int("program") != 0 && c.Args().Len() == 2
		if c.Args().Get(0) != "follow" || c.Args().Len() != 3 && !isOfRun {
			return failure.Usage("atm starts this by itself: atm codex follow NAME THREAD")
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
			team: s.Team, box: box, thread: c.Args().Get(2), socket: c.String("server"), limit: 1,
			log: slog.New(slog.NewTextHandler(c.App.ErrWriter, nil)),
		}
		if isOfRun {
			f.program, _ = process.Find(c.Int("program"))
			f.ofRun, f.limit = s.Team.RunOf(box.Agent()), letter.MaxMessages // it brings no hooks along
		}
		return s.Await(f.run)
	})
}

// Times; tests shorten them.
var (
	lookEvery  = 30 * time.Second // without any news
	retry      = 2 * time.Second  // after the server was gone, or refused something
	patience   = time.Minute      // for the server to come back with the thread, and for the lock
	steerNow   = 5 * time.Second  // for the hooks to hand over mail in a turn: a long command tells nothing until it ends
	beginAfter = 2 * time.Second  // for a message in the queue of an idle thread to begin a turn by itself
)

const codexTool = "codex" // as its hooks name it

// errEnded ends the program.
var errEnded = errors.New("there is nothing to follow any more")

// errNotLoaded says that the server does not have the thread: its terminal has gone, or has not come back yet.
var errNotLoaded = errors.New("codex's server does not have the thread")

// isThread matches an id that may stand in a file's name and in an argument.
var isThread = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`).MatchString

type follower struct {
	team   *teamdir.Team
	box    *maildir.Box
	thread string
	socket string
	log    *slog.Logger

	hasFound bool // socket, by the program that shows thread

	ofRun   string       // of atm, whose program shows the server's newest thread; "": a person's program shows thread
	program process.Info // with ofRun
	limit   int          // of messages in one text; 1: the hooks of the turn that it begins add the others

	client *appserver.Client
	status appserver.Status
	turn   string // the running one; "": none, or its name is not known

	shut        error // why the server takes no mail; nil: it does
	untaken     error // why it did not take the last message: it counts for the next connection as well
	isListening bool
	isUnsettled bool             // what the agent has got could not be noted
	inside      map[wire.ID]bool // messages that the server has and the agent has not; true: in its queue, from which they can be taken back
	idleSince   time.Time        // the thread is idle, and its queue has a message of ours; zero: it has not, or is not
	questions   questions
}

// run follows the thread until there is nothing to follow. It has one goroutine, that of a client, and one a question.
func (f *follower) run(ctx context.Context) error {
	if f.ofRun == "" && !isThread(f.thread) {
		return failure.Usage("%q is no id of a thread", f.thread)
	}
	lock, err := lockfile.In(f.team.Dir()).Lock(ctx, programs.FollowLock(f.box.Agent()), lockfile.Exclusive, retry, nil)
	if _, isHeld := errors.AsType[*lockfile.HeldError](err); isHeld {
		return nil // the other one follows this thread, or is about to see that the name has this one now
	}
	if err != nil {
		return err
	}
	defer lock.Unlock()
	w := watcher.Open(ctx, []watcher.Mailbox{f.box}, watcher.Options{Messages: true, Events: true})
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
		triedAt := time.Now()
		if err == nil {
			err = f.serve(ctx, news)
			triedAt = time.Now()
			lastSeen = triedAt
			f.hangUp()
		}
		switch {
		case errors.Is(err, errEnded):
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, errOther):
			continue
		case errors.Is(f.note(err), errEnded):
			return nil
		case triedAt.Sub(lastSeen) > patience && f.ofRun == "": // a run's ends with its program
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		case e := <-news:
			if errors.Is(e.Err, maildir.ErrNoAgent) {
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
		f.hasFound = true
	}
	if f.client, err = appserver.Dial(ctx, f.socket); err != nil {
		return err
	}
	if err = f.findThread(ctx); err == nil {
		err = f.recover(ctx)
	}
	if err != nil {
		f.hangUp()
	}
	return err
}

// findThread notes, of a run, the thread that its program shows now.
func (f *follower) findThread(ctx context.Context) error {
	if f.ofRun == "" {
		return nil
	}
	shown, err := f.client.Newest(ctx)
	if err != nil {
		return err
	}
	if _, isNoted := programs.Conversation(f.team, f.box.Agent(), shown); isNoted && shown == f.thread {
		return nil
	}
	f.thread = shown
	return programs.Note(f.team, f.box.Agent(), programs.Program{
		Tool: codexTool, PID: f.program.PID, Start: f.program.Start, Session: shown, Run: f.ofRun, Server: f.socket,
	}, true)
}

// errOther says that the program shows another thread than the one that is followed.
var errOther = errors.New("its program shows another conversation")

// findSocket returns the socket of the server of which the bound program shows a thread.
func (f *follower) findSocket() (string, error) {
	p, _ := programs.Conversation(f.team, f.box.Agent(), f.thread)
	return p.ServerSocket()
}

func (f *follower) hangUp() {
	f.questions.end()
	f.client.Close()
	f.isListening, f.turn = false, ""
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
			if errors.Is(e.Err, maildir.ErrNoAgent) {
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
			isDue = e.Method == appserver.StatusChanged || e.Method == appserver.QueueChanged || e.Method == appserver.ItemCompleted
		}
	}
}

// handle takes an event of the thread.
func (f *follower) handle(ctx context.Context, e appserver.Event) error {
	switch e.Method {
	case appserver.ThreadClosed:
		return errNotLoaded // its program may load it again
	case appserver.StatusChanged:
		if f.status = e.Status(); f.status.Type != appserver.Active {
			f.turn = ""
		}
	case appserver.TurnStarted:
		f.turn = e.TurnID
	case appserver.TurnCompleted:
		f.turn = ""
		return f.endFailed(ctx, e.Turn())
	case appserver.ItemCompleted:
		if item := e.Item(); item.Type == appserver.UserMessage {
			return f.settleItems(ctx, e.TurnID, []appserver.Item{item})
		}
	case appserver.ApproveCommand, appserver.ApproveFileChange:
		f.ask(ctx, e)
	case appserver.Resolved:
		f.questions.resolve(e.Request)
	}
	return nil
}

// look gives what can be given now, takes back what is moot, and says when to look again.
func (f *follower) look(ctx context.Context) (again time.Duration, err error) {
	if err := cmp.Or(f.checkBound(), f.note(f.shut)); err != nil {
		return 0, err
	}
	if f.ofRun != "" {
		if shown, err := f.client.Newest(ctx); err != nil || shown != f.thread {
			return 0, cmp.Or(err, errOther)
		}
	}
	unread, err := f.box.UnreadIDs()
	if err != nil {
		return retry, nil
	}
	if f.ofRun == "" && len(unread) > 0 {
		err := f.findNew(ctx)
		if errors.Is(err, errUnclear) {
			return lookEvery, f.note(err)
		}
		if err != nil {
			return 0, err
		}
	}
	if err := f.takeBack(ctx, unread); err != nil {
		return 0, err
	}
	if f.isUnsettled {
		if err := f.settle(ctx, ""); err != nil {
			return 0, err
		}
	}
	isActive := f.status.Type == appserver.Active
	if isActive || len(f.inside) == 0 {
		f.idleSince = time.Time{}
	}
	if err := f.listen(ctx, isActive || len(f.inside) > 0); err != nil {
		return 0, err
	}
	isMine, err := f.goAlong()
	if err != nil {
		return 0, err
	}
	switch {
	case len(unread) == 0 && f.untaken != nil:
		f.untaken = nil
		return lookEvery, f.note(nil)
	case len(unread) == 0, !isMine:
		return lookEvery, nil
	case isActive:
		return f.giveInTurn(ctx)
	case !f.status.IsIdle():
		return lookEvery, nil
	case len(f.inside) > 0:
		return f.begin(ctx)
	}
	return f.give(ctx, "", nil)
}

// begin has the first message in the queue of an idle thread begin a turn, if it does not do so by itself: after its person
// has ended a turn, Codex's queue waits for the next one. It may also have begun one, and no news of it have come.
func (f *follower) begin(ctx context.Context) (again time.Duration, err error) {
	if f.idleSince.IsZero() {
		f.idleSince = time.Now()
	}
	if wait := time.Until(f.idleSince.Add(beginAfter)); wait > 0 {
		return wait, nil
	}
	f.idleSince = time.Time{}
	queued, err := f.client.QueueList(ctx, f.thread)
	if err == nil {
		err = f.settle(ctx, "")
	}
	if err != nil {
		return 0, err
	}
	for _, q := range queued {
		id := wire.ID(q.ClientID)
		if isQueued := f.inside[id]; !isQueued {
			continue
		}
		isBack, err := f.way("").TakeBack(ctx, id)
		if err == nil && isBack { // its claim stands: if the server does not take it, it is given again
			delete(f.inside, id)
			err = f.client.Start(ctx, f.thread, q)
		}
		return retry, err
	}
	clear(f.inside) // what it has forgotten is given again when its claim is over
	return 0, nil
}
