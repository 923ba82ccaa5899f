// Package command is what the verbs of atm share.
//
// A verb is a *cli.Command (github.com/urfave/cli/v2) in the package of its group. Its
// action gets a Scope (With), calls one thing and prints one value.
//
//	UsageText    examples, a line each; the first is also a hint
//	Usage        its line in `atm help all`
//	Aliases      synonyms; they work, and stand in no list
//	ArgsUsage    counted as well: [brackets] may be missing, what has an … may repeat,
//	             CMD begins a command line of somebody else's. Args: true counts for itself
//
// Any error may be returned: Explain gives it its exit code and hint. Results go to stdout through Print alone, the
// rest to stderr through Warn. Text from outside is escaped where it becomes part of a line (letter.Escape).
package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/output"
	"github.com/agentteammail/atm/mailbox/letter"
)

// Interruptible is for what waits or takes long: a context that an interrupt ends. What is stuck in a write that nobody
// reads ends a second later all the same.
func Interruptible(ctx context.Context) (_ context.Context, stop func()) {
	ctx, end := output.UntilSignal(ctx, syscall.SIGQUIT) // Go would print all goroutines at Ctrl-\
	var done atomic.Bool
	context.AfterFunc(ctx, func() {
		time.AfterFunc(time.Second, func() {
			if !done.Load() {
				os.Exit(ExitInterrupted)
			}
		})
	})
	return ctx, func() {
		done.Store(true)
		end()
	}
}

// Await calls f, which waits for something, with a context that ends when it is interrupted, or when the root or a team
// that is in use was removed or renamed: what is awaited there never comes. That is then the error.
func (s *Scope) Await(f func(ctx context.Context) error) error {
	return s.until(Via(s.c) != "", f) // the program that asked may be killed
}

// Follow calls f, which shows what comes, until it is interrupted, the team is
// gone, or nobody reads the output any more, which is no failure.
func (s *Scope) Follow(f func(ctx context.Context) error) error {
	err := s.until(true, f)
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// FollowFor is Follow for at most the --timeout that was given, the end of which is no failure.
func (s *Scope) FollowFor(f func(ctx context.Context) error) error {
	err := s.Follow(func(ctx context.Context) error {
		if within := Duration(s.c, "timeout"); within > 0 && s.c.IsSet("timeout") {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, within)
			defer cancel()
		}
		return f(ctx)
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// until calls f with a context that ends with the root or its teams and, where stdout has a reader, with that.
func (s *Scope) until(hasReader bool, f func(ctx context.Context) error) error {
	ctx, stop := Interruptible(s.c.Context)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		for ctx.Err() == nil {
			if hasReader && output.ReaderGone(os.Stdout) {
				cancel(syscall.EPIPE)
			} else if err := s.Root.Lost(); err != nil {
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

// Sleep waits, and reports whether that was not cut short.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// Notify rings, and has the terminal show a notification on the desktop: iTerm2, WezTerm, kitty and Windows Terminal
// know OSC 9, foot, rxvt and VTE's OSC 777. Any other terminal passes both over. Into a pipe nothing is written.
func Notify(title, text string) {
	if Terminal() {
		os.Stdout.WriteString(Notification(title, text))
	}
}

// Notification is what Notify writes.
func Notification(title, text string) string {
	clean := func(s string) string { return letter.Clip(letter.Escape(strings.ReplaceAll(s, ";", ",")), 200) }
	title, text = clean(title), clean(text)
	return "\a\x1b]9;" + title + ": " + text + "\x1b\\\x1b]777;notify;" + title + ";" + text + "\x1b\\"
}

// Repaints reports whether Watch shows its lines on a screen of their own.
func Repaints(c *cli.Context) bool {
	return Terminal() && !c.Bool("json") && !isDumb()
}

// watchEvery is how often a team is looked at: a lock that a killed runner leaves writes no event, so
// there is nothing else that could be waited for.
const watchEvery = 500 * time.Millisecond

// Watch calls look again and again, until it is interrupted or look returns an error. Where it Repaints, the
// lines that look returns are shown each time, and the last ones stay below what was there; q leaves as well.
func (s *Scope) Watch(look func(ctx context.Context) (lines []string, err error)) error {
	return s.Follow(func(ctx context.Context) error {
		ctx, quit := context.WithCancelCause(ctx)
		defer quit(nil)
		var shown []string
		if Repaints(s.c) {
			leave := enterScreen(quit)
			defer func() {
				leave()
				os.Stdout.WriteString(strings.Join(append(shown, ""), "\n"))
			}()
		}
		for ctx.Err() == nil {
			lines, err := look(ctx)
			if err == nil && Repaints(s.c) {
				shown, err = lines, repaint(lines)
			}
			if err != nil {
				return err
			}
			Sleep(ctx, watchEvery)
		}
		if errors.Is(context.Cause(ctx), errQuit) {
			return nil
		}
		return ctx.Err()
	})
}

var errQuit = errors.New("left by q")

// enterScreen begins a screen of its own, on which keys are not shown, and calls quit when one says so: q with
// errQuit. leave puts the terminal back.
func enterScreen(quit func(error)) (leave func()) {
	before, err := term.MakeRaw(int(os.Stdin.Fd()))
	if err == nil {
		go func() { // it ends with the process
			key := make([]byte, 1)
			for {
				if _, err := os.Stdin.Read(key); err != nil {
					return
				}
				switch key[0] {
				case 'q', 4:
					quit(errQuit)
				case 3:
					quit(context.Canceled)
				}
			}
		}()
	}
	os.Stdout.WriteString("\x1b[?1049h\x1b[?25l\x1b[2J")
	return func() {
		os.Stdout.WriteString("\x1b[?25h\x1b[?1049l")
		if before != nil {
			term.Restore(int(os.Stdin.Fd()), before)
		}
	}
}

func repaint(lines []string) error {
	foot := "q leaves"
	width, height, err := term.GetSize(int(os.Stdout.Fd()))
	if room := max(height-2, 1); err == nil && height > 0 && len(lines) > room {
		foot = fmt.Sprintf("%d lines more; q leaves", len(lines)-room)
		lines = lines[:room]
	}
	lines = append(slices.Clone(lines), "", foot)
	for i := range lines {
		lines[i] = Fit(lines[i], width)
	}
	_, err = os.Stdout.WriteString("\x1b[H" + strings.Join(lines, "\x1b[K\r\n") + "\x1b[K\x1b[J")
	return err
}
