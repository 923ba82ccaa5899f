package testagent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"
)

// The events of an Entry.
const (
	Started     = "start"      // Text: the profile
	Ready       = "ready"      // the prompt is drawn
	Input       = "input"      // Text: the bytes, quoted
	Typed       = "typed"      // Text was typed, or pasted if Kind is paste
	Submitted   = "submit"     // Text became a prompt
	Queued      = "queued"     // Text waits for the end of the turn
	Pushed      = "pushed"     // Text came into its inbox, from Kind
	Interrupted = "interrupt"  // Kind: restored or stopped
	DialogShown = "dialog"     // Kind: permission, question, trust; Text: what it asks about
	DialogKey   = "dialog-key" // Text was typed into a dialog and chose nothing
	Answered    = "answer"     // Kind and Text: the dialog's; Option: the id of the chosen one
	Orphaned    = "orphan"     // Code: the process left behind
)

// Entry is a line of the log.
type Entry struct {
	At     time.Time `json:"at"`
	PID    int       `json:"pid"`
	Event  string    `json:"event"`
	Kind   string    `json:"kind,omitempty"`
	Option string    `json:"option,omitempty"`
	Text   string    `json:"text,omitempty"`
	Code   int       `json:"code,omitempty"`
}

// journal writes the log; a zero one writes nothing. Each entry is one appending write, so that a killed process leaves
// whole lines.
type journal struct{ file *os.File }

func openJournal(path string) (j journal, err error) {
	if path != "" {
		j.file, err = os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	}
	return j, err
}

// add writes an entry. It ends the program if it cannot, since a test could pass for want of the entry.
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

// Entries is the content of a log.
type Entries []Entry

// ReadLog reads the present entries of a log. A missing file is an empty log; an incomplete last line is ignored.
func ReadLog(path string) (all Entries, err error) {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range bytes.Lines(data) {
		var e Entry
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return all, fmt.Errorf("read the log %s: line %d: %w", path, len(all)+1, err)
		}
		all = append(all, e)
	}
	return all, nil
}

// WaitLog reads the log until the condition holds, and returns it.
func WaitLog(ctx context.Context, path string, condition func(Entries) bool) (Entries, error) {
	for {
		all, err := ReadLog(path)
		if err != nil || condition(all) {
			return all, err
		}
		select {
		case <-ctx.Done():
			return all, fmt.Errorf("wait for the log of %d entries: %w", len(all), ctx.Err())
		case <-time.After(3 * time.Millisecond):
		}
	}
}

// Of returns the entries of one event.
func (es Entries) Of(event string) Entries {
	return slices.DeleteFunc(slices.Clone(es), func(e Entry) bool { return e.Event != event })
}

// Texts returns the texts of one event's entries, in order.
func (es Entries) Texts(event string) []string {
	var texts []string
	for _, e := range es.Of(event) {
		texts = append(texts, e.Text)
	}
	return texts
}

// Has reports whether there is an entry of that event.
func (es Entries) Has(event string) bool { return len(es.Of(event)) > 0 }
