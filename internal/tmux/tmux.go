// Package tmux finds the pane of tmux in which a program runs, and calls tmux about it. What a pane shows is read by package
// pane.
package tmux

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/process"
)

// A Pane is a pane of a tmux server. Its id is the same wherever the pane is moved to, and a new server counts from %0 again.
type Pane struct {
	Socket string `json:"socket"` // of the server
	Server int    `json:"server"` // the server's process
	ID     string `json:"id"`     // %3
}

// callTime limits a call of tmux, which takes a few milliseconds, and hookTime one that a hook's program waits for.
const (
	callTime = 5 * time.Second
	hookTime = time.Second
)

var paneID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^%[0-9]{1,9}$`) })

// IsValid reports whether the words can be given to tmux: whoever can write a program's note chose them.
func (p *Pane) IsValid() bool {
	return p != nil && filepath.IsAbs(p.Socket) && p.Server > 0 && paneID().MatchString(p.ID)
}

// Of returns the pane that the variables of tmux name, if a process has that pane's terminal; nil: there is none. A program
// that was started from a pane and now has another terminal has these variables, too.
func Of(pid int, getenv func(string) string) *Pane {
	words := strings.Split(getenv("TMUX"), ",")
	if len(words) < 3 || pid == 0 {
		return nil
	}
	server, _ := strconv.Atoi(words[len(words)-2])
	p := &Pane{Socket: strings.Join(words[:len(words)-2], ","), Server: server, ID: getenv("TMUX_PANE")}
	if !p.IsValid() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), hookTime)
	defer cancel()
	out, err := p.Call(ctx, "", "display-message", "-p", "-t", p.ID, "#{pid} #{pane_tty}")
	pids, tty, _ := strings.Cut(strings.TrimSpace(out), " ")
	if has, _ := process.Terminal(pid, tty); err != nil || !has || pids != strconv.Itoa(server) {
		return nil
	}
	return p
}

// Call calls tmux with some input and returns its output.
func (p *Pane) Call(ctx context.Context, in string, words ...string) (string, error) {
	program, err := exec.LookPath("tmux")
	if err != nil {
		return "", err
	}
	lockfile.Waits("tmux")
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	var out, failed bytes.Buffer
	c := exec.CommandContext(ctx, program, append([]string{"-u", "-S", p.Socket}, words...)...)
	c.Env = append(os.Environ(), "TMUX=", "TMUX_PANE=")
	c.Stdin, c.Stdout, c.Stderr, c.WaitDelay = strings.NewReader(in), &out, &failed, time.Second
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("tmux %s: %w", words[0], cmp.Or(said(failed.String()), ctx.Err(), err))
	}
	return out.String(), nil
}

func said(text string) error {
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	return errors.New(text)
}
