package command

import (
	"errors"
	"fmt"
)

// Exit codes. Callers rely on them.
const (
	ExitDone        = 0 // also when there was no mail
	ExitFailed      = 1
	ExitUsage       = 2
	ExitNotFound    = 3 // root, team, agent, message or session
	ExitTimeout     = 4 // waited in vain for what the caller asked to wait for
	ExitRefused     = 5 // somebody else holds it, or it is not yours to do
	ExitPartial     = 6 // done for some recipients only
	ExitInterrupted = 130
)

// An Error is what a verb returns to say more than that it failed.
type Error struct {
	Code       string   `json:"code"`                 // "failed", "usage", "ambiguous", …
	Exit       int      `json:"-"`                    // the exit code
	Message    string   `json:"message"`              // the operation and the object, lower case, no stop
	Hint       string   `json:"hint,omitempty"`       // a command that helps when typed
	Candidates []string `json:"candidates,omitempty"` // the names that may have been meant

	Extra  map[string]any `json:"-"` // stands beside "error" in the JSON object: "timeout": true
	Silent bool           `json:"-"` // the verb has said everything; only Exit counts

	cause error
}

func (e *Error) Error() string { return e.Message }

// Unwrap returns what was given to the constructor with %w.
func (e *Error) Unwrap() error { return e.cause }

// WithHint sets the hint.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// WithCandidates sets the names that may have been meant.
func (e *Error) WithCandidates(names ...string) *Error {
	e.Candidates = names
	return e
}

func newError(code string, exit int, format string, args []any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Exit: exit, Message: err.Error(), cause: errors.Unwrap(err)}
}

// Failed is exit 1, Usage (a wrong command line) and Ambiguous (it could mean any of the
// candidates) exit 2, NotFound exit 3, Refused (not the caller's to do) and Locked
// (somebody else holds it) exit 5.
func Failed(format string, args ...any) *Error { return newError("failed", ExitFailed, format, args) }
func Usage(format string, args ...any) *Error  { return newError("usage", ExitUsage, format, args) }
func Ambiguous(format string, args ...any) *Error {
	return newError("ambiguous", ExitUsage, format, args)
}
func NotFound(format string, args ...any) *Error {
	return newError("not_found", ExitNotFound, format, args)
}
func Refused(format string, args ...any) *Error {
	return newError("refused", ExitRefused, format, args)
}
func Locked(format string, args ...any) *Error { return newError("locked", ExitRefused, format, args) }

// Timeout is exit 4; its JSON says "timeout": true.
func Timeout(format string, args ...any) *Error {
	e := newError("timeout", ExitTimeout, format, args)
	e.Extra = map[string]any{"timeout": true}
	return e
}

// Exit ends the command with a code and no further word.
func Exit(code int) *Error { return &Error{Exit: code, Silent: true} }
