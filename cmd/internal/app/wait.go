package app

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/outlook"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// A Wait says what to wait for, and how long.
type Wait struct {
	Conditions []*Condition
	Every      bool          // all must be met at the same time; else any
	Timeout    time.Duration // 0: for ever

	// IsToldOff says that the caller has said which agents are off. Wait warns of those, once each time that one is off.
	IsToldOff bool
}

// tickEvery is how often to look for what no event reports: a killed runner, another host's state.
const tickEvery = 750 * time.Millisecond

// Wait waits, and returns what has met the conditions, in their order. What is already so returns at once, and nothing
// between a look and the watch is missed. If the time is over, the error says what was not met, what the agents do, and
// how to wait again. If no condition, or with Every one of them, can be met any more, it says why.
//
// Conditions are looked at side by side, each in a goroutine that ends with the look, and a runner that hangs is not
// waited for.
func (s *Scope) Wait(ctx context.Context, w Wait) ([]*Match, error) {
	boxes, err := s.watchedBoxes(w.Conditions)
	if err != nil {
		return nil, err
	}
	limited, stop := limit(ctx, w.Timeout)
	defer stop()
	p := &waiting{Wait: w, scope: s, findings: make([]finding, len(w.Conditions)), isOff: map[wire.Name]bool{}}
	err = watcher.Until(limited, boxes, watcher.Options{Messages: true, Events: true}, func(e watcher.Entry) (bool, error) {
		return p.look(ctx, e)
	})
	if errors.Is(err, ErrTimeout) {
		err = p.timeout(ctx)
	}
	if err != nil {
		return nil, err
	}
	return p.met, nil
}

func (s *Scope) watchedBoxes(conditions []*Condition) ([]watcher.Mailbox, error) {
	boxes := map[wire.Address]watcher.Mailbox{}
	for _, c := range conditions {
		for _, a := range c.watched {
			if s.Root.IsRemote(a) {
				continue
			}
			box, err := s.Root.Mailbox(a)
			if err != nil && a.Host == "" {
				return nil, err
			} else if err == nil {
				boxes[a] = box
			}
		}
	}
	return slices.Collect(maps.Values(boxes)), nil
}

// waiting is a Wait in progress.
type waiting struct {
	Wait
	scope    *Scope
	findings []finding // of the last look at each condition
	met      []*Match
	ticked   time.Time          // the last tick; zero: nothing was looked at
	isOff    map[wire.Name]bool // the agents that were off at the last tick
}

// look looks at the conditions that an entry may change, and at each tick at all.
func (p *waiting) look(ctx context.Context, e watcher.Entry) (done bool, err error) {
	isFirst := p.ticked.IsZero()
	isTick := e.Address.Agent == "" || e.Err != nil || time.Since(p.ticked) >= tickEvery
	if isTick {
		p.ticked = time.Now()
	}
	var looking sync.WaitGroup
	for i, c := range p.Conditions {
		news := e
		if !c.mayChange(e) {
			news = watcher.Entry{}
		}
		if isTick || c.mayChange(e) {
			looking.Go(func() { p.findings[i] = c.examine(ctx, p.scope, news, isTick) })
		}
	}
	looking.Wait()
	p.met = nil
	var inVain []error
	for _, f := range p.findings {
		if f.err != nil {
			return false, f.err
		} else if f.met != nil {
			p.met = append(p.met, f.met)
		} else if f.inVain != nil {
			inVain = append(inVain, f.inVain)
		}
	}
	n := len(p.findings)
	switch {
	case len(p.met) == n || len(p.met) > 0 && !p.Every:
		return true, nil
	case len(inVain) == n || len(inVain) > 0 && p.Every:
		return false, inVain[0]
	case isTick:
		p.warnOff(isFirst && p.IsToldOff)
	}
	return false, nil
}

// warnOff warns of agents that were not off at the last tick.
func (p *waiting) warnOff(isTold bool) {
	wereOff := p.isOff
	p.isOff = map[wire.Name]bool{}
	for _, f := range p.findings {
		for _, m := range f.off {
			if !wereOff[m.Name] && !p.isOff[m.Name] && !isTold {
				p.scope.Given.Warn("%s", describe(m))
			}
			p.isOff[m.Name] = true
		}
	}
}

// timeout says what was not met in time, what the agents do that could meet it, and how to wait for it again.
func (p *waiting) timeout(ctx context.Context) error {
	var what, flags, states []string
	instead := failure.Hint("do other work,")
	for i, f := range p.findings {
		if f.met != nil {
			continue
		}
		what, flags = append(what, f.unmet), append(flags, p.Conditions[i].flag())
		for _, a := range f.late {
			if why := p.scope.holds(ctx, p.Conditions[i].sent, a); why != "" {
				states = append(states, why)
			} else if now, err := p.scope.summary(ctx, a); err == nil && now.State != reducer.WordPerson {
				states = append(states, describe(now))
				if now.State == reducer.WordBlocked {
					instead = failure.Say("`atm pending` shows what is asked;")
				}
			}
		}
	}
	slices.Sort(states)
	again := strings.Join(slices.Compact(flags), "")
	if !p.Every && len(p.findings) > 1 {
		again += " --any"
	}
	text := strings.Join(slices.Compact(what), ", ") + " within " + p.Timeout.String()
	return failure.Timeout("%s", JoinFilled(": ", text, JoinFilled(", ", slices.Compact(states)...))).
		WithHint("%s or wait again: `atm wait%s`", instead, again)
}

// holds says what holds up a message at a recipient; "": nothing is known to, or there is no message.
func (s *Scope) holds(ctx context.Context, m *wire.Message, a wire.Address) string {
	if m == nil {
		return ""
	}
	gate := outlook.TraceOf(post.AnswersTo(ctx, s.Root, m), s.Root, m, a, RunCommand).Gate
	if gate == "" {
		return ""
	}
	return s.Who(a) + ": " + gate.Map(s.Given.Command).String()
}

// ErrTimeout is why UntilMail has ended when its time is over.
var ErrTimeout = errors.New("timeout")

// limit returns a context that ends with ErrTimeout after a timeout that is not 0.
func limit(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, cmp.Or(timeout, 1<<62), ErrTimeout)
}

// UntilMail calls try now and whenever something may have changed in a mailbox, until it is done or fails, the mailbox is
// retired, or a timeout that is not 0 is over. Nothing between two calls is missed.
func UntilMail(ctx context.Context, timeout time.Duration, box *maildir.Box, try func() (done bool, err error)) error {
	ctx, stop := limit(ctx, timeout)
	defer stop()
	return watcher.Until(ctx, []watcher.Mailbox{box}, watcher.Options{Messages: true}, func(e watcher.Entry) (bool, error) {
		done, err := try()
		if !done && err == nil && errors.Is(e.Err, mailbox.ErrNoMailbox) {
			err = e.Err
		}
		return done, err
	})
}

// InState says in which state a member is.
func InState(m presence.Member) string {
	switch m.State {
	case reducer.WordUnknown:
		return "the state of " + string(m.Name) + " is unknown"
	case reducer.WordPerson:
		return string(m.Name) + " is a person"
	case reducer.WordError:
		return string(m.Name) + " is in error"
	}
	return string(m.Name) + " is " + string(m.State)
}

// describe says in which state a member is, for how long, and its details.
func describe(m presence.Member) string {
	text := InState(m)
	if m.Since != nil && m.State != reducer.WordUnknown && m.State != reducer.WordError {
		text = string(m.Name) + " has been " + string(m.State) + " for " + letter.Span(time.Since(*m.Since))
	}
	if detail := presence.InWords(m.State, m.Detail); detail != "" {
		text += " (" + letter.Name(detail, 80) + ")"
	}
	if m.Host != "" {
		text += ", " + m.EvidenceAge(time.Now())
	}
	return text
}
