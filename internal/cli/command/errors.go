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
	Code       string   // "failed", "usage", "ambiguous", …
	Exit       int      // the exit code
	Message    string   // the operation and the object, lower case, no stop
	Hint       string   // a command that helps when typed
	Candidates []string // the names that may have been meant

	// Extra stands beside "error" in the JSON object: "timeout": true.
	Extra map[string]any

	// Silent: the verb has said everything; only Exit counts.
	Silent bool

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

// Failed is exit 1.
func Failed(format string, args ...any) *Error { return newError("failed", ExitFailed, format, args) }

// Usage is exit 2: the command line is wrong.
func Usage(format string, args ...any) *Error { return newError("usage", ExitUsage, format, args) }

// Ambiguous is exit 2: it could mean several things, which are the candidates.
func Ambiguous(format string, args ...any) *Error {
	return newError("ambiguous", ExitUsage, format, args)
}

// NotFound is exit 3.
func NotFound(format string, args ...any) *Error {
	return newError("not_found", ExitNotFound, format, args)
}

// Timeout is exit 4; its JSON says "timeout": true.
func Timeout(format string, args ...any) *Error {
	e := newError("timeout", ExitTimeout, format, args)
	e.Extra = map[string]any{"timeout": true}
	return e
}

// Refused is exit 5: it is not the caller's to do.
func Refused(format string, args ...any) *Error {
	return newError("refused", ExitRefused, format, args)
}

// Locked is exit 5: somebody else holds it.
func Locked(format string, args ...any) *Error { return newError("locked", ExitRefused, format, args) }

// Exit ends the command with a code and no further word.
func Exit(code int) *Error { return &Error{Exit: code, Silent: true} }
