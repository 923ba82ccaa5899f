package cmdline

import (
	"errors"
	"fmt"
)

// Exit codes. A caller may rely on them; new ones are never slipped in
// between.
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

// An Error is what a verb returns to say more than that it failed: the code
// of the JSON object, the exit code, and the way out.
type Error struct {
	Code       string // "failed", "usage", "ambiguous", …
	Exit       int
	Message    string // lower case, no full stop
	Hint       string // a command that helps when typed
	Candidates []string
	Extra      map[string]any // stands beside "error" in the JSON object: "timeout": true
	// Printed: the verb has said everything; only Exit counts, as it is.
	Printed bool

	cause error
}

func (e *Error) Error() string { return e.Message }

// Unwrap returns what was given to the constructor with %w.
func (e *Error) Unwrap() error { return e.cause }

// WithHint sets the hint and returns e.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// WithCandidates sets the names that might have been meant and returns e.
// They are the hint where there is none.
func (e *Error) WithCandidates(names ...string) *Error {
	e.Candidates = names
	return e
}

// newError formats like fmt.Errorf, %w included.
func newError(code string, exit int, format string, args []any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Exit: exit, Message: err.Error(), cause: unwrap(err)}
}

// unwrap returns what fmt.Errorf wrapped: nothing, one error, or several.
func unwrap(err error) error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return errors.Join(many.Unwrap()...)
	}
	return errors.Unwrap(err)
}

// Failed is exit 1, code "failed".
func Failed(format string, args ...any) *Error {
	return newError("failed", ExitFailed, format, args)
}

// Usage is exit 2, code "usage": the command line is wrong.
func Usage(format string, args ...any) *Error {
	return newError("usage", ExitUsage, format, args)
}

// Ambiguous is exit 2, code "ambiguous": it could mean several things, which
// are the candidates.
func Ambiguous(format string, args ...any) *Error {
	return newError("ambiguous", ExitUsage, format, args)
}

// NotFound is exit 3, code "not_found".
func NotFound(format string, args ...any) *Error {
	return newError("not_found", ExitNotFound, format, args)
}

// Timeout is exit 4, code "timeout".
func Timeout(format string, args ...any) *Error {
	return newError("timeout", ExitTimeout, format, args)
}

// Refused is exit 5, code "refused": it is not the caller's to do.
func Refused(format string, args ...any) *Error {
	return newError("refused", ExitRefused, format, args)
}

// Locked is exit 5, code "locked": somebody else holds it.
func Locked(format string, args ...any) *Error {
	return newError("locked", ExitRefused, format, args)
}

// Partial is exit 6, code "partial".
func Partial(format string, args ...any) *Error {
	return newError("partial", ExitPartial, format, args)
}
