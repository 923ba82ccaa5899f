//go:build linux || darwin || freebsd

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/wire"
)

// crew are agents that run, each a prompt in a terminal of its own, and have
// nothing to do.
type crew struct {
	root   *root
	atm    string
	leash  *os.File // which its prompts hold the other end of
	agents []*agent
}

// agent is one of them.
type agent struct {
	name  wire.Name
	run   string   // its run directory
	pipe  *os.File // on which its prompt tells when something was typed
	lines *bufio.Reader
}

// promptMark, in the environment, says: be a prompt, and over which pipe to tell.
const promptMark = "ATM_BENCH_PROMPT"

// crew starts n agents, which are stopped when the run ends, and end by
// themselves when it was killed.
func (b *bench) crew(name string, n int) (*crew, error) {
	atm, err := b.atm()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	names := members(name, n)
	r, err := b.newRoot(name, 0, append(names, "alice")...)
	if err != nil {
		return nil, err
	}
	b.later(r.close)
	c := &crew{root: r, atm: atm}
	if c.leash, err = openPipe(filepath.Join(r.path, leashName)); err != nil {
		return nil, err
	}
	b.later(c.leash.Close)
	for _, n := range names {
		a := &agent{name: n, run: filepath.Join(r.Box(n).Path(), "run")}
		if a.pipe, err = openPipe(filepath.Join(r.path, string(n)+".pipe")); err != nil {
			return nil, err
		}
		b.later(a.pipe.Close)
		a.lines = bufio.NewReader(a.pipe)
		c.agents = append(c.agents, a)
	}
	b.later(func() error {
		return c.each(func(a *agent) error {
			return c.command(context.Background(), "stop", string(a.name), "--grace", "1s")
		})
	})
	return c, c.each(func(a *agent) error {
		return c.command(b.ctx, "run", string(a.name), "--detach", "--driver", "plain", "--env", promptMark+"="+a.pipe.Name(), "--", self)
	})
}

// leashName is the pipe beside all others that nothing is written to.
const leashName = "leash"

// openPipe makes a named pipe and opens both its ends, so that nobody waits for
// the other side.
func openPipe(path string) (*os.File, error) {
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		return nil, fmt.Errorf("make the pipe %s: %w", path, err)
	}
	return os.OpenFile(path, os.O_RDWR, 0)
}

// each does something with all agents at once.
func (c *crew) each(do func(*agent) error) error {
	errs := make([]error, len(c.agents))
	var wg sync.WaitGroup
	for i, a := range c.agents {
		wg.Go(func() { errs[i] = do(a) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// command runs atm as a person.
func (c *crew) command(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, c.atm, args...)
	cmd.Env = []string{"ATM_ROOT=" + c.root.path, "HOME=" + c.root.path, "PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("atm %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return err
}

// patience is how long an agent may take to anything.
const patience = 20 * time.Second

func (a *agent) status(ctx context.Context) (control.Status, error) {
	c, err := control.Dial(ctx, a.run)
	if err != nil {
		return control.Status{}, fmt.Errorf("%s: %w", a.name, err)
	}
	defer c.Close()
	return c.Status(ctx)
}

// open waits until nothing keeps mail from being typed in.
func (a *agent) open(ctx context.Context) error {
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		s, err := a.status(ctx)
		if err != nil {
			return err
		}
		if s.Ready && s.Gate == "" {
			return nil
		}
		if time.Since(began) > patience {
			return fmt.Errorf("%s: mail waits: %s", a.name, s.Gate)
		}
	}
}

// typed is when the first byte was typed after began.
func (a *agent) typed(began time.Time) (time.Time, error) {
	a.pipe.SetReadDeadline(time.Now().Add(patience))
	for {
		line, err := a.lines.ReadString('\n')
		if err != nil {
			return time.Time{}, fmt.Errorf("%s was typed nothing: %w", a.name, err)
		}
		at, err := time.Parse(time.RFC3339Nano, strings.TrimSpace(line))
		if err != nil || at.After(began) {
			return at, err
		}
		// A return key that was pressed once more.
	}
}

// prompt is the program that agents are: it shows a prompt as bash does, and
// tells on the pipe when the first byte after it was read. The clock is the one
// that all processes have.
func prompt(pipe string) error {
	if _, err := term.MakeRaw(int(os.Stdin.Fd())); err != nil {
		return err
	}
	out, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	leash, err := os.Open(filepath.Join(filepath.Dir(pipe), leashName))
	if err != nil {
		return err
	}
	go func() {
		leash.Read(make([]byte, 1)) // until who started us has gone
		os.Exit(0)
	}()
	const ready, taken = "\x1b[?2004h$ ", "\x1b[?2004l\r\n"
	os.Stdout.WriteString(ready)
	first := true
	for p := make([]byte, 4096); ; {
		n, err := os.Stdin.Read(p)
		if err != nil {
			return err
		}
		if first {
			fmt.Fprintln(out, time.Now().Format(time.RFC3339Nano))
			first = false
		}
		echo := bytes.ReplaceAll(bytes.ReplaceAll(p[:n], []byte("\x1b[200~"), nil), []byte("\x1b[201~"), nil)
		if bytes.HasSuffix(echo, []byte("\r")) {
			os.Stdout.WriteString(taken + ready)
			first = true
			continue
		}
		os.Stdout.Write(echo)
	}
}

// constant is a cell whose reference is no measurement.
func (b *bench) constant(reference time.Duration, ours func() ([]time.Duration, error)) cell {
	return func(time.Duration) (time.Duration, time.Duration, error) {
		took, err := ours()
		if err != nil {
			return 0, 0, err
		}
		return median(took, func(t time.Duration) time.Duration { return t }), reference, nil
	}
}

func openTyped(b *bench) (cell, error) {
	crew, err := b.crew("typed", b.turns)
	if err != nil {
		return nil, err
	}
	env := b.env(crew.root, "alice")
	return b.constant(25*time.Millisecond, func() (took []time.Duration, err error) {
		for _, a := range crew.agents {
			if err := a.open(b.ctx); err != nil {
				return nil, err
			}
		}
		for _, a := range crew.agents {
			began := time.Now()
			if _, err := b.process(env, crew.atm, "send", string(a.name), "What is the answer?")(); err != nil {
				return nil, err
			}
			typed, err := a.typed(began)
			if err != nil {
				return nil, err
			}
			took = append(took, typed.Sub(began))
		}
		return took, nil
	}), nil
}

func openIdle(b *bench) (cell, error) {
	if _, err := cpuTime(os.Getpid()); err != nil {
		return nil, err
	}
	crew, err := b.crew("idle", b.Runners)
	if err != nil {
		return nil, err
	}
	window := 33 * b.Cell // 5 s
	return b.constant(window/100, func() ([]time.Duration, error) {
		var pids []int
		for _, a := range crew.agents {
			s, err := a.status(b.ctx)
			if err != nil {
				return nil, err
			}
			pids = append(pids, s.PID)
		}
		began := time.Now()
		before, err := cpuTime(pids...)
		if err != nil {
			return nil, err
		}
		select {
		case <-time.After(window):
		case <-b.ctx.Done():
			return nil, b.ctx.Err()
		}
		after, err := cpuTime(pids...)
		if err != nil {
			return nil, err
		}
		share := float64(after-before) / float64(time.Since(began))
		return []time.Duration{time.Duration(share * float64(window))}, nil
	}), nil
}
