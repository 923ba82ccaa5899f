package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/mailbox/letter"
)

// GivenTimeout returns the --timeout that was typed; 0: none, or for ever.
func GivenTimeout(c *cli.Context) time.Duration {
	if !c.IsSet("timeout") {
		return 0
	}
	return cmdline.Duration(c, "timeout")
}

// Repaints reports whether Watch repaints its lines on the alternate screen.
func Repaints(c *cli.Context) bool { return Terminal() && !c.Bool("json") && !isDumb() }

// watchEvery is how often Watch looks. It has to poll: the lock of a killed runner writes no event.
const watchEvery = 500 * time.Millisecond

// Watch calls look until an interrupt, an error or the end of a given --timeout. Where it Repaints, it shows the lines
// that look returns, and leaves at q too.
func Watch(c *cli.Context, s *app.Scope, look func(ctx context.Context) (lines []string, err error)) error {
	err := s.FollowFor(GivenTimeout(c), func(ctx context.Context) error {
		ctx, quit := context.WithCancelCause(ctx)
		defer quit(nil)
		if Repaints(c) {
			defer enterScreen(quit)()
		}
		for ctx.Err() == nil {
			lines, err := look(ctx)
			if err == nil && Repaints(c) {
				err = repaint(lines)
			}
			if err != nil {
				return err
			}
			app.Sleep(ctx, watchEvery)
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
	lines = strings.Split(letter.WrapPane(strings.Join(lines, "\n"), Width()), "\n")
	if room := max(height-2, 1); height > 0 && len(lines) > room {
		foot = fmt.Sprintf("%d more lines; q quits", len(lines)-room)
		lines = lines[:room]
	}
	lines = append(lines, "", foot)
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
