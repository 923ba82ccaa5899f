package room

import (
	"context"
	"maps"
	"time"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/wire"
)

const (
	redrawEvery = 100 * time.Millisecond // for a screen that changes all the time
	retryAfter  = 3 * time.Second
)

// followFor is how long a screen is followed after it was last asked for. A test shortens it.
var followFor = time.Minute

// A Screen is the content of an agent's terminal.
type Screen struct {
	ANSI    string // with colours
	Problem string // why it cannot be shown, with a hint; "": it can
}

// Screen returns an agent's screen, nil if it is not known yet. It follows the screen until ctx ends: each change makes
// a new snapshot. A caller that still shows it calls again within a minute.
func (r *Room) Screen(ctx context.Context, name wire.Name) *Screen {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, isFollowed := r.askedAt[name]; !isFollowed {
		go r.followScreen(ctx, name)
	}
	r.askedAt[name] = time.Now()
	return r.current.Screens[name]
}

// followScreen keeps a screen up to date until its runner ends, or nobody has asked for it for followFor.
func (r *Room) followScreen(ctx context.Context, name wire.Name) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := r.Scope.AskRunner(ctx, name, func(client *control.Client) error {
		viewer, err := r.Scope.Team.DialRunner(ctx, name)
		if err != nil {
			return err
		}
		changed, ended := make(changeSignal, 1), make(chan struct{})
		go func() {
			defer close(ended)
			viewer.Attach(ctx, control.AttachRequest{ReadOnly: true}, control.Terminal{Out: changed})
		}()
		for {
			screen, err := client.Screen(ctx, control.ScreenRequest{ANSI: true})
			if err != nil {
				return err
			}
			if asked := r.setScreen(name, &Screen{ANSI: screen.ANSI}); time.Since(asked) > followFor {
				return nil
			}
			time.Sleep(redrawEvery)
			select {
			case <-changed:
			case <-time.After(followFor / 2): // the runner ends a connection that says nothing
			case <-ended:
				return control.ErrNoRunner
			}
		}
	})
	if err != nil { // removing the screen makes viewers ask again, so that waits for a while
		e := r.Scope.Given.Explain(err)
		r.setScreen(name, &Screen{Problem: app.JoinFilled(": ", e.Message, e.Hint.String())})
		time.Sleep(retryAfter)
	}
	r.setScreen(name, nil)
}

// setScreen puts a screen into the snapshot, and returns when it was last asked for. If s is nil, it removes the
// screen.
func (r *Room) setScreen(name wire.Name, s *Screen) (asked time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := *r.current
	next.Screens = maps.Clone(next.Screens)
	next.Screens[name] = s
	asked = r.askedAt[name]
	if s == nil {
		delete(next.Screens, name)
		delete(r.askedAt, name)
	}
	r.replace(&next)
	return asked
}

// changeSignal says that something has changed since it was last received.
type changeSignal chan struct{}

func (s changeSignal) send() {
	select {
	case s <- struct{}{}:
	default:
	}
}

func (s changeSignal) Write(p []byte) (int, error) {
	s.send()
	return len(p), nil
}
