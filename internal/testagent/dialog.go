package testagent

import (
	"slices"
	"strings"
	"time"
)

// dialog is a prompt that waits for its answer.
type dialog struct {
	prompt
	kind     string // permission, question, trust
	about    string
	selected int
	then     func(option)
	isOver   func() // the hooks that are asked hear so; nil: none is
}

// show shows a dialog. For a permission dialog, it starts the timers of the options DialogVanish and DialogChange.
func (a *agent) show(d *dialog) {
	a.dialog = d
	a.log.add(Entry{Event: DialogShown, Kind: d.kind, Text: d.about})
	if d.kind == "permission" {
		a.askHooks(d)
	}
	unlessAnswered := func(delay time.Duration, f func()) {
		if d.kind == "permission" && delay > 0 {
			a.after(delay, func() {
				if a.dialog == d {
					f()
				}
			})
		}
	}
	unlessAnswered(a.o.DialogVanish, func() {
		a.dialog = nil
		d.then(option{})
	})
	unlessAnswered(a.o.DialogChange, func() { // as if a second tool's dialog follows the first one at once
		a.o.DialogChange = 0
		a.turn.tool = "rm -rf " + a.dir
		a.show(&dialog{prompt: d.prompt, kind: d.kind, about: a.turn.tool, then: d.then})
	})
}

// decide answers a dialog as a hook has decided, if it is still open.
func (a *agent) decide(d *dialog, isDeny bool) {
	if i := slices.IndexFunc(d.Options, func(o option) bool { return o.denies() == isDeny }); i >= 0 && a.dialog == d {
		a.choose(d, d.Options[i])
	}
}

func (a *agent) choose(d *dialog, o option) {
	a.dialog = nil
	if d.isOver != nil {
		d.isOver()
	}
	a.log.add(Entry{Event: Answered, Kind: d.kind, Option: o.ID, Text: d.about})
	d.then(o)
}

// handleDialogKey handles a key while a dialog is shown. Each character of a text is a key of its own.
func (a *agent) handleDialogKey(k key) {
	d := a.dialog
	switch k.name {
	case "text":
		for i, r := range k.text {
			if a.dialog != d {
				a.handleKey(key{"text", k.text[i:]})
				return
			}
			a.pressInDialog(d, string(r))
		}
	case "paste":
		a.log.add(Entry{Event: DialogKey, Kind: "paste", Text: k.text})
	case "":
	default:
		a.pressInDialog(d, k.name)
	}
}

func (a *agent) pressInDialog(d *dialog, name string) {
	for i, o := range d.Options {
		isChosen := slices.Contains(strings.Fields(o.Keys), name)
		if isChosen || name == "enter" && i == d.selected {
			a.choose(d, o)
			return
		}
	}
	switch name {
	case "down":
		d.selected = min(d.selected+1, len(d.Options)-1)
	case "up":
		d.selected = max(d.selected-1, 0)
	}
	a.log.add(Entry{Event: DialogKey, Text: name})
}
