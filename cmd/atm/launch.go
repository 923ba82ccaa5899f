package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
)

// news is what a runner tells who started it, a line of JSON each.
type news struct {
	Event  string   `json:"event"` // started, ready, asks, failed
	PID    int      `json:"pid,omitempty"`
	Detail string   `json:"detail,omitempty"`
	Tail   []string `json:"tail,omitempty"` // the last lines of the screen

	Exit    int    `json:"exit,omitempty"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	Hint    string `json:"hint,omitempty"`
}

func (n news) err() error {
	return &cmdline.Error{Exit: n.Exit, Code: n.Code, Message: n.Message, Hint: n.Hint}
}

// start starts the runner as a process of its own, and returns when it has
// started its program, with what it tells from then on.
func (e *env) startRunner(p *plan) (<-chan news, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	logFile, err := e.runLog(p.box)
	if err != nil {
		r.Close()
		return nil, err
	}
	defer logFile.Close()
	c := exec.Command(exe, os.Args[1:]...)
	c.Env = append(os.Environ(), runnerPipe+"=3", "ATM_ROOT="+e.root.Path, "ATM_TEAM="+string(e.team.Name))
	c.ExtraFiles = []*os.File{w}
	c.Stderr = logFile
	detached(c)
	if err := c.Start(); err != nil {
		r.Close()
		return nil, err
	}
	go c.Wait()
	out := make(chan news, 16)
	go func() {
		defer close(out)
		defer r.Close()
		lines := bufio.NewReader(r)
		for {
			line, err := lines.ReadBytes('\n')
			var n news
			if len(line) > 0 && json.Unmarshal(line, &n) == nil {
				// Nobody may listen any more: the newest are kept, and the runner is
				// never kept waiting.
				select {
				case out <- n:
				default:
					select {
					case <-out:
					default:
					}
					out <- n
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return out, nil
}

// runLog opens the file for what a runner says, empty. No link is followed.
func (e *env) runLog(box *mailbox.Box) (*os.File, error) {
	if err := e.team.Dir().Mkdir(string(box.Agent()) + "/run"); err != nil {
		return nil, err
	}
	f, err := e.team.Dir().OpenFile(string(box.Agent())+"/run/run.log", os.O_RDWR|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(0); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// launchFor starts a runner and returns when its program runs, with what it
// tells from then on.
func (e *env) launchFor(ctx context.Context, p *plan) (<-chan news, error) {
	all, err := e.startRunner(p)
	if err != nil {
		return nil, err
	}
	for {
		select {
		case n, ok := <-all:
			if !ok {
				return nil, cmdline.Failed("the runner of %s ended before it had started anything", p.box.Agent()).WithHint("atm run %s, without --detach and in a pipe, shows why", p.box.Agent())
			}
			switch n.Event {
			case "started":
				return all, nil
			case "note":
				e.Warn("%s", n.Message)
			case "refused":
				return nil, n.err()
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// readyWithin is how long a program may take to its prompt, where that is waited
// for; knownWithin how long --detach looks how it stands.
const (
	readyWithin = 60 * time.Second
	knownWithin = 3 * time.Second
)

// launch starts a runner and returns when the agent is ready, or says why it is
// not. What shows no prompt that is known runs all the same: only `atm up`, which
// is to wait, waits longer than knownWithin.
func (e *env) launch(ctx context.Context, p *plan) error {
	name := p.box.Agent()
	all, err := e.startRunner(p)
	if err != nil {
		return err
	}
	late := time.NewTimer(readyWithin)
	defer late.Stop()
	var known <-chan time.Time
	if e.Getenv(startTicket) == "" {
		soon := time.NewTimer(knownWithin)
		defer soon.Stop()
		known = soon.C
	}
	pid, starts, enough := 0, 0, false
	started := func() error {
		detail := "no prompt is shown yet"
		if starts > 1 {
			detail = fmt.Sprintf("it has ended %d times already", starts-1)
		}
		if e.JSON() {
			return e.PrintJSON(map[string]any{"agent": name, "pid": pid, "state": "started", "detail": detail})
		}
		return e.print("%s: started, process %d; %s", name, pid, detail)
	}
	done := func(state, detail string) error {
		if e.JSON() {
			return e.PrintJSON(map[string]any{"agent": name, "pid": pid, "state": state, "detail": detail})
		}
		if detail != "" {
			state += " (" + detail + ")"
		}
		return e.print("%s runs: %s, process %d; atm attach %s", name, state, pid, name)
	}
	for {
		select {
		case n, ok := <-all:
			if !ok {
				return cmdline.Failed("the runner of %s ended", name).WithHint("%s", playRecording(p.box))
			}
			switch n.Event {
			case "note":
				e.Warn("%s", n.Message)
			case "unsure":
				return done("no prompt that is known", "mail waits until there is one")
			case "started":
				starts++
				if pid = n.PID; enough {
					return started()
				}
			case "refused":
				return n.err()
			case "ready":
				return done("ready", "")
			case "asks":
				return cmdline.Failed("%s runs, and asks before it is ready (%s): %s", name, n.Detail, letter.Escape(letter.FirstLine(n.Message, 200))).WithHint("atm attach %s", name)
			case "failed", "ended":
				if n.Message != "" {
					return e.failedWith(p.box, n.Tail, "%s %s", name, n.Message)
				}
				return e.failedWith(p.box, n.Tail, "%s ended with %d before it was ready", name, n.Exit)
			}
		case <-known:
			if enough = true; pid != 0 {
				return started()
			}
		case <-late.C:
			return done("not at a prompt that is known", "mail waits until it is")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// overAlready shows what a program wrote that had ended before this terminal
// could be attached to it, and gives its code.
func (e *env) overAlready(p *plan, all <-chan news) (over bool, ended error) {
	n, ok := lastNews(all)
	if !ok {
		return false, nil
	}
	for _, line := range n.Tail {
		fmt.Fprintln(e.Stdout, letter.Escape(line))
	}
	if n.Exit != 0 {
		ended = &cmdline.Error{Exit: n.Exit, Printed: true, Message: fmt.Sprintf("%s ended with %d", p.box.Agent(), n.Exit)}
	}
	return true, ended
}

// lastNews is what a runner that has ended, or is about to, says of its program's
// end; ok is false where it says nothing.
func lastNews(all <-chan news) (n news, ok bool) {
	late := time.NewTimer(endSaid)
	defer late.Stop()
	for {
		select {
		case n, ok := <-all:
			if !ok || n.Event == "failed" || n.Event == "ended" {
				return n, ok
			}
		case <-late.C:
			return news{}, false
		}
	}
}

// endSaid is how soon a runner that has ended says so.
const endSaid = time.Second

// failedWith is the failure of a program whose screen's last lines say why.
func (e *env) failedWith(box *mailbox.Box, tail []string, format string, args ...any) *cmdline.Error {
	var said []string
	for _, line := range tail {
		if line = strings.TrimRight(line, " "); line != "" {
			said = append(said, line)
		}
	}
	err := cmdline.Failed(format, args...).WithHint("%s shows all of it", playRecording(box))
	switch {
	case len(said) == 0:
		err.Message += ", without a word"
	case e.JSON():
		err.Extra = map[string]any{"tail": said}
	default:
		for _, line := range said[max(len(said)-5, 0):] {
			e.Warn("| %s", letter.Clip(letter.Escape(line), 200))
		}
	}
	return err
}
