package command

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/agentteammail/atm/mailbox/letter"
)

// ErrQuit is the cause of a Repaint's context once its user has pressed q.
var ErrQuit = errors.New("left by q")

// Notify rings, and has the terminal show a notification on the desktop: iTerm2,
// WezTerm, kitty and Windows Terminal know OSC 9, foot, rxvt and VTE's OSC 777. Any
// other terminal passes both over. Into a pipe nothing is written.
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

// A Repaint shows lines on a screen of their own and shows them again, until q or
// Ctrl-C; the last lines then stay below what was there.
type Repaint struct {
	before *term.State
	last   []string
	cancel context.CancelCauseFunc
}

// StartRepaint takes hold of the terminal. Its context ends when the user leaves.
// Call Close in any case.
func StartRepaint(ctx context.Context) (*Repaint, context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	r := &Repaint{cancel: cancel}
	if before, err := term.MakeRaw(int(os.Stdin.Fd())); err == nil {
		r.before = before
		go func() { // it ends with the process
			key := make([]byte, 1)
			for {
				if _, err := os.Stdin.Read(key); err != nil {
					return
				}
				if key[0] == 'q' || key[0] == 3 || key[0] == 4 {
					cancel(ErrQuit)
					return
				}
			}
		}()
	}
	os.Stdout.WriteString("\x1b[?1049h\x1b[?25l\x1b[2J")
	return r, ctx
}

// Paint shows the lines instead of those before, as far as they fit, and below them
// how to leave.
func (r *Repaint) Paint(lines []string) error {
	r.last = lines
	lines = append(slices.Clone(lines), "", "q leaves")
	width, height, err := term.GetSize(int(os.Stdout.Fd()))
	if err == nil && height > 0 && len(lines) > height {
		lines = lines[:height]
	}
	for i := range lines {
		lines[i] = Fit(lines[i], width)
	}
	_, err = os.Stdout.WriteString("\x1b[H" + strings.Join(lines, "\x1b[K\r\n") + "\x1b[K\x1b[J")
	return err
}

// Close puts the terminal back, and leaves the last lines on it.
func (r *Repaint) Close() {
	r.cancel(nil)
	os.Stdout.WriteString("\x1b[?25h\x1b[?1049l")
	if r.before != nil {
		term.Restore(int(os.Stdin.Fd()), r.before)
	}
	if len(r.last) > 0 {
		os.Stdout.WriteString(strings.Join(r.last, "\n") + "\n")
	}
}
