package room

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/wire"
)

const (
	redraw  = 100 * time.Millisecond // how often a screen that changes all the time is shown
	keepFor = time.Minute            // a screen is followed so long after it was last asked for
	retry   = 3 * time.Second        // from an error to the next try
)

// A Screen is what an agent's terminal shows.
type Screen struct {
	ANSI    string // with colours
	Problem string // why it cannot be shown, and what helps; "": it can
}

// Screen is an agent's screen; nil: it is not known yet. From now on it is followed, until ctx ends: when it
// has changed there is a newer snapshot, and whoever still looks asks again.
func (r *Room) Screen(ctx context.Context, name wire.Name) *Screen {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, isFollowed := r.asked[name]; !isFollowed {
		go r.followScreen(ctx, name)
	}
	r.asked[name] = time.Now()
	return r.now.Screens[name]
}

// followScreen keeps a screen up to date until its runner ends, or nobody has asked for some time. Whoever looks at it
// all the same is told of that as well.
func (r *Room) followScreen(ctx context.Context, name wire.Name) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := r.Scope.AskRunner(ctx, name, func(client *control.Client) error {
		viewer, err := r.Scope.Team.DialRunner(ctx, name)
		if err != nil {
			return err
		}
		changed, ended := make(signal, 1), make(chan struct{})
		go func() {
			defer close(ended)
			viewer.Attach(ctx, control.AttachRequest{ReadOnly: true}, control.Terminal{Out: changed})
		}()
		for {
			screen, err := client.Screen(ctx, control.ScreenRequest{ANSI: true})
			if err != nil {
				return err
			}
			if asked := r.setScreen(name, &Screen{ANSI: screen.ANSI}); time.Since(asked) > keepFor {
				return nil
			}
			time.Sleep(redraw)
			select {
			case <-changed:
			case <-ended:
				return control.ErrNoRunner
			}
		}
	})
	if err != nil { // whoever looks asks again when it is gone, which would go in a circle
		e := r.Scope.Explain(err)
		r.setScreen(name, &Screen{Problem: strings.TrimSuffix(e.Message+": "+e.Hint, ": ")})
		time.Sleep(retry)
	}
	r.setScreen(name, nil)
}

// setScreen puts a screen into the snapshot, and returns when it was last asked for. nil: it is not followed any more.
func (r *Room) setScreen(name wire.Name, s *Screen) (asked time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := *r.now
	next.Screens = maps.Clone(next.Screens)
	next.Screens[name] = s
	asked = r.asked[name]
	if s == nil {
		delete(next.Screens, name)
		delete(r.asked, name)
	}
	r.replace(&next)
	return asked
}

// signal is a writer that tells that something was written.
type signal chan struct{}

func (s signal) Write(p []byte) (int, error) {
	select {
	case s <- struct{}{}:
	default:
	}
	return len(p), nil
}
