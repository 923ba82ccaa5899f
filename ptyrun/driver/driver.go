// Package driver says what the screen of an agent in a terminal means.
//
// A [Driver] is a table: how one program draws its input box, its dialogs, its title, its busy line, and
// which keys it takes. [Driver.Read] turns a screen into a [Reading]: what the agent does, what it asks,
// whether a message typed now would be taken as one. The tables were made from recorded screens of Claude
// Code 2.1, Codex 0.169, Gemini CLI 0.61 and opencode 1.18.
//
// Evidence counts in this order: a dialog on the screen, the title, the bottom of the screen. Busy needs
// one witness, idle needs all of them: a title that looks idle does not outweigh a busy line, and an empty
// box does not outweigh a busy title. Only what stands at the bottom, where the program itself draws, is
// believed; an answer or a person may quote a dialog, a busy line or a box.
//
// Everything here is pure and never panics. Prompt is never true while a dialog of a known shape is at the
// bottom of the screen, while a redraw frame is open, while the box holds anything, or, for an agent,
// without its own box and the cursor at the start of it. A plain program is at its prompt while bracketed
// paste is on; one that never asks for it, when its row ends as prompts do.
//
// What a caller must add is time. Programs that draw without frames pass through moments that do not last: Codex draws
// its prompt before it asks for trust. Prompt is to be believed after it held for [Settle], the first time after a
// start for [FirstSettle]; a dialog after it held, with the same Print, for [DialogSettle]. Before keys are pressed
// into a dialog the screen is read again: an [Option]'s Keys hold for the screen they were read from.
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

// How long a reading must have held before it is acted upon.
const (
	FirstSettle  = time.Second
	Settle       = 500 * time.Millisecond
	DialogSettle = 200 * time.Millisecond
)

// A Reading is what a screen means.
//
// Activity is Idle at a prompt, and Error at a prompt above which the last turn ended in an error: Prompt, not
// Activity, says whether a message would be taken. The zero Reading is that of a program of which nothing was seen yet.
type Reading struct {
	Activity reducer.Activity
	Detail   string  // the tool, "permission", "question", "trust", "API retry 4/10", "compacting", a usage limit's line
	Dialog   *Dialog // what is asked; nil while nothing is
	Draft    string  // what a person, or we, left in the input box; lines joined by newlines as shown
	HasDraft bool
	Prompt   bool   // what is typed now would be taken as a message
	Why      string // why Prompt is false: "dialog", "busy", "draft", "no prompt on the screen", …

	memory memory
}

// memory is what a reading hands on to the next.
type memory struct {
	usesPaste bool   // plain: the program has asked for bracketed paste once
	prompt    string // plain: the prompt as it last stood before anything was typed
}

// A Dialog is a question that a program puts in place of its input box.
type Dialog struct {
	Kind    string // permission, trust, question, unknown
	Print   string // the same as long as the same question stands; another for another command
	Prompt  string // what a person reads above the options
	Tool    string // as Claude Code names it: Bash, Edit, WebFetch; "": the screen does not show it for sure, no rule may answer
	Alias   string // another name of the tool, which rules meet as well; "": none
	Command bool   // Input is a command, though a tool of one of these names takes none
	Input   string // what the tool is about to do, whole: a command, a path, an address
	Options []Option
	Cancel  string // the key that ends it without an answer, as its foot says; "": it names none
}

// An Option is one answer to a dialog. As JSON it has the fields of ACP.
type Option struct {
	ID    string `json:"id"`             // its number as shown, or "allow-once" and the like where there are none
	Kind  string `json:"kind,omitempty"` // what it does, as wire.OptionKind has it; "": not known
	Label string `json:"label"`
	Keys  string `json:"-"` // the bytes that choose it, on the screen it was read from
}

// Denies reports whether the option is known to refuse what is asked for.
func (o Option) Denies() bool { return strings.HasPrefix(o.Kind, "reject") }

// AllowsOnce reports whether the option is known to allow this one call, and no more.
func (o Option) AllowsOnce() bool { return o.Kind == "allow_once" }

// Allowing returns the option that allows this one call and no more. The options of a question are the
// agent's own words: several that begin like a yes are a choice, which is nobody's but who answers.
func (d *Dialog) Allowing() (Option, bool) {
	found := slices.DeleteFunc(slices.Clone(d.Options), func(o Option) bool { return !o.AllowsOnce() })
	if len(found) == 0 || d.Kind == "question" && len(found) > 1 {
		return Option{}, false
	}
	return found[0], true
}

// Denying returns what denies and ends the dialog: an option, or for a question the key that ends it
// without an answer. ("No tests" is an answer.)
func (d *Dialog) Denying() (Option, bool) {
	if d.Kind == "question" {
		if o, ok := d.cancelOption(); ok {
			return o, true
		}
	}
	if i := slices.IndexFunc(d.Options, Option.Denies); i >= 0 {
		return d.Options[i], true
	}
	return d.cancelOption()
}

// cancelOption returns what ends the dialog without an answer: the option that Escape stands for, or Escape itself.
func (d *Dialog) cancelOption() (Option, bool) {
	if i := slices.IndexFunc(d.Options, func(o Option) bool { return o.Keys == escape }); i >= 0 {
		return d.Options[i], true
	}
	return Option{ID: "cancel", Label: "Esc", Keys: d.Cancel, Kind: "reject_once"}, d.Cancel != ""
}

const escape = "\x1b"

// A Driver is the table of one program. The ones returned by [Named] are shared and read only.
type Driver struct {
	Name  string
	Plain bool // a shell or REPL: no envelope, one message at a time

	// Undoes: a prompt that was interrupted before the first word of its answer is gone from the conversation.
	// Gemini CLI forgets it, Claude Code puts it back into its box.
	Undoes bool

	// Tells: the program makes events of all that it does, as package ptyrun/acp. The runner adds what it does not
	// know: who answered it, and that it was ended.
	Tells bool

	program string // plain: the command's name, where ForCommand knew it

	commands  []string // names of the program
	packages  []string // its packages, as node and its kin run them
	interrupt string   // keys that stop a turn, one byte each; "": Escape

	titles  []title
	box     boxStyle
	foot    []phrase     // texts below the box
	rows    []rowPattern // of rows in the transcript, first match wins
	dialogs dialogStyle  // how it asks
}

// InterruptPause is the pause between the InterruptKeys of one interruption.
const InterruptPause = 300 * time.Millisecond

// Submit is the key that sends what stands in the box. It goes in a write of its own, SubmitDelay after the text: in
// one write with the text Codex and Gemini CLI take it for a line break, Claude Code does so with long text.
const Submit = "\r"

// SubmitDelay is how long to wait between n bytes of text and [Submit].
func (d *Driver) SubmitDelay(n int) time.Duration {
	return min(150*time.Millisecond+time.Duration(n/100)*time.Millisecond, time.Second)
}

// InterruptKeys are the keys that end a turn, to be written one by one. Never Ctrl-C for an agent: it
// leaves Codex and opencode.
func (d *Driver) InterruptKeys() [][]byte {
	return bytes.Split([]byte(cmp.Or(d.interrupt, escape)), nil)
}

// drivers are all of them, and agents the ones that are recognised.
var (
	drivers = []*Driver{&claude, &codex, &gemini, &opencode, &plain, &front}
	agents  = drivers[:4]
)

// Named returns the driver of that name. acp reads the screen of package ptyrun/acp: the command must be a program
// that calls acp.Run.
func Named(name string) (*Driver, bool) {
	i := slices.IndexFunc(drivers, func(d *Driver) bool { return d.Name == name })
	if i < 0 {
		return nil, false
	}
	return drivers[i], true
}

// Names returns the names that Named knows: the agents, plain, and acp, which is no program's own screen.
func Names() (names []string) {
	for _, d := range drivers {
		names = append(names, d.Name)
	}
	return names
}

// A title says what titles of one form mean. The first that fits counts.
type title struct {
	re    *regexp.Regexp
	means reducer.Activity
}

// titleActivity is what the title is a witness of; Unknown: nothing.
func (d *Driver) titleActivity(s string) reducer.Activity {
	s = strings.TrimSpace(s)
	for _, t := range d.titles {
		if t.re.MatchString(s) {
			return t.means
		}
	}
	return reducer.Unknown
}
