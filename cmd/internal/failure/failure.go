// Package failure has the errors of the command line: what failed, the exit code, and a hint that says what to type
// next.
package failure

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/xrash/smetrics"

	"github.com/agentteammail/atm/cmd/internal/output"
	"github.com/agentteammail/atm/internal/letter"
)

// Exit codes. Callers rely on them.
const (
	ExitDone        = 0 // also when there was no mail
	ExitFailed      = 1
	ExitUsage       = 2
	ExitNotFound    = 3 // root, team, agent, message or session
	ExitTimeout     = 4 // what the caller asked to wait for did not happen in time
	ExitRefused     = 5 // somebody else holds it, or the caller may not do it
	ExitPartial     = 6 // done for some recipients only
	ExitInterrupted = 130
)

// An Error is an error with an exit code and a hint.
type Error struct {
	Code       string   `json:"code"`    // "failed", "usage", "ambiguous", …
	Exit       int      `json:"-"`       // the exit code
	Message    string   `json:"message"` // operation and object, in lower case, without a full stop
	Hint       Hint     `json:"hint,omitempty"`
	Candidates []string `json:"candidates"` // names that may have been meant; never nil

	Done   any  `json:"-"` // what was done all the same: its JSON fields go beside "error"
	Silent bool `json:"-"` // the verb has printed everything; only Exit counts

	cause error
}

func (e *Error) Error() string { return e.Message }

// Unwrap returns the error that the constructor was given for %w.
func (e *Error) Unwrap() error { return e.cause }

// WithHint sets the hint: see Say.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = Say(format, args...)
	return e
}

// WithNearest puts the known name nearest to a word in front of the hint; it is the candidate if there are no others.
func (e *Error) WithNearest(word string, known []string) *Error {
	if near, ok := Nearest(word, known); ok {
		e.Hint = Say("did you mean %q? %s", near, e.Hint)
		if len(e.Candidates) == 0 {
			e.WithCandidates(near)
		}
	}
	return e
}

// WithCandidates adds candidates.
func (e *Error) WithCandidates(names ...string) *Error {
	e.Candidates = append(e.Candidates, names...)
	return e
}

var exits = map[string]int{
	"failed": ExitFailed, "usage": ExitUsage, "ambiguous": ExitUsage, "not_found": ExitNotFound,
	"timeout": ExitTimeout, "refused": ExitRefused, "locked": ExitRefused,
}

// New is for an error that came with its code. Its exit code is 0 if the code is none of ours.
func New(code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Exit: exits[code], Message: err.Error(), Candidates: []string{}, cause: errors.Unwrap(err)}
}

// Usage is for a wrong command line, Ambiguous for a name that could be any of the candidates, NotFound for a missing
// object, Refused for what the caller may not do, Locked for a lock that another process holds, Timeout for a wait in
// vain, whose JSON says "timeout": true, Failed for all else.
func Failed(format string, args ...any) *Error    { return New("failed", format, args...) }
func Usage(format string, args ...any) *Error     { return New("usage", format, args...) }
func Ambiguous(format string, args ...any) *Error { return New("ambiguous", format, args...) }
func NotFound(format string, args ...any) *Error  { return New("not_found", format, args...) }
func Refused(format string, args ...any) *Error   { return New("refused", format, args...) }
func Locked(format string, args ...any) *Error    { return New("locked", format, args...) }
func Timeout(format string, args ...any) *Error   { return New("timeout", format, args...) }

// Exit ends the command with an exit code and prints nothing.
func Exit(code int) *Error { return &Error{Exit: code, Silent: true} }

// Print prints an error on stderr.
func (e *Error) Print(stderr io.Writer) {
	PrintLine(stderr, "atm: "+e.Message)
	if e.Hint != "" {
		PrintLine(stderr, "atm: hint: "+e.Hint.String())
	}
}

// PrintLine prints a line on stderr, escaped. On a terminal only its beginning is in column 0.
func PrintLine(stderr io.Writer, text string) {
	ShowProgress(stderr, "")
	fmt.Fprintln(stderr, letter.Wrap(EscapeLine(text), output.Width(stderr)))
}

// EscapeLine puts a text, which may be several joined errors, on one line.
func EscapeLine(text string) string { return letter.Escape(strings.ReplaceAll(text, "\n", "; ")) }

// Nearest returns the known word most like another, case aside, by the measure with which urfave/cli suggests commands.
// That has no bound, so for a word like none of them it would name one as well; and it misses reordered short words.
func Nearest(word string, known []string) (best string, ok bool) {
	most := 0.85
	for _, name := range known {
		likeness := smetrics.JaroWinkler(strings.ToLower(name), strings.ToLower(word), 0.7, 4)
		if sortedLetters(name) == sortedLetters(word) {
			likeness = max(likeness, 0.95)
		}
		isTooShort := len(word) < 3 && !strings.HasPrefix(name, word) && sortedLetters(name) != sortedLetters(word) // ps is like pm
		if likeness > most && !isTooShort {
			best, most = name, likeness
		}
	}
	return best, best != ""
}

// IsSlip reports whether a word is a name with a letter more, less or other, or with two neighbours swapped.
func IsSlip(word, name string) bool {
	if smetrics.WagnerFischer(word, name, 1, 1, 1) <= 1 {
		return true
	}
	if len(word) != len(name) {
		return false
	}
	i := 0
	for word[i] == name[i] {
		i++
	}
	return i+1 < len(word) && word[i] == name[i+1] && word[i+1] == name[i] && word[i+2:] == name[i+2:]
}

func sortedLetters(word string) string {
	return string(slices.Sorted(slices.Values([]byte(strings.ToLower(word)))))
}
