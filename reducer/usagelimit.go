package reducer

import (
	"time"

	"github.com/agentteammail/atm/wire"
)

// Limit is a usage limit, of which the agent's program has said when it ends. It outlives the program: a runner that is
// started again knows it.
type Limit struct {
	Notice string    `json:"notice"` // the program's words
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
	CutOff bool      `json:"cut_off,omitempty"` // it ended a turn
}

// maxLimit is how long a usage limit lasts at most. What says more is no time.
const maxLimit = 32 * 24 * time.Hour

// limitEnd is the time that an event gives for the end of a usage limit; zero: none.
func (e *event) limitEnd() (until time.Time) {
	if until.UnmarshalText([]byte(e.Text("until"))) != nil || until.Sub(e.at) > maxLimit {
		return time.Time{}
	}
	return until.UTC()
}

// noteLimit keeps the limit that the agent is at, as its runner sees it: the runner acts on that, and on nobody else's word.
// The turn that begins next ends it.
func (s *State) noteLimit(e *event) {
	isRunners := e.kind == wire.StateChange && (e.source == wire.SourcePTY || e.source == wire.SourceACP)
	switch ses := s.Session(); {
	case isRunners && ses.Activity == Limited && !ses.Until.IsZero():
		s.Limit = &Limit{Notice: ses.Detail, Since: ses.Since, Until: ses.Until, CutOff: ses.Last != nil && ses.Last.Status == Failed}
	case ses.Turn.IsOpen():
		s.Limit = nil
	}
}
