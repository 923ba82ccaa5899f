package testagent

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// effect is what an option of a dialog leads to.
type effect int

const (
	allow effect = iota
	deny
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
	at      int // the selected one
	draw    func(a *agent, d *dialog) []string
	chosen  chan option
	then    func(option) // for a dialog that belongs to no turn
}

// show puts a dialog on the screen. What happens to permission dialogs by themselves is set going
// here.
func (a *agent) show(d *dialog) {
	if d.chosen == nil {
		d.chosen = make(chan option, 1)
	}
	a.dialog = d
	a.log.add(Entry{Event: DialogShown, Kind: d.kind, Text: d.about})
	if d.kind == "permission" && a.o.DialogVanish > 0 {
		a.after(a.o.DialogVanish, func() {
			if a.takeAway(d) {
				d.chosen <- option{id: "gone", effect: allow}
			}
		})
	}
	if d.kind == "permission" && a.o.DialogChange > 0 {
		a.after(a.o.DialogChange, func() { a.change(d) })
	}
}

// takeAway ends a dialog as if its question had been settled elsewhere.
func (a *agent) takeAway(d *dialog) bool {
	if a.dialog != d {
		return false
	}
	a.log.add(Entry{Event: DialogGone, Kind: d.kind, Text: d.about})
	a.dialog = nil
	return true
}

// change makes a dialog one about another command, as when a second tool's dialog follows on the
// first's without a moment between. The answer of the second counts for both.
func (a *agent) change(d *dialog) {
	if !a.takeAway(d) {
		return
	}
	a.o.DialogChange = 0
	other := a.permission(a, "rm -rf "+a.dir)
	other.chosen = d.chosen
	if a.turn != nil {
		a.turn.tool = other.about
	}
	a.show(other)
}

// inDialog is a key while a dialog is up. Each character of a text is a key of its own.
func (a *agent) inDialog(k key) {
	d := a.dialog
	switch k.name {
	case "text":
		for i, r := range k.text {
			if a.dialog != d {
				a.keyed(key{"text", k.text[i:]})
				return
			}
			a.pressed(d, string(r))
		}
	case "paste":
		a.log.add(Entry{Event: DialogKey, Kind: "paste", Text: k.text})
	case "":
	default:
		a.pressed(d, k.name)
	}
}

// pressed is one key in a dialog.
func (a *agent) pressed(d *dialog, name string) {
	if name == "enter" {
		a.choose(d, d.options[d.at])
		return
	}
	for _, o := range d.options {
		if slices.Contains(strings.Fields(o.keys), name) || name == "ctrl-c" && o.effect != allow {
			a.choose(d, o)
			return
		}
	}
	switch {
	case name == "down" || name == "right" || name == "tab":
		d.at = min(d.at+1, len(d.options)-1)
	case name == "up" || name == "left":
		d.at = max(d.at-1, 0)
	case a.digitsSelect && len(name) == 1 && name[0] >= '1' && int(name[0]-'1') < len(d.options):
		d.at = int(name[0] - '1')
	}
	a.log.add(Entry{Event: DialogKey, Text: name})
}

func (a *agent) choose(d *dialog, o option) {
	a.dialog = nil
	a.log.add(Entry{Event: Answered, Kind: d.kind, Option: o.id, Text: d.about})
	if d.then != nil {
		d.then(o)
	}
	d.chosen <- o
}

// list draws options under each other with their numbers; mark stands before the selected one.
func (d *dialog) list(indent, mark string) (lines []string) {
	for i, o := range d.options {
		before := rule(" ", ansi.StringWidth(mark))
		if i == d.at {
			before = mark
		}
		lines = append(lines, indent+before+string(rune('1'+i))+". "+o.label)
	}
	return lines
}

// atSelected is the frame of a dialog: the cursor stands at what is selected.
func atSelected(lines []string, d *dialog) frame {
	f := frame{lines: lines, y: len(lines) - 1}
	want := string(rune('1'+d.at)) + ". " + ansi.Strip(d.options[d.at].label)
	for i, line := range lines {
		if strings.Contains(ansi.Strip(line), want) {
			f.x, f.y = 1, i
		}
	}
	return f
}
