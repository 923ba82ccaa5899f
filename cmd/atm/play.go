package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/cast"
	"github.com/agentteammail/atm/internal/cmdline"
)

var playVerb = &cmdline.Verb{
	Name: "play", Args: "NAME", Summary: "replay what an agent's terminal showed",
	Examples: []string{"atm play bob --speed 4", "atm play bob --raw | tail -c 4000"},
	Notes: []string{
		"q or Ctrl-C ends it. Into a pipe all of it goes at once, as with --raw; --json: an event a line.",
		"The files are asciicasts: asciinema play .atm/main/bob/run/screen.cast",
	},
	Flags: []cmdline.Flag{
		{Name: "speed", Kind: cmdline.String, Arg: "X", Default: "1", Usage: "so many times as fast"},
		{Name: "idle-limit", Kind: cmdline.Duration, Arg: "D", Default: "2s", Usage: "no pause is longer; 0: as it was"},
		{Name: "raw", Usage: "the bytes that were shown, at once"},
	},
	Guesses: []string{"replay", "recording"},
	MinArgs: 1, MaxArgs: 1,
	Run: run(play),
}

func play(ctx context.Context, e *env) error {
	speed, err := strconv.ParseFloat(e.String("speed"), 64)
	if err != nil || !(speed > 0) || speed > 1e6 {
		return cmdline.Usage("--speed is a number over 0, not %q", e.String("speed")).WithHint("atm play %s --speed 2", cmdline.Escape(e.Args[0]))
	}
	b, err := e.agent()
	if err != nil {
		return err
	}
	r, err := cast.Open(filepath.Join(runDir(b), "screen.cast"))
	if errors.Is(err, fs.ErrNotExist) {
		return cmdline.NotFound("there is no recording of %s", b.Agent()).WithHint("atm run %s -- CMD makes one", b.Agent())
	}
	if err != nil {
		return err
	}
	defer r.Close()
	timed := func(ctx context.Context, w io.Writer) error {
		return cast.Play(ctx, w, r, speed, e.Duration("idle-limit"))
	}
	switch {
	case e.JSON():
		err = e.interruptible(ctx, func(context.Context) error { return e.listEvents(r) })
	case e.Bool("raw") || !e.terminal():
		err = e.interruptible(ctx, func(context.Context) error { return cast.Raw(e.Stdout, r) })
	case e.Stdin == nil || !term.IsTerminal(int(e.Stdin.Fd())):
		err = e.interruptible(ctx, func(ctx context.Context) error { return timed(ctx, e.Stdout) })
	default:
		err = e.playHere(ctx, timed)
	}
	if err != nil {
		return quietEnd(err)
	}
	if r.Skipped > 0 {
		e.Warn("%d lines of the recording were none and are left out", r.Skipped)
	}
	return nil
}

// listEvents prints a recording as JSON, an event a line.
func (e *env) listEvents(r *cast.Reader) error {
	for {
		ev, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		out := struct {
			At   float64    `json:"at"`
			Time *time.Time `json:"time,omitempty"`
			Code string     `json:"code"`
			Data string     `json:"data"`
		}{ev.At.Seconds(), nil, string(ev.Code), ev.Data}
		if !ev.Time.IsZero() {
			t := ev.Time.UTC()
			out.Time = &t
		}
		if ev.Code == cast.Begin {
			out.Code = "begin"
		}
		if err := e.PrintJSON(out); err != nil {
			return err
		}
	}
}

// lateAnswers is how long answers of the terminal may still be on their way.
const lateAnswers = 50 * time.Millisecond

// playHere shows a recording on this terminal. What was recorded may ask the
// terminal for something: its answers are read and dropped, and would otherwise
// stand on the shell's next line as if somebody had typed them.
func (e *env) playHere(ctx context.Context, show func(context.Context, io.Writer) error) error {
	con, err := openConsole(e.Stdin, e.Stdout)
	if err != nil {
		return err
	}
	defer con.close()
	asked, err := con.enter(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(asked)
	defer cancel()
	shown := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil { // not before the terminal is put back
				shown <- fmt.Errorf("showing the recording: %v", p)
			}
		}()
		shown <- show(ctx, con)
	}()
	const ctrlC = 3
	typed := con.typed
	var late <-chan time.Time
	for {
		select {
		case p, ok := <-typed:
			if !ok {
				typed = nil
			}
			if !ok || bytes.IndexByte(p, ctrlC) >= 0 || string(p) == "q" {
				cancel()
			}
		case err = <-shown:
			late = time.After(lateAnswers)
		case <-late:
			switch why := context.Cause(asked); {
			case errors.Is(why, errAsked), errors.Is(why, errHungUp):
				return &cmdline.Error{Exit: cmdline.ExitInterrupted, Printed: true}
			case errors.Is(err, context.Canceled): // by key, an end like any other
				return nil
			}
			return err
		}
	}
}
