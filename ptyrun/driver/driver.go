// Package driver interprets the screen of an agent in a terminal.
//
// A [Driver] knows one program: how it draws its input box, dialogs, title and busy line, and which keys it takes. That is
// data, a file of package agents. [Driver.Read] turns a screen into a [Reading]: what the agent does, what it asks, and
// whether it would accept a message now. The built-in files are based on recorded screens of the versions that they name,
// also without colours, without animations and for screen readers. Code is only what a permission request means: it reads
// the tool and its input, which rules decide about.
//
// An answer may have any words, so what the program says of itself is told from an answer by its style: its colours,
// what is dim or bold, and what stands in the first columns.
//
// A dialog on the screen counts more than the title, and the title more than the bottom of the screen. One sign of work
// makes an agent busy, whatever the others say; it is idle only if all signs agree. Only the bottom of the screen
// counts, where the program itself draws: an answer or a person may quote a dialog, a busy line or a box.
//
// Everything here is pure and never panics. Prompt is never true while a dialog that its file describes is at the bottom of
// the screen, while a synchronized update is open, or while the box holds anything. For an agent it also needs its own
// box, with the cursor at the start. A shell or REPL is at its prompt while bracketed paste is on; if it never enables
// that, when the cursor's row ends as prompts do. Of a program that nobody has described nothing is known, and only what it
// declares itself counts.
//
// The caller adds time, because screens pass through states that do not last: Codex draws its prompt before it asks for
// trust. Believe Prompt after it has held for [Settle], the first time after a start for [FirstSettle]; believe a
// dialog after it has held with the same Fingerprint for [DialogSettle]. Read the screen again before pressing keys in
// a dialog: an [Option]'s Keys are valid only for the screen they were read from.
//
// Begin with ForCommand or Named, LookAt and Driver.Read. Nothing here reads a terminal (package screen) or types (ptyrun).
package driver

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentteammail/atm/ptyrun/driver/agents"
	"github.com/agentteammail/atm/reducer"
)

const escape = "\x1b"

// A Driver reads the screen of one program. Those that [Named] returns are shared and read-only.
type Driver struct {
	Name  string
	Plain bool // a shell, a REPL or unknown: it gets the bare text, one message at a time

	// Unknown means that nobody has described the program. Then nothing on its screen is evidence: it is never at a prompt,
	// and only a person may type into it.
	Unknown bool

	// ForgetsInterruptedPrompt means that an interrupt before the first word of the answer removes the prompt from the
	// conversation. Gemini CLI forgets it, Claude Code puts it back into its box.
	ForgetsInterruptedPrompt bool

	// Protocol is what the program speaks instead of drawing a screen: "acp". "": it draws one.
	Protocol string

	file    *agents.File
	screen  *agents.Screen // the file's look that counts
	spoken  *Driver        // with its look for a screen reader; nil: as always
	program string         // plain: the first word of the command, if ForCommand chose the driver
}

// newDriver returns the driver that a file describes.
func newDriver(f *agents.File) *Driver {
	d := &Driver{
		Name: f.Name, Plain: f.Plain, Unknown: f.Name == agents.None, ForgetsInterruptedPrompt: f.Keys.Forgets, Protocol: f.Protocol,
		file: f, screen: &f.Screen,
	}
	if f.Reader != nil {
		spoken := *d
		spoken.screen, d.spoken = f.Reader, &spoken
	}
	return d
}

// inUse are the drivers of this process, in the order in which they are tried; nil: the built-in ones.
var inUse atomic.Pointer[[]*Driver]

// Use makes this process use the drivers that agents.Load has found, a person's own ones first. Without it the built-in
// ones are used. It is called before anything else here.
func Use(entries []agents.Entry) {
	drivers := newDrivers(entries)
	inUse.Store(&drivers)
}

func newDrivers(entries []agents.Entry) []*Driver {
	var own, builtIn []*Driver
	for _, e := range entries {
		switch {
		case e.File == nil:
		case e.Fault() == nil && e.Path != "":
			own = append(own, newDriver(e.File))
		default:
			builtIn = append(builtIn, newDriver(e.File))
		}
	}
	return append(own, builtIn...)
}

var builtInDrivers = sync.OnceValue(func() []*Driver { return newDrivers(agents.Load("")) })

func drivers() []*Driver {
	if own := inUse.Load(); own != nil {
		return *own
	}
	return builtInDrivers()
}

// Named returns a driver by its name.
func Named(name string) (*Driver, bool) {
	all := drivers()
	i := slices.IndexFunc(all, func(d *Driver) bool { return d.Name == name })
	if i < 0 {
		return nil, false
	}
	return all[i], true
}

// Names returns the names that Named knows, sorted.
func Names() (names []string) {
	for _, d := range drivers() {
		names = append(names, d.Name)
	}
	slices.Sort(names)
	return names
}

// lookFor returns the driver for the look on the screen: d, or the one for a screen reader. It takes a scroll bar off the
// screen.
func (d *Driver) lookFor(l *Look) *Driver {
	l.removeScrollBar(d.screen.ScrollBar)
	if d.spoken == nil || d.findBox(l) != nil {
		return d
	}
	if l.matches(d.spoken.screen.Shown, "reader.shown", strings.Join(l.Lines, "\n")) {
		return d.spoken
	}
	return d
}

// InterruptPause is the pause between the InterruptKeys of one interruption.
const InterruptPause = 300 * time.Millisecond

const enter = "\r" // chooses the selected option of a dialog

// SubmitKeys returns the keys that send the text in the box. Write them separately, at least SubmitDelay after the text: in
// one write Codex and Gemini CLI, and with long text Claude Code, take Enter for a line break.
func (d *Driver) SubmitKeys() string { return strings.Join(d.file.Keys.Submit, "") }

// SubmitDelay is how long a program may take to read n bytes of text.
func SubmitDelay(n int) time.Duration {
	return min(150*time.Millisecond+time.Duration(n/100)*time.Millisecond, time.Second)
}

// InterruptKeys returns the keys that end a turn, to be written one by one. For an agent that is never Ctrl-C, which
// quits Codex and opencode.
func (d *Driver) InterruptKeys() (keys [][]byte) {
	for _, key := range d.file.Keys.Interrupt {
		keys = append(keys, []byte(key))
	}
	return keys
}

// titleActivity returns the activity that the title shows, or Unknown.
func (d *Driver) titleActivity(l *Look) reducer.Activity {
	s := strings.TrimSpace(l.Title)
	for _, t := range d.screen.Titles {
		if t.Pattern.MatchString(s) {
			l.note("titles", t.Means, t.Line, noRow, s)
			return reducer.Activity(t.Means)
		}
	}
	return reducer.Unknown
}

// progressActivity returns the activity that the progress bar shows, or Unknown.
func (d *Driver) progressActivity(l *Look) reducer.Activity {
	means, ok := d.screen.Progress[string(l.Progress)]
	if !ok {
		return reducer.Unknown
	}
	l.note("progress", means, 0, noRow, string(l.Progress))
	return reducer.Activity(means)
}
