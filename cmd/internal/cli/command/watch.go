package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/output"
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
func (p *Printer) Repaints() bool { return p.IsTerminal() && !p.IsJSON && !isDumb() }

// watchEvery is how often Watch looks. It has to poll: the lock of a killed runner writes no event.
const watchEvery = 500 * time.Millisecond

// Watch calls look until an interrupt, an error or the end of a timeout (0: none). Where it Repaints, it shows the lines
// that look returns, and leaves at q too.
func (p *Printer) Watch(s *app.Scope, timeout time.Duration, look func(ctx context.Context) (lines []string, err error)) error {
	err := s.Follow(func(ctx context.Context) error {
		ctx, quit := context.WithCancelCause(ctx)
		defer quit(nil)
		if p.Repaints() {
			defer p.enterScreen(quit)()
		}
		for end := (<-chan time.Time)(nil); ctx.Err() == nil; {
			lines, err := look(ctx)
			if err == nil && p.Repaints() {
				err = p.repaint(lines)
			}
			if err != nil {
				return err
			}
			if end == nil && timeout > 0 { // however short it is, it has looked once
				end = time.After(timeout)
			}
			select {
			case <-end:
				return nil
			case <-ctx.Done():
			case <-time.After(watchEvery):
			}
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
func (p *Printer) enterScreen(quit func(error)) (leave func()) {
	restore, err := output.MakeRaw(p.In)
	if err == nil {
		go func() {
			for key := make([]byte, 1); ; {
				if _, err := p.In.Read(key); err != nil {
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
	io.WriteString(p.Out, "\x1b[?1049h\x1b[?25l\x1b[2J")
	return func() {
		io.WriteString(p.Out, "\x1b[?25h\x1b[?1049l")
		if err == nil {
			restore()
		}
	}
}

func (p *Printer) repaint(lines []string) error {
	foot := "q quits"
	width, height, _ := output.Size(p.Out)
	lines = strings.Split(letter.WrapPane(strings.Join(lines, "\n"), cmp.Or(width, 80)), "\n")
	if room := max(height-2, 1); height > 0 && len(lines) > room {
		foot = fmt.Sprintf("%d more lines; q quits", len(lines)-room)
		lines = lines[:room]
	}
	lines = append(lines, "", foot)
	_, err := io.WriteString(p.Out, "\x1b[H"+strings.Join(lines, "\x1b[K\r\n")+"\x1b[K\x1b[J")
	return err
}

// Notify rings the bell and shows a desktop notification, if stdout is a terminal.
func (p *Printer) Notify(title, text string) {
	if p.IsTerminal() {
		io.WriteString(p.Out, Notification(title, text))
	}
}

// Notification is what Notify writes: OSC 9 for iTerm2, WezTerm, kitty and Windows Terminal, OSC 777 for foot, rxvt and
// VTE. Other terminals ignore both.
func Notification(title, text string) string {
	clean := func(s string) string { return letter.Clip(letter.Escape(strings.ReplaceAll(s, ";", ",")), 200) }
	title, text = clean(title), clean(text)
	return "\a\x1b]9;" + title + ": " + text + "\x1b\\\x1b]777;notify;" + title + ";" + text + "\x1b\\"
}
