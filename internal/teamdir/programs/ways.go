package programs

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/agents/all"
	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/wire"
)

// An OpenWay is a way that is open to a program now.
type OpenWay struct {
	By           string
	delivery.Way // nil: the program takes its mail itself
}

// open opens a way to a program, or says in a few words why it is not open.
func (p Program) open(way agents.Way, says func() (*agents.Session, error)) (*OpenWay, error) {
	switch {
	case way.By == agents.ByHook: // its hooks have noted it
		return &OpenWay{By: way.By}, nil
	case way.By == agents.ByPlugin && slices.Contains(p.Opens, way.By):
		return &OpenWay{By: way.By}, nil
	case way.By == agents.ByPlugin:
		return nil, fmt.Errorf("its hooks have not opened the %s", way.By)
	case way.By == agents.ByPane && p.Pane != nil:
		return &OpenWay{By: way.By}, nil
	case way.By == agents.ByPane:
		return nil, errors.New("it was started in none")
	}
	s, err := says()
	if err != nil {
		return nil, err
	}
	if s.ID != p.Session {
		return nil, errors.New("its conversation has changed since its hooks last ran")
	}
	into, err := s.Open(p.Mode)
	return &OpenWay{way.By, into}, err
}

// BestWay opens the best way to a program for a moment (of agents.Moments) besides those that were tried in vain, and says
// why better ones are not open.
func (p Program) BestWay(moment string, tried ...string) (*OpenWay, string) {
	return p.bestWay(p.Says, moment, tried...)
}

func (p Program) bestWay(says func() (*agents.Session, error), moment string, tried ...string) (*OpenWay, string) {
	var why []string
	for _, way := range all.Of(p.Tool).Ways {
		if !slices.Contains(way.At, moment) || slices.Contains(tried, way.By) {
			continue
		}
		d, err := p.open(way, says)
		if err == nil {
			return d, strings.Join(why, "; ")
		}
		why = append(why, fmt.Sprintf("%s: %v", way.By, err))
	}
	return nil, strings.Join(why, "; ")
}

// A WayNow is how mail or an answer gets into a member's program at a moment.
type WayNow struct {
	At  string `json:"at"`            // of agents.Moments
	By  string `json:"by,omitempty"`  // of the vendor; "": none is open
	Why string `json:"why,omitempty"` // why a better one is not
}

// WaysNow returns the ways into a member's program that its person started; none if there is no such program.
func WaysNow(t *teamdir.Team, name wire.Name) (ways []WayNow) {
	p, ok := Bound(t, name)
	if !ok {
		return nil
	}
	says := sync.OnceValues(p.Says)
	for _, moment := range agents.Moments {
		way, why := p.bestWay(says, moment)
		now := WayNow{At: moment, Why: cmp.Or(why, "its maker offers none")}
		if way != nil {
			now.By, now.Why = way.By, why
		}
		ways = append(ways, now)
	}
	return ways
}

// ReachesIdle reports whether mail gets into a member's program that its person started while it is idle.
func ReachesIdle(t *teamdir.Team, name wire.Name) bool {
	p, ok := Bound(t, name)
	if !ok {
		return false
	}
	way, _ := p.BestWay(agents.AtIdle)
	return way != nil
}
