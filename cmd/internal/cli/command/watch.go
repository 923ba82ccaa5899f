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
	"github.com/agentteammail/atm/cmd/internal/room"
	"github.com/agentteammail/atm/internal/letter"
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

// Watch calls look with each new snapshot of a team until an interrupt, an error or the end of a timeout (0: none). Where it
// Repaints, it shows the lines that look returns, again each second for what has an age, and leaves at q too.
func (p *Printer) Watch(s *app.Scope, timeout time.Duration, look func(*room.Snapshot) (lines []string, err error)) error {
	err := s.Follow(func(ctx context.Context) error {
		ctx, quit := context.WithCancelCause(ctx)
		defer quit(nil)
		if p.Repaints() {
			defer p.enterScreen(quit)()
		}
		r := room.Open(s)
		go func() { quit(r.Run(ctx)) }()
		now := r.Wait(ctx, (*room.Snapshot).IsWhole)
		end, second := (<-chan time.Time)(nil), time.NewTicker(time.Second)
		defer second.Stop()
		for ctx.Err() == nil {
			lines, err := look(now)
			if err == nil && p.Repaints() {
				err = p.repaint(lines)
			}
			if err != nil {
				return err
			}
			if end == nil && timeout > 0 { // however short it is, it has looked once
				end = time.After(timeout)
			}
			_, newer := r.Snapshot()
			select {
			case <-end:
				return nil
			case <-ctx.Done():
			case <-second.C:
			case <-newer:
			}
			now, _ = r.Snapshot()
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
