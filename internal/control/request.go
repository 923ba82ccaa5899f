package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"
)

const (
	// maxLine bounds a request and an answer.
	maxLine = 4 << 20
	// maxLast bounds the lines that may be asked for.
	maxLast = 100_000
	version = 1
)

// greeting is the server's first line.
type greeting struct {
	ATM     string `json:"atm"`
	Version int    `json:"version"`
	PID     int    `json:"pid"`
}

// The operations.
const (
	opStatus    = "status"
	opScreen    = "screen"
	opType      = "type"
	opInterrupt = "interrupt"
	opAnswer    = "answer"
	opStop      = "stop"
	opRestart   = "restart"
	opAttach    = "attach"
)

// request is every request; each operation reads its own fields.
type request struct {
	Op       string `json:"op"`
	ANSI     bool   `json:"ansi,omitempty"`
	Last     int    `json:"last,omitempty"`
	Text     string `json:"text,omitempty"`
	Bytes    []byte `json:"bytes,omitempty"` // in place of a text that is not UTF-8
	Raw      bool   `json:"raw,omitempty"`
	Enter    bool   `json:"enter,omitempty"`
	ID       string `json:"id,omitempty"`
	Option   string `json:"option,omitempty"`
	Deny     bool   `json:"deny,omitempty"`
	Reason   string `json:"reason,omitempty"`
	By       string `json:"by,omitempty"`
	GraceMS  int64  `json:"grace_ms,omitempty"`
	Cols     int    `json:"cols,omitempty"`
	Rows     int    `json:"rows,omitempty"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

func bad(format string, args ...any) *Error {
	return &Error{Code: "usage", Message: fmt.Sprintf(format, args...)}
}

// decodeRequest reads a line; what it returns may be handed to dispatch.
func decodeRequest(line []byte) (request, *Error) {
	var r request
	if !utf8.Valid(line) {
		return r, bad("the request is not UTF-8")
	}
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] != '{' {
		return r, bad("the request is no JSON object")
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return request{}, bad("the request cannot be read: %v", err)
	}
	const day = 24 * 60 * 60 * 1000
	switch {
	case r.Op == "":
		return r, bad("the request names no operation")
	case r.Last < 0 || r.Last > maxLast:
		return r, bad("last: not between 0 and %d", maxLast)
	case r.GraceMS < 0 || r.GraceMS > day:
		return r, bad("grace_ms: not between 0 and a day")
	case r.Text != "" && len(r.Bytes) > 0:
		return r, bad("text and bytes exclude each other")
	}
	switch r.Op {
	case opStatus, opScreen, opType, opInterrupt, opAnswer, opStop, opRestart:
	case opAttach:
		if size := (Size{r.Cols, r.Rows}); !size.valid() {
			return r, bad("a terminal of %d columns and %d rows cannot be", r.Cols, r.Rows)
		}
	default:
		return r, bad("there is no operation %q", clip(r.Op))
	}
	return r, nil
}

// clip shortens a word from outside.
func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}

// dispatch calls the Handler for anything but attach.
func dispatch(ctx context.Context, h Handler, r request) (any, error) {
	switch r.Op {
	case opStatus:
		return h.Status(ctx)
	case opScreen:
		return h.Screen(ctx, ScreenRequest{ANSI: r.ANSI, Last: r.Last})
	case opType:
		text := r.Text
		if len(r.Bytes) > 0 {
			text = string(r.Bytes)
		}
		return h.Type(ctx, TypeRequest{Text: text, Raw: r.Raw, Enter: r.Enter})
	case opInterrupt:
		return h.Interrupt(ctx)
	case opAnswer:
		return h.Answer(ctx, AnswerRequest{ID: r.ID, Option: r.Option, Deny: r.Deny, Reason: r.Reason, By: r.By})
	case opStop:
		return h.Stop(ctx, StopRequest{Grace: time.Duration(r.GraceMS) * time.Millisecond})
	case opRestart:
		return h.Restart(ctx)
	}
	return nil, bad("there is no operation %q", clip(r.Op))
}

// answer is every answer.
type answer struct {
	OK     bool            `json:"ok,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *Error          `json:"error,omitempty"`
}

// encodeAnswer is the line for what a Handler returned.
func encodeAnswer(result any, err error) []byte {
	a := answer{OK: err == nil}
	if err == nil && result != nil {
		a.Result, err = json.Marshal(result)
	}
	if err == nil && len(a.Result) > maxLine-64 {
		err = bad("the answer is over 4 MiB: ask for fewer lines")
	}
	if err != nil {
		a = answer{Error: errorOf(err)}
	}
	line, err := json.Marshal(a)
	if err != nil {
		panic(err) // strings, numbers and a result that was written before
	}
	return append(line, '\n')
}

// errorOf is a Handler's error as the wire has it.
func errorOf(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		if e.Code != "" {
			return e
		}
		return &Error{Code: "failed", Message: e.Message, Hint: e.Hint}
	}
	code := "failed"
	if errors.Is(err, context.DeadlineExceeded) {
		code = "timeout"
	}
	return &Error{Code: code, Message: err.Error()}
}

// errLong: a line is longer than maxLine.
var errLong = errors.New("the line is over 4 MiB")

// readLine returns the next line without its newline. A line that the end cuts
// off is io.ErrUnexpectedEOF.
func readLine(r *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > most {
			return nil, errLong
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return bytes.TrimRight(line, "\r\n"), nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}
