package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/agentteammail/atm/mailbox/letter"
)

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

// Repaints reports whether Watch repaints its lines on the alternate screen.
func Repaints(c *cli.Context) bool {
	return Terminal() && !c.Bool("json") && !isDumb()
}

// watchEvery is how often Watch looks. It has to poll: the lock of a killed runner writes no event.
const watchEvery = 500 * time.Millisecond

// Watch calls look until an interrupt or an error. Where it Repaints, it shows the lines that look returns, leaves at q
// too, and prints the last lines once more below the prompt.
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

// enterScreen switches to the alternate screen without echo, and calls quit at q, Ctrl-D or Ctrl-C. leave restores the
// terminal. The goroutine that reads the keys ends with the process.
func enterScreen(quit func(error)) (leave func()) {
	stdin := int(os.Stdin.Fd())
	before, err := term.MakeRaw(stdin)
	if err == nil {
		go func() {
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
			term.Restore(stdin, before)
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
