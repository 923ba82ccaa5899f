// Package driver interprets the screen of an agent in a terminal.
//
// A [Driver] is a table for one program: how it draws its input box, dialogs, title and busy line, and which keys it
// takes. [Driver.Read] turns a screen into a [Reading]: what the agent does, what it asks, and whether it would accept
// a message now. The tables are based on recorded screens of Claude Code 2.1.197 and 2.1.332, Codex 0.169 and 0.171,
// Gemini CLI 0.61 and opencode 1.18, also without colours, without animations and for screen readers.
//
// An answer may have any words, so what the program says of itself is told from an answer by its style: its colours,
// what is dim or bold, and what stands in the first columns.
//
// A dialog on the screen counts more than the title, and the title more than the bottom of the screen. One sign of work
// makes an agent busy, whatever the others say; it is idle only if all signs agree. Only the bottom of the screen
// counts, where the program itself draws: an answer or a person may quote a dialog, a busy line or a box.
//
// Everything here is pure and never panics. Prompt is never true while a dialog of a known shape is at the bottom of
// the screen, while a synchronized update is open, or while the box holds anything. For an agent it also needs its own
// box, with the cursor at the start. A plain program is at its prompt while bracketed paste is on; if it never enables
// that, when the cursor's row ends as prompts do.
//
// The caller adds time, because screens pass through states that do not last: Codex draws its prompt before it asks for
// trust. Believe Prompt after it has held for [Settle], the first time after a start for [FirstSettle]; believe a
// dialog after it has held with the same Fingerprint for [DialogSettle]. Read the screen again before pressing keys in
// a dialog: an [Option]'s Keys are valid only for the screen they were read from.
package driver

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/reducer"
)

const escape = "\x1b"

// A Driver is the table of one program. Those that [Named] returns are shared and read-only.
type Driver struct {
	Name  string
	Plain bool // a shell or REPL: it gets the bare text, one message at a time

	// ForgetsInterruptedPrompt means that an interrupt before the first word of the answer removes the prompt from the
	// conversation. Gemini CLI forgets it, Claude Code puts it back into its box.
	ForgetsInterruptedPrompt bool

	// LogsOwnEvents means that the program logs all events itself, as package ptyrun/acp does. The runner adds who
	// answered a request, and the end of the program.
	LogsOwnEvents bool

	program string // plain: the first word of the command, if ForCommand chose the driver

	commands   []string       // names of the program
	npmPackage string         // "": it has none
	sign       *regexp.Regexp // matches a title, a line break and a screen that only this program shows
	interrupt  string         // keys that stop a turn, one byte each; "" means Escape
	unshared   string         // flag: no server that all sessions share, with the environment of the first
	others     []string       // subcommands that draw no session and share nothing
	valueFlags []string       // flags that take the next argument

	triggers *triggerStyle // nil: unknown

	titles     []title
	declaresAs string // its name where it says outright what it does; "": it does not
	box        boxStyle
	foot       []gatePhrase // texts below the box
	limitFoot  string       // starts the notice of a usage limit below the box
	notBox     []string     // texts that are never below a box
	views      []string     // texts of what is drawn in place of the box but asks nothing
	rows       []rowPattern // of the transcript; the first match wins
	answerMark string       // before an answer, if that is more than one character
	errorMark  string       // before an error, if that is a word
	userMark   string       // before a message, if that is a word
	indent     int          // of an answer's rows
	dialogs    dialogStyle

	drawsAnswersAsErrors bool // that begin like one

	spoken *Driver // how the same program draws for a screen reader; nil: as always
}

// tableFor returns the table for the look on the screen: d, or the one for a screen reader.
func (d *Driver) tableFor(l *Look) *Driver {
	if d.spoken == nil || d.findBox(l) != nil || !d.spoken.sign.MatchString(strings.Join(l.Lines, "\n")) {
		return d
	}
	return d.spoken
}

// InterruptPause is the pause between the InterruptKeys of one interruption.
const InterruptPause = 300 * time.Millisecond

// Submit is the key that sends the text in the box. Write it separately, at least SubmitDelay after the text: in one
// write Codex and Gemini CLI, and with long text Claude Code, take it for a line break.
const Submit = "\r"

// SubmitDelay is how long a program may take to read n bytes of text.
func SubmitDelay(n int) time.Duration {
	return min(150*time.Millisecond+time.Duration(n/100)*time.Millisecond, time.Second)
}

// InterruptKeys returns the keys that end a turn, to be written one by one. For an agent that is never Ctrl-C, which
// quits Codex and opencode.
func (d *Driver) InterruptKeys() [][]byte {
	return bytes.Split([]byte(cmp.Or(d.interrupt, escape)), nil)
}

// agents are the drivers that ForCommand and Recognise find, drivers all.
var (
	agents  = []*Driver{&claude, &codex, &gemini, &opencode}
	drivers = append(slices.Clone(agents), &plain, &front)
)

// Named returns a driver by its name. The driver acp reads the screen of package ptyrun/acp: its command must call
// acp.Run.
func Named(name string) (*Driver, bool) {
	i := slices.IndexFunc(drivers, func(d *Driver) bool { return d.Name == name })
	if i < 0 {
		return nil, false
	}
	return drivers[i], true
}

// Names returns the names that Named knows.
func Names() (names []string) {
	for _, d := range drivers {
		names = append(names, d.Name)
	}
	return names
}

// A title is a pattern for titles and what it means. The first match counts.
type title struct {
	re    *regexp.Regexp
	means reducer.Activity
}

// titleActivity returns the activity that the title shows, or Unknown.
func (d *Driver) titleActivity(s string) reducer.Activity {
	s = strings.TrimSpace(s)
	for _, t := range d.titles {
		if t.re.MatchString(s) {
			return t.means
		}
	}
	return reducer.Unknown
}
