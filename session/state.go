package session

import (
	"fmt"
	"slices"
	"time"
)

// State is where a session is in its life.
type State string

// The states of a session.
const (
	Active    State = "active"
	Paused    State = "paused"
	Completed State = "completed"
	Aborted   State = "aborted"
)

// transitions are the states that each state may become.
var transitions = map[State][]State{
	Active: {Paused, Completed, Aborted},
	Paused: {Active, Aborted},
}

// Alive reports whether the session is active or paused.
func (s State) Alive() bool { return s == Active || s == Paused }

// Transition moves the session to another state. After an error, which is an *Error, nothing has changed.
func (s *InteractiveSession) Transition(to State, now time.Time) error {
	if !slices.Contains(transitions[s.State], to) {
		return &Error{Reason: fmt.Sprintf("invalid session transition from %s to %s", s.State, to)}
	}
	s.State, s.UpdatedAt = to, now
	return nil
}
