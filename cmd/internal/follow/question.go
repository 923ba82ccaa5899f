package follow

import (
	"context"
	"errors"
	"sync"

	"github.com/agentteammail/atm/cmd/internal/question"
	"github.com/agentteammail/atm/internal/agents/codex/appserver"
	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

// questions are the approvals that the thread asks for now, by the server's requests.
type questions struct {
	open    map[string]context.CancelFunc
	waiting sync.WaitGroup
}

// resolve ends a question that was answered.
func (q *questions) resolve(request string) {
	if cancel := q.open[request]; cancel != nil {
		cancel()
		delete(q.open, request)
	}
}

// end ends all questions, and waits for their goroutines.
func (q *questions) end() {
	for request := range q.open {
		q.resolve(request)
	}
	q.waiting.Wait()
}

// ask offers a question of the thread to whoever may answer it. The terminal shows it as well, and the first answer counts.
func (f *follower) ask(ctx context.Context, e appserver.Event) {
	if f.questions.open[e.Request] != nil {
		return
	}
	q := question.Question{Event: wire.Event{Session: f.thread, TurnID: e.TurnID}}
	q.Question, q.Rule = e.Question()
	asking, cancel := context.WithCancel(ctx)
	if f.questions.open == nil {
		f.questions.open = map[string]context.CancelFunc{}
	}
	f.questions.open[e.Request] = cancel
	client, server := f.client, f.client.PID()
	f.questions.waiting.Go(func() {
		defer cancel()
		info, _ := process.Find(server)
		_, err := question.Wait(asking, f.team, f.box, q, question.Options{
			Program: info, Log: f.log, OnlyRules: f.ofRun != "", DropsReason: true,
			Give: func(answer ask.Answer) error { return client.Answer(ctx, e.Request, answer.Option) },
		})
		if err != nil && !errors.Is(err, question.ErrOver) && !errors.Is(err, question.ErrAsked) && !errors.Is(err, question.ErrUnruled) && asking.Err() == nil {
			f.log.Error("waiting for an answer", "err", err)
		}
	})
}
