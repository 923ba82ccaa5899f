package ptyrun

import (
	"context"
	"log/slog"
	"time"

	"github.com/agentteammail/atm/ptyrun/internal/terminal"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// A Follower sees what the agent of a run does and gets, may hold back its mail, and may stop it. Package sessions has
// one. The runner calls its methods one at a time, and they must not block. But Run and Admit are called beside the
// others, and may block; with what the others use they work through Followed.Do.
type Follower interface {
	Run(ctx context.Context)        // until ctx ends
	Detach(exit Exit, failed error) // the last call, which may block; none if another runner has the agent by now
	IsReady() bool                  // it has begun to follow: until then the run is not called ready

	// WhyWithheld says why an unread message must not be given to the agent now; "": it may. It is asked when a message
	// has arrived or is reread, and again before it is given. Admit is asked before messages are claimed, and returns
	// those that may be given by what is on disk then.
	WhyWithheld(m *wire.Message) string
	Admit(ids []wire.ID) []wire.ID

	Body(m *wire.Message) string // what the agent gets as the message's body; called one at a time or beside
	HandleEvent(e *wire.Event)   // of the agent's log
	HandleTyped(text string)     // that is being typed, and that the terminal may echo

	// HandleLines gets the lines of the agent's terminal, each once, when they are final; omitted is how many are missing
	// before them. MaxLines returns how many it wants now, of the last ones; 0: they wait, as long as the terminal
	// remembers them.
	HandleLines(lines []string, omitted uint64)
	MaxLines() int
}

// Followed is the run of an agent, for its follower. Retry and Stop may be called from anywhere, Do by what runs
// beside, and the rest by the methods that are called one at a time, and in Do.
type Followed struct {
	Dir string // of the agent: .atm/main/bob
	Log *slog.Logger

	r *runner
}

// Do calls a function between two of the calls that come one at a time. It returns false if the run is over.
func (f Followed) Do(do func()) bool { return f.r.Call(do) }

// Retry calls try beside the others until it succeeds, and when the run is over once more.
func (f Followed) Retry(what string, try func() error) { f.r.Go(func() { f.r.Retry(what, try) }) }

// Stop stops the agent when its turn is over, or after patience. Mail that it has stays read: with what it was about it is
// over.
func (f Followed) Stop(why string, patience time.Duration) {
	r := f.r
	r.Go(func() {
		r.Poll(patience, func() bool { return r.State.Session().Word() != reducer.WordBusy && r.IsLogged() })
		r.Post(func() {
			if r.stopping == nil {
				r.Notify(why)
			}
			r.stopWith(why, func() {})
		})
	})
}

// Reread asks again whether a message is withheld, and acts on it.
func (f Followed) Reread(id wire.ID) {
	r := f.r
	r.Go(func() {
		if it, err := r.Box.Get(id); err == nil {
			r.Post(func() { r.inbox.Arrived(it, r.Now()) })
		}
	})
}

// Append appends an event to the agent's log.
func (f Followed) Append(e wire.Event) { f.r.Append(e) }

// IsEngaged reports whether the agent starts, works or is about to, or a person has typed in its terminal within some
// time.
func (f Followed) IsEngaged(within time.Duration) bool {
	r := f.r
	switch r.State.Word() {
	case reducer.WordBusy, reducer.WordBlocked, reducer.WordStarting:
		return true
	}
	return r.inbox.IsGiving() || r.Now().Before(r.LastKey.Add(within))
}

const recogniseTime = 2 * time.Second // for the screen to show which program it is

// Program says whether a program runs that no driver knows, once that is certain, and whether what it shows stays, line
// by line. It is not ok while no program runs.
func (f Followed) Program() (isPlain, hasLines, ok bool) {
	r := f.r
	if r.prog == nil {
		return false, false, false
	}
	is := r.prog.State()
	isCertain := !r.isAuto || is.IsReady || r.Now().Sub(r.prog.started) >= recogniseTime
	return is.IsPlain && isCertain, is.IsPlain || is.HasLines, true
}

// NewAnswer returns the answer that the terminal of the program shows; "": none that is not known yet.
func (f Followed) NewAnswer() string {
	r := f.r
	t := terminal.Of(r.Run)
	if t == nil {
		return ""
	}
	answer := t.Response()
	if answer == r.LastAnswer {
		return ""
	}
	r.LastAnswer = answer
	return answer
}

// ForgetLines forgets the lines that the program has shown and that HandleLines did not get.
func (f Followed) ForgetLines() {
	if t := terminal.Of(f.r.Run); t != nil {
		t.ForgetLines()
	}
}

// noFollower follows nothing.
type noFollower struct{}

func (noFollower) Run(context.Context)              {}
func (noFollower) Detach(Exit, error)               {}
func (noFollower) IsReady() bool                    { return true }
func (noFollower) WhyWithheld(*wire.Message) string { return "" }
func (noFollower) Admit(ids []wire.ID) []wire.ID    { return ids }
func (noFollower) Body(m *wire.Message) string      { return m.Body }
func (noFollower) HandleEvent(*wire.Event)          {}
func (noFollower) HandleTyped(string)               {}
func (noFollower) HandleLines([]string, uint64)     {}
func (noFollower) MaxLines() int                    { return 0 }
