package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// turnout is what became of one member.
type turnout struct {
	Name     wire.Name `json:"name"`
	State    string    `json:"state"` // ready, running, stopped, off, failed; with --foreground any of `atm team`
	Detail   string    `json:"detail,omitempty"`
	PID      int       `json:"pid,omitempty"`
	At       string    `json:"at,omitempty"`       // RFC 3339; with --foreground
	Worktree string    `json:"worktree,omitempty"` // its git worktree
	Done     string    `json:"done,omitempty"`     // what was done for that
	Changed  []string  `json:"changed,omitempty"`  // keys of team.toml that say otherwise since it was started
	Error    string    `json:"error,omitempty"`
	Hint     string    `json:"hint,omitempty"`
	Tail     []string  `json:"tail,omitempty"` // the last lines of its screen
}

// selfError is what a command of this program said that failed.
type selfError struct {
	Code, Message, Hint string
	Tail                []string
}

func (e *selfError) Error() string { return e.Message }

// self runs this program with --json for the team in force and reads its result
// into v, or gives the error that it tells. It has a session of its own: an
// interrupt at the terminal is ours to pass on.
func (e *env) self(ctx context.Context, v any, environ []string, args ...string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, exe, append([]string{"--json", "--root", e.root.Path, "--team", string(e.team.Name)}, args...)...)
	c.Env = append(os.Environ(), environ...)
	var out bytes.Buffer
	c.Stdout = &out
	detached(c)
	if err = c.Run(); err == nil {
		return json.Unmarshal(out.Bytes(), v)
	}
	var told struct {
		Error *selfError
		Tail  []string
	}
	if ctx.Err() == nil && json.Unmarshal(out.Bytes(), &told) == nil && told.Error != nil {
		told.Error.Tail = told.Tail
		return told.Error
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("atm %s: %w", strings.Join(args, " "), err)
}

// failed makes of an error what there is to say of a member.
func (t *turnout) failed(err error) {
	t.State, t.Error = "failed", strings.TrimPrefix(err.Error(), string(t.Name)+" ")
	var said *selfError
	var coded *cmdline.Error
	var place *teams.WorktreeError
	switch {
	case errors.As(err, &said):
		t.Hint, t.Tail = said.Hint, said.Tail
	case errors.As(err, &coded):
		t.Hint = coded.Hint
	case errors.As(err, &place):
		t.Error, t.Hint = "no worktree: "+place.Cause.Error(), place.Hint
	}
}

// lastLines are those of a screen that stand behind a failure.
const lastLines = 5

// sayFailed names those of whom it went wrong, with what their screens showed
// last.
func (c *crew) sayFailed(errs map[wire.Name]error) error {
	var failed []string
	started, hint, screened := 0, "atm up tries again", false
	for _, n := range c.names {
		if len(c.plan.Members[n].Command) > 0 {
			started++
		}
		err := errs[n]
		if err == nil {
			continue
		}
		var ran *selfError
		if errors.As(err, &ran) && len(ran.Tail) > 0 && !screened {
			hint, screened = playRecording(c.team.Box(n))+" shows its screen; "+hint, true
		}
		failed = append(failed, string(n))
		t := turnout{Name: n}
		t.failed(err)
		if c.JSON() {
			c.PrintJSON(t)
			continue
		}
		c.Warn("%s: %s", n, letter.EscapeBody(t.Error))
		for _, line := range t.Tail[max(len(t.Tail)-lastLines, 0):] {
			c.Warn("%s| %s", n, letter.Clip(letter.Escape(line), 200))
		}
		if t.Hint != "" {
			c.Warn("%s: hint: %s", n, letter.Escape(t.Hint))
		}
	}
	switch len(failed) {
	case 0:
		return nil
	case started:
		return cmdline.Failed("not ready: %s", strings.Join(failed, ", ")).WithHint("%s", hint)
	}
	return cmdline.Partial("not ready: %s", strings.Join(failed, ", ")).WithHint("%s", hint)
}

// telling says what becomes of members, as soon as it is known, and meanwhile,
// on a terminal, whom it waits for.
type telling struct {
	*env
	mu      sync.Mutex
	waiting []wire.Name
	shown   bool
	mute    bool
	unsaid  error // why something could not be said, the last time
}

// turnout says of one member what became of it.
func (s *telling) turnout(t turnout) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	if s.mute {
		return nil
	}
	defer func() { s.unsaid = cmp.Or(err, s.unsaid) }()
	if s.JSON() {
		return s.PrintJSON(t)
	}
	if t.Done != "" {
		s.Warn("%s: %s", t.Name, letter.Escape(t.Done))
	}
	line := fmt.Sprintf("%s: %s", t.Name, t.State)
	if t.Detail != "" {
		line += " (" + letter.Escape(t.Detail) + ")"
	}
	if t.PID > 0 && t.State != "stopped" {
		line += fmt.Sprintf(", process %d", t.PID)
	}
	if t.At != "" {
		line = stamp(time.Now()) + " " + line
	}
	err = s.print("%s", line)
	if len(t.Changed) > 0 {
		s.Warn("%s: in team.toml its %s changed since it was started, which counts from the next start: atm down %s; atm up %s", t.Name, strings.Join(t.Changed, ", "), t.Name, t.Name)
	}
	return err
}

// waitFor begins to show whom it waits for; the result ends that.
func (s *telling) waitFor(names []wire.Name) (done func()) {
	s.waiting = slices.Clone(names)
	if s.Quiet() || s.JSON() || !term.IsTerminal(int(s.Stderr.Fd())) {
		return func() {}
	}
	began := time.Now()
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-end:
				s.mu.Lock()
				defer s.mu.Unlock()
				s.clear()
				return
			case <-tick.C:
				s.paint(time.Since(began))
			}
		}
	}()
	return func() { close(end); <-ended }
}

func (s *telling) paint(since time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		return
	}
	line := fmt.Sprintf("waiting for %s (%s)", join(s.waiting), letter.Span(since))
	if w, _, err := term.GetSize(int(s.Stderr.Fd())); err == nil && w > 0 {
		line = (&teams.Table{Width: w}).Fit(line)
	}
	fmt.Fprintf(s.Stderr, "\r%s\x1b[K", line)
	s.shown = true
}

// clear takes the line away again. The lock is held.
func (s *telling) clear() {
	if s.shown {
		fmt.Fprint(s.Stderr, "\r\x1b[K")
		s.shown = false
	}
}

// through takes a member off those who are waited for.
func (s *telling) through(n wire.Name) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(m wire.Name) bool { return m == n })
}
