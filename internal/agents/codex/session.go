package codex

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/agents/codex/appserver"
	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
)

// lookTime limits how long the server may take to say what a thread does.
const lookTime = 3 * time.Second

var errNoServer = errors.New("its program does not use codex's server, as with codex -c, --search or --no-daemon")

// session returns what the server says of the thread that a program shows.
func session(p agents.Process) (*agents.Session, error) {
	if p.Server == "" {
		return nil, errNoServer
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	c, err := appserver.Dial(ctx, p.Server)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	thread, err := c.Read(ctx, p.Conversation)
	if err == nil && thread.Status.Type == appserver.NotLoaded {
		err = appserver.ErrNotLoaded
	}
	if err != nil {
		return nil, err
	}
	says := &agents.Session{
		ID: p.Conversation, Activity: reducer.Idle, Since: time.Now(),
		Open: func(string) (delivery.Way, error) {
			return appserver.Way{Socket: p.Server, Thread: p.Conversation}, nil
		},
		Answer: func(ctx context.Context, q ask.Question, o ask.Option, why string) (bool, error) {
			return appserver.Answer(ctx, p.Server, p.Conversation, q, o, why)
		},
	}
	switch says.Questions, err = asked(ctx, c, thread); {
	case thread.Status.Type == appserver.Active:
		says.Activity = activityOf(thread.Status)
		return says, err
	case err != nil:
		return nil, err
	}
	turns, err := c.Turns(ctx, p.Conversation, 1)
	if err == nil && len(turns) > 0 && turns[0].Status == appserver.TurnFailed {
		says.FailedTurn = turns[0].ID
		if turns[0].Error != nil {
			says.FailedWhy = turns[0].Error.Message
		}
	}
	if appserver.IsRefusal(err) { // it has none yet
		err = nil
	}
	return says, err
}

func activityOf(s appserver.Status) reducer.Activity {
	switch approval, question := s.Asks(); {
	case approval:
		return reducer.Confirming
	case question:
		return reducer.AwaitingInput
	}
	return reducer.Thinking
}

// asked returns what a thread asks now. Several approvals may be open: it takes those that come together.
func asked(ctx context.Context, c *appserver.Client, thread appserver.Thread) (all []ask.Question, err error) {
	if approval, question := thread.Status.Asks(); !approval && !question {
		return nil, nil
	}
	questions, err := c.Questions(ctx, thread.ID, func(*appserver.Question) bool { return true })
	for _, q := range questions {
		all = append(all, q.Question)
	}
	return all, err
}

// threads returns the newest conversations that a server has in memory and people may see, the newest first, which are newer
// than one. Their ids are in order of time.
func threads(socket, after string) (all []agents.Thread, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	c, err := appserver.Dial(ctx, socket)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	loaded, err := c.Loaded(ctx)
	slices.Sort(loaded)
	for _, id := range slices.Backward(loaded[max(0, len(loaded)-maxThreads):]) {
		if id <= after || err != nil {
			break
		}
		var t appserver.Thread
		if t, err = c.Read(ctx, id); err == nil && t.Parent == "" && !t.Ephemeral {
			all = append(all, agents.Thread{ID: id, Dir: t.Dir})
		}
	}
	return all, err
}

// maxThreads is how many threads are looked at, with those of sub-agents.
const maxThreads = 20
