package runner

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/output"
	"github.com/agentteammail/atm/cmd/internal/runspec"
	"github.com/agentteammail/atm/internal/driver"
	"github.com/agentteammail/atm/internal/driver/agents"
	"github.com/agentteammail/atm/internal/screen"
)

// lookWord is the argument with which this program reads a recorded screen.
const lookWord = "look"

// maxRecording is how much of a recording is read: more than the runner writes into one.
const maxRecording = 64 << 20

func runLook(std output.Streams) int {
	var spec runspec.Look
	err := json.NewDecoder(std.In).Decode(&spec)
	var r *runspec.Reading
	if err == nil {
		r, err = look(spec)
	}
	if err != nil {
		fmt.Fprintln(std.Err, err)
		return failure.ExitFailed
	}
	command.WriteJSON(std.Out, r)
	return failure.ExitDone
}

// look plays a recording and reads its last screen.
func look(spec runspec.Look) (*runspec.Reading, error) {
	d, err := driverFor(spec.Driver)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(spec.Recording)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := screen.New(spec.Cols, spec.Rows, screen.Scrollback)
	if err := play(s, bufio.NewReader(io.LimitReader(f, maxRecording))); err != nil {
		return nil, fmt.Errorf("read %s: %w", spec.Recording, err)
	}
	l := driver.LookAt(s)
	reading := d.Read(l, driver.Reading{})
	r := &runspec.Reading{
		Driver: d.Name, Screen: l.Lines, Title: l.Title, State: string(reading.Activity), Detail: reading.Detail,
		IsPrompt: reading.Prompt, Gate: string(reading.NotPromptReason), Draft: reading.Draft, Matches: []runspec.Match{},
	}
	if q := reading.Dialog; q != nil {
		r.Dialog = q
		for _, o := range q.Options {
			r.Keys = append(r.Keys, o.Keys)
		}
	}
	for _, m := range d.Explain(l) {
		r.Matches = append(r.Matches, runspec.Match(m))
	}
	return r, nil
}

// driverFor returns a driver by its name, or by the path of its file.
func driverFor(name string) (*driver.Driver, error) {
	if strings.HasSuffix(name, ".toml") {
		f, mistakes, err := agents.ReadFile(name)
		e := agents.Entry{Name: name, Path: name, File: f, Mistakes: mistakes, Err: err}
		if err := e.Fault(); err != nil {
			return nil, err
		}
		driver.Use([]agents.Entry{e})
		name = f.Name
	} else {
		driver.Use(agents.Load(agents.Dir()))
	}
	d, ok := driver.Named(name)
	if !ok {
		return nil, fmt.Errorf("there is no driver %q", name)
	}
	return d, nil
}

// play writes a recording to a screen: an asciicast of version 2 or 3, or the bytes that a program wrote.
func play(s *screen.Screen, r *bufio.Reader) error {
	if start, _ := r.Peek(1); !bytes.Equal(start, []byte("{")) {
		_, err := io.Copy(s, r)
		return err
	}
	events := json.NewDecoder(r)
	var header struct {
		Version, Width, Height int
		Term                   struct{ Cols, Rows int }
	}
	err := events.Decode(&header)
	if err == nil && header.Version < 2 {
		err = errors.New("no asciicast, though it begins with {")
	}
	if err != nil {
		return err
	}
	resize(s, cmp.Or(header.Term.Cols, header.Width), cmp.Or(header.Term.Rows, header.Height))
	for {
		var e []any
		if err := events.Decode(&e); err != nil { // also a line that is not finished
			return nil
		}
		if len(e) < 3 {
			continue
		}
		switch text, _ := e[2].(string); e[1] {
		case "o":
			s.Write([]byte(text))
		case "r":
			var cols, rows int
			fmt.Sscanf(text, "%dx%d", &cols, &rows)
			resize(s, cols, rows)
		}
	}
}

// resize resizes a screen, unless a size is none that a runner may have.
func resize(s *screen.Screen, cols, rows int) {
	if min(cols, rows) > 1 && max(cols, rows) <= 1000 {
		s.Resize(cols, rows)
	}
}
