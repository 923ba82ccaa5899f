// Package driver interprets the screen of an agent in a terminal.
//
// A [Driver] knows one program by three patterns, in a file of package agents: what its screen shows while it asks, while it
// works, and while it waits for a text. [Driver.Read] turns a screen into a [Reading]: which of the three it is, what it asks,
// and what is in its box. A screen that none of them fits says nothing, and then nothing is typed. The built-in files are based
// on recorded screens of the versions that they name.
//
// What the program says, which tools it uses and how its turns end is not read: whoever tells that, tells it by a hook, a
// server, a plugin, a protocol or a file. No rule acts on what is only on a screen.
//
// Everything here is pure and never panics. Prompt is never true while a dialog that its file describes is on the screen,
// while a synchronized update is open, or while the box holds anything. A shell or REPL is at its prompt when the cursor's row
// ends as prompts do, and no command runs in the foreground. Of a program that nobody has described nothing is known.
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
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentteammail/atm/internal/driver/agents"
)

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

	file *agents.File
}

// newDriver returns the driver that a file describes.
func newDriver(f *agents.File) *Driver {
	return &Driver{
		Name: f.Name, Plain: f.Plain, Unknown: f.Name == agents.None, ForgetsInterruptedPrompt: f.Keys.Forgets, Protocol: f.Protocol, file: f,
	}
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

// InterruptPause is the pause between the InterruptKeys of one interruption.
const InterruptPause = 300 * time.Millisecond

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
