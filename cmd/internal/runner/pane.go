package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/output"
	"github.com/agentteammail/atm/cmd/internal/runspec"
	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/internal/driver"
	drivers "github.com/agentteammail/atm/internal/driver/agents"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/pane"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/internal/teamdir/push"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// How often a pane is looked at: less and less often while nothing can be typed there.
const (
	paneSoon  = 300 * time.Millisecond
	paneLater = 3 * time.Second
)

// paneTries is how often a text is pasted, and taken back, before the mail is left for the program's next turn.
const paneTries = 3

func runPane(std output.Streams) int {
	var spec app.PaneSpec
	var team *teamdir.Team
	err := json.NewDecoder(std.In).Decode(&spec)
	if err == nil {
		team, err = openTeam(runspec.Spec{Root: spec.Root, Team: spec.Team})
	}
	if err == nil {
		ctx, stop := output.UntilSignal(context.Background())
		defer stop()
		driver.Use(drivers.Load(drivers.Dir()))
		err = typeMail(ctx, team, spec.Agent)
	}
	if err != nil {
		fmt.Fprintln(std.Err, err)
		return failure.ExitFailed
	}
	return failure.ExitDone
}

// typeMail types a member's mail into its program's pane until none is left. Only one process does: what comes while that ends
// is seen after the lock is free.
func typeMail(ctx context.Context, team *teamdir.Team, name wire.Name) error {
	for {
		lock, err := team.Locks().Lock(ctx, string(name)+".pane", lockfile.Exclusive, 0, team.Box(name).CheckPresent)
		if _, isHeld := errors.AsType[*lockfile.HeldError](err); isHeld {
			return nil
		} else if err != nil {
			return err
		}
		more, err := typeSome(ctx, team, name)
		if lock.Unlock(); err != nil || !more || !waits(team, name) {
			return err
		}
	}
}

// typeSome gives the program what waits, and reports whether more of it may be given.
func typeSome(ctx context.Context, team *teamdir.Team, name wire.Name) (more bool, err error) {
	for tries, wait := 0, paneSoon; tries < paneTries && ctx.Err() == nil; wait = min(wait*3/2, paneLater) {
		if !waits(team, name) {
			return true, nil
		}
		m, _ := presence.One(ctx, team, name)
		p, ok := programs.Bound(team, name)
		way, _ := p.BestWay(agents.AtIdle)
		d, isKnown := driver.Named(p.Tool)
		if !ok || way == nil || way.By != agents.ByPane || !isKnown || m.State == reducer.WordLimited {
			return false, nil
		}
		into := &pane.Way{Pane: *p.Pane, PID: p.PID, Driver: d}
		err := into.Look(ctx)
		if err == nil {
			o := push.Options{Way: into, Limit: letter.MaxMessages, Match: func(it *wire.Item) bool {
				_, ok := pane.Typed(d, string((&letter.Renderer{Now: time.Now(), Team: team.Name, Digits: 6}).Frame(it.Message, letter.Flags{}))+letter.End)
				return ok
			}}
			if m.State == reducer.WordIdle {
				o.IdleSince = m.Since
			}
			given, err := push.Into(ctx, team, name, p, o)
			switch {
			case errors.Is(err, delivery.ErrUnsure), errors.Is(err, pane.ErrGone):
				return false, err
			case err == nil && len(given.Items) == 0: // what waits cannot be typed, or somebody else has it
				return false, nil
			case err == nil:
				tries, wait = 0, paneSoon
			default:
				tries++
			}
		} else if errors.Is(err, pane.ErrGone) {
			return false, err
		}
		app.Sleep(ctx, wait)
	}
	return false, nil
}

// waits reports whether there is mail for which the program would begin a turn, and that nobody has, or that nobody has
// confirmed in time.
func waits(team *teamdir.Team, name wire.Name) bool {
	box, holds, now := team.Box(name), team.Holds(name), time.Now()
	ids, _ := box.UnreadIDs()
	held, _ := box.Held()
	for _, id := range ids {
		if h := held[id]; h.IsLive(now, false) && (h.Session() == "" || now.Sub(h.Since) < delivery.Patience) {
			continue
		}
		it, err := box.Get(id)
		if err == nil && !it.StartsNoTurn() && !it.Expired(now) && box.IsDue(it.Message) && holds(it.Message) == (teamdir.Hold{}) {
			return true
		}
	}
	return false
}
