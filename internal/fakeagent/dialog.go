package fakeagent

import (
	"strings"
	"time"
)

// effect is what an option of a dialog leads to.
type effect int

const (
	allow effect = iota
	deny
	quit
)

// option is one that a dialog offers.
type option struct {
	id     string // what the log calls it
	label  string
	keys   string // keys that choose it at once, by name
	effect effect
}

// dialog stands in place of the prompt until it is answered.
type dialog struct {
	kind    string // permission, question, trust
	about   string
	options []option
	at      int    // the selected one
	next    string // keys that select the next
	prev    string // and the one before
	eats    int    // keys that are still ignored
	flips   bool   // its first key has come
	serial  int
	draw    func(a *agent, d *dialog) []string
	chosen  chan option
	then    func(option) // for a dialog that belongs to no turn
}

// show puts a dialog on the screen. What happens to permission dialogs by
// themselves is set going here.
func (a *agent) show(d *dialog) {
	if d.chosen == nil {
		d.chosen = make(chan option, 1)
	}
	a.dialogs++
	d.serial, d.eats = a.dialogs, a.o.DialogEats
	a.dialog = d
	a.log.add(Entry{Event: DialogShown, Kind: d.kind, Text: d.about})
	if d.kind != "permission" {
		return
	}
	if a.o.DialogVanish > 0 {
		a.after(a.o.DialogVanish, func() { a.vanish(d.serial) })
	}
	if a.o.DialogChange > 0 {
		a.after(a.o.DialogChange, func() { a.change(d.serial) })
	}
}

// vanish takes a dialog away as if its question had been settled elsewhere.
func (a *agent) vanish(serial int) {
	d := a.dialog
	if d == nil || d.serial != serial {
		return
	}
	a.log.add(Entry{Event: DialogGone, Kind: d.kind, Text: d.about})
	a.dialog = nil
	d.chosen <- option{id: "gone", effect: allow}
}

// change makes it one about another command, as when a second tool's dialog
// follows on the first's without a moment between. The answer of the second
// counts for both.
func (a *agent) change(serial int) {
	d := a.dialog
	if d == nil || d.serial != serial {
		return
	}
	a.log.add(Entry{Event: DialogGone, Kind: d.kind, Text: d.about})
	other := a.p.permission(a, "rm -rf "+orElse(a.dir, "build"))
	other.chosen = d.chosen
	a.dialogs++
	other.serial = a.dialogs
	a.dialog = other
	if a.turn != nil {
		a.turn.tool = other.about
	}
	a.log.add(Entry{Event: DialogShown, Kind: other.kind, Text: other.about})
}

// inDialog is a keystroke while a dialog is up. It says whether the keystroke
// was the dialog's; where a dialog went away at it, it is the prompt's.
func (a *agent) inDialog(k keystroke) bool {
	d := a.dialog
	if !d.flips && d.kind == "permission" {
		d.flips = true
		switch a.o.DialogFlip {
		case "vanish":
			a.vanish(d.serial)
			return false
		case "change":
			a.change(d.serial)
			d = a.dialog
			d.flips = true
		}
	}
	name, text := k.name, k.text
	if name == "text" {
		// Each character is a key of its own.
		for _, r := range text {
			if a.dialog != d {
				return a.keyed(keystroke{"text", string(r)})
			}
			a.pressed(d, string(r))
		}
		return true
	}
	if name == "paste" {
		a.log.add(Entry{Event: DialogKey, Kind: "paste", Text: text})
		return true
	}
	a.pressed(d, name)
	return true
}

// pressed is one key in a dialog.
func (a *agent) pressed(d *dialog, key string) {
	if d.eats > 0 {
		d.eats--
		a.log.add(Entry{Event: DialogKey, Kind: "eaten", Text: key})
		return
	}
	if key == "enter" {
		a.choose(d, d.options[d.at])
		return
	}
	for _, o := range d.options {
		if hasWord(o.keys, key) || key == "ctrl-c" && o.effect != allow {
			a.choose(d, o)
			return
		}
	}
	switch {
	case hasWord(d.next, key):
		d.at = min(d.at+1, len(d.options)-1)
	case hasWord(d.prev, key):
		d.at = max(d.at-1, 0)
	case a.p.digitsSelect && len(key) == 1 && key[0] >= '1' && int(key[0]-'1') < len(d.options):
		d.at = int(key[0] - '1')
	}
	a.log.add(Entry{Event: DialogKey, Text: key})
}

func (a *agent) choose(d *dialog, o option) {
	a.dialog = nil
	a.log.add(Entry{Event: Answered, Kind: d.kind, Option: o.id, Text: d.about})
	if d.then != nil {
		d.then(o)
	}
	d.chosen <- o
}

// list draws options under each other with their numbers; mark stands before
// the selected one.
func (d *dialog) list(indent, mark string) []string {
	var lines []string
	for i, o := range d.options {
		before := strings.Repeat(" ", textWidth(plainText(mark)))
		if i == d.at {
			before = mark
		}
		lines = append(lines, indent+before+string(rune('1'+i))+". "+o.label)
	}
	return lines
}

// after has the loop run f in a while.
func (a *agent) after(d time.Duration, f func()) {
	time.AfterFunc(d, func() { a.events <- f })
}
