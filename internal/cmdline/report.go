package cmdline

import (
	"context"
	"errors"
	"io/fs"
	"runtime"
	"strings"
	"syscall"
)

// report prints err where the caller looks for it and returns the exit code.
func (c *Call) report(err error) int {
	if err == nil {
		return ExitDone
	}
	if c.Verb != nil && c.Verb.FailsOpen {
		return c.reportOpen(err)
	}
	if c.ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return ExitInterrupted
	}
	if c.readerGone(err) {
		return ExitFailed
	}
	e := &Error{Code: "failed", Exit: ExitFailed}
	if errors.As(err, &e) && e.Printed {
		return e.Exit
	}
	shown := *e
	shown.Message = err.Error() // with what wrapping has added
	if shown.Exit == ExitDone {
		shown.Exit = ExitFailed
	}
	if shown.Code == "" {
		shown.Code = "failed"
	}
	if shown.Hint == "" && len(shown.Candidates) > 0 {
		shown.Hint = "one of " + strings.Join(shown.Candidates, ", ")
	}
	if shown.Hint == "" && shown.Code == "usage" && c.Verb != nil {
		shown.Hint = c.Path + " --help"
	}
	if c.JSON() && c.printError(&shown) == nil {
		return shown.Exit
	}
	// Also where stdout takes no JSON: a full disk is not passed over in silence.
	text := c.app.Name + ": " + Escape(shown.Message) + "\n"
	if shown.Hint != "" {
		text += c.app.Name + ": hint: " + Escape(shown.Hint) + "\n"
	}
	c.Stderr.WriteString(text)
	return shown.Exit
}

// reportOpen is report for a verb that fails open.
func (c *Call) reportOpen(err error) int {
	var e *Error
	if errors.As(err, &e) && e.Printed {
		return e.Exit
	}
	c.Stderr.WriteString(c.app.Name + ": " + Escape(err.Error()) + "\n")
	return ExitDone
}

// printError writes the JSON object of an error to stdout.
func (c *Call) printError(e *Error) error {
	type object struct {
		Code       string   `json:"code"`
		Message    string   `json:"message"`
		Hint       string   `json:"hint,omitempty"`
		Candidates []string `json:"candidates,omitempty"`
	}
	o := object{e.Code, e.Message, e.Hint, e.Candidates}
	all := make(map[string]any, 1+len(e.Extra))
	for k, v := range e.Extra {
		all[k] = v
	}
	all["error"] = o
	if c.PrintJSON(all) == nil {
		return nil
	}
	// What cannot be written as JSON is left out rather than everything.
	return c.PrintJSON(map[string]any{"error": o})
}

// readerGone says whether err is that nobody reads stdout any more, as with
// `atm ls | head -1`.
func (c *Call) readerGone(err error) bool {
	var pathErr *fs.PathError
	var errno syscall.Errno
	if !errors.As(err, &pathErr) || pathErr.Path != c.Stdout.Name() || !errors.As(pathErr.Err, &errno) {
		return false
	}
	const brokenPipe, noData = 109, 232 // the same on Windows
	return errno == syscall.EPIPE || runtime.GOOS == "windows" && (errno == brokenPipe || errno == noData)
}
