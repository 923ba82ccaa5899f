package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/failure"
	"github.com/agentteammail/atm/cmd/internal/output"
	"github.com/agentteammail/atm/mailbox/letter"
)

// Interruptible returns a context that a signal ends, for a verb that waits or takes long. A second after the signal
// the process exits even if it is stuck in a write.
func Interruptible(ctx context.Context) (_ context.Context, stop context.CancelFunc) {
	ctx, end := output.UntilSignal(ctx, syscall.SIGQUIT) // Go would print all goroutines at Ctrl-\
	isOver := context.AfterFunc(ctx, func() {
		time.AfterFunc(time.Second, func() { os.Exit(failure.ExitInterrupted) })
	})
	return ctx, func() {
		isOver()
		end()
	}
}

// Await calls wait with a context that ends at an interrupt, and when the root or an opened team was removed or
// renamed: the wait can never succeed then, and fails with that reason.
func (s *Scope) Await(wait func(ctx context.Context) error) error {
	return s.until(CallingProgram(s.c) != "", wait) // the calling program may be killed
}

// Follow calls show, which prints news as it arrives, until an interrupt, the removal of the team, or the end of the
// reader, which is no failure.
func (s *Scope) Follow(show func(ctx context.Context) error) error {
	err := s.until(true, show)
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// FollowFor is Follow for as long as a given --timeout, the end of which is no failure.
func (s *Scope) FollowFor(show func(ctx context.Context) error) error {
	if !s.c.IsSet("timeout") || cmdline.Duration(s.c, "timeout") == 0 {
		return s.Follow(show)
	}
	err := s.Follow(func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, cmdline.Duration(s.c, "timeout"))
		defer cancel()
		return show(ctx)
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// until calls f with a context that ends with the root and its teams and, where stdout has a reader, with the reader.
func (s *Scope) until(hasReader bool, f func(ctx context.Context) error) error {
	ctx, stop := Interruptible(s.c.Context)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		for ctx.Err() == nil {
			if hasReader && output.ReaderGone(os.Stdout) {
				cancel(syscall.EPIPE)
			} else if err := s.Root.CheckPaths(); err != nil {
				cancel(err)
			}
			Sleep(ctx, time.Second)
		}
	}()
	err := f(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// Sleep sleeps; it returns false if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// Repaints reports whether Watch repaints its lines on the alternate screen.
func Repaints(c *cli.Context) bool { return Terminal() && !c.Bool("json") && !isDumb() }

// watchEvery is how often Watch looks. It has to poll: the lock of a killed runner writes no event.
const watchEvery = 500 * time.Millisecond

// Watch calls look until an interrupt, an error or the end of a given --timeout. Where it Repaints, it shows the lines
// that look returns, and leaves at q too.
func (s *Scope) Watch(look func(ctx context.Context) (lines []string, err error)) error {
	err := s.FollowFor(func(ctx context.Context) error {
		ctx, quit := context.WithCancelCause(ctx)
		defer quit(nil)
		if Repaints(s.c) {
			defer enterScreen(quit)()
		}
		for ctx.Err() == nil {
			lines, err := look(ctx)
			if err == nil && Repaints(s.c) {
				err = repaint(lines)
			}
			if err != nil {
				return err
			}
			Sleep(ctx, watchEvery)
		}
		return context.Cause(ctx)
	})
	if errors.Is(err, errQuit) {
		return nil
	}
	return err
}

var errQuit = errors.New("left by q")

// enterScreen switches to the alternate screen without echo, and calls quit at q or Ctrl-C. leave restores the
// terminal. The goroutine that reads the keys ends with the process.
func enterScreen(quit func(error)) (leave func()) {
	stdin := int(os.Stdin.Fd())
	before, err := term.MakeRaw(stdin)
	if err == nil {
		go func() {
			for key := make([]byte, 1); ; {
				if _, err := os.Stdin.Read(key); err != nil {
					return
				}
				switch key[0] {
				case 'q':
					quit(errQuit)
				case 3: // Ctrl-C
					quit(context.Canceled)
				}
			}
		}()
	}
	os.Stdout.WriteString("\x1b[?1049h\x1b[?25l\x1b[2J")
	return func() {
		os.Stdout.WriteString("\x1b[?25h\x1b[?1049l")
		if before != nil {
			term.Restore(stdin, before)
		}
	}
}

func repaint(lines []string) error {
	foot := "q quits"
	_, height, _ := term.GetSize(int(os.Stdout.Fd()))
	if room := max(height-2, 1); height > 0 && len(lines) > room {
		foot = fmt.Sprintf("%d more lines; q quits", len(lines)-room)
		lines = lines[:room]
	}
	lines = append(slices.Clone(lines), "", foot)
	for i := range lines {
		lines[i] = Fit(lines[i], Width())
	}
	_, err := os.Stdout.WriteString("\x1b[H" + strings.Join(lines, "\x1b[K\r\n") + "\x1b[K\x1b[J")
	return err
}

// Notify rings the bell and shows a desktop notification, if stdout is a terminal.
func Notify(title, text string) {
	if Terminal() {
		os.Stdout.WriteString(Notification(title, text))
	}
}

// Notification is what Notify writes: OSC 9 for iTerm2, WezTerm, kitty and Windows Terminal, OSC 777 for foot, rxvt and
// VTE. Other terminals ignore both.
func Notification(title, text string) string {
	clean := func(s string) string { return letter.Clip(letter.Escape(strings.ReplaceAll(s, ";", ",")), 200) }
	title, text = clean(title), clean(text)
	return "\a\x1b]9;" + title + ": " + text + "\x1b\\\x1b]777;notify;" + title + ";" + text + "\x1b\\"
}
