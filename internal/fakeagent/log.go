package fakeagent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"
)

// What an Entry tells of.
const (
	Started     = "start"       // Text: the profile
	Ready       = "ready"       // the prompt is drawn
	Input       = "input"       // Bytes came, Text is the same to look at
	Lost        = "lost"        // Bytes came too early
	Dropped     = "dropped"     // Text vanished on the way to the draft
	Deaf        = "deaf"        // it stopped reading
	Reply       = "reply"       // Text: the terminal's answer, or its report of focus or mouse
	Submitted   = "submit"      // Text became a prompt; Kind: prompt, bang or command
	Queued      = "queued"      // Text waits for the end of the turn
	Steered     = "steer"       // Text was taken into the running turn
	Refused     = "refused"     // Return during a turn did nothing
	Swallowed   = "swallowed"   // Return became a line break
	Ignored     = "ignored"     // Return did nothing
	Typed       = "typed"       // Text was typed or, Kind paste, pasted into the draft
	Cleared     = "cleared"     // the draft Text was thrown away by a key
	DialogShown = "dialog"      // Kind: permission, question, trust; Text: what it asks about
	DialogGone  = "dialog-gone" // it went away by itself
	DialogKey   = "dialog-key"  // Text was typed into it and chose nothing
	Answered    = "answer"      // Kind as of the dialog, Option: the chosen one's id, Text: what was asked about
	Interrupted = "interrupt"   // Kind: restored or stopped
	TurnOver    = "turn"        // Kind: completed, interrupted, denied, failed; Text: the prompt
	State       = "state"       // Text: what the screen shows from now on: idle, thinking, responding, tool_running, confirming
	Signalled   = "signal"      // Text: its name
	Resized     = "resize"      // Text: COLSxROWS
	Orphaned    = "orphan"      // Code: the process left behind
	HookRan     = "hook"        // Kind: the event; Text: what the hook printed; Code: its exit code
	Modelled    = "model"       // Text: what the command that plays the model printed; Code: its exit code
	Blocked     = "blocked"     // a hook kept the turn going with Text, or stopped a prompt or tool
	Restarted   = "restart"     // it starts itself anew
	Exited      = "exit"        // Code; Text: the signal it dies of, if it does
)

// Entry is a line of the log.
type Entry struct {
	At     time.Time `json:"at"`
	PID    int       `json:"pid"`
	Event  string    `json:"event"`
	Kind   string    `json:"kind,omitempty"`
	Option string    `json:"option,omitempty"`
	Text   string    `json:"text,omitempty"`
	Bytes  []byte    `json:"bytes,omitempty"`
	Code   int       `json:"code,omitempty"`
}

// journal writes the log. Its zero value writes nothing. Each entry is one
// write to a file opened for appending: a killed process leaves whole lines,
// and one that was started anew goes on in the same file.
type journal struct{ file *os.File }

func openJournal(path string) (journal, error) {
	if path == "" {
		return journal{}, nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return journal{}, fmt.Errorf("open the log: %w", err)
	}
	return journal{f}, nil
}

// add writes e. A log that cannot be written stops the program: a witness that
// lost something would let a test pass.
func (j journal) add(e Entry) {
	if j.file == nil {
		return
	}
	e.At, e.PID = time.Now(), os.Getpid()
	line, err := json.Marshal(e)
	if err == nil {
		_, err = j.file.Write(append(line, '\n'))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "fakeagent: write the log: %v\r\n", err)
		os.Exit(3)
	}
}

func (j journal) input(event string, p []byte) {
	j.add(Entry{Event: event, Bytes: p, Text: strconv.QuoteToGraphic(string(p))})
}

// Entries is a log, read.
type Entries []Entry

// ReadLog reads what is there by now; no file is an empty log. A line that is
// being written is left out.
func ReadLog(path string) (Entries, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read the log: %w", err)
	}
	defer f.Close()
	var all Entries
	for r := bufio.NewReader(f); ; {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return all, nil
		}
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return all, fmt.Errorf("read the log %s: line %d: %w", path, len(all)+1, err)
		}
		all = append(all, e)
	}
}

// WaitLog reads the log until enough says that it has seen what it wants, and
// returns it. It looks every few milliseconds.
func WaitLog(ctx context.Context, path string, enough func(Entries) bool) (Entries, error) {
	tick := time.NewTicker(3 * time.Millisecond)
	defer tick.Stop()
	for {
		all, err := ReadLog(path)
		if err != nil || enough(all) {
			return all, err
		}
		select {
		case <-ctx.Done():
			return all, fmt.Errorf("wait for the log of %d entries: %w", len(all), ctx.Err())
		case <-tick.C:
		}
	}
}

// Of are the entries of one event.
func (es Entries) Of(event string) Entries {
	var some Entries
	for _, e := range es {
		if e.Event == event {
			some = append(some, e)
		}
	}
	return some
}

// Texts are the texts of one event's entries, in order.
func (es Entries) Texts(event string) []string {
	var texts []string
	for _, e := range es.Of(event) {
		texts = append(texts, e.Text)
	}
	return texts
}

// Has says whether there is an entry of that event.
func (es Entries) Has(event string) bool { return len(es.Of(event)) > 0 }

// Received are all bytes that came, in order, those too early too.
func (es Entries) Received() []byte {
	var all []byte
	for _, e := range es {
		if e.Event == Input || e.Event == Lost {
			all = append(all, e.Bytes...)
		}
	}
	return all
}
