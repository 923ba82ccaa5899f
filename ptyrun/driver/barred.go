package driver

import (
	"regexp"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/agentteammail/atm/ptyrun/driver/agents"
)

// findBarredOptions finds the options of a dialog in rows at the bottom that start with ┃: below text, numbers or buttons
// and the keys for them. There is no closing ╹, unlike below an input box.
func (d *Driver) findBarredOptions(l *Look) (f layout, ok bool) {
	first, end := l.barredRows()
	text := textRows(l, first, end)
	if len(text) == 0 {
		return f, false
	}
	style := &d.screen.Dialog
	if style.DigitsHint != "" && strings.Contains(text[len(text)-1], style.DigitsHint) {
		f, ok = l.numberedIn(first, end, false, func(int) bool { return false })
	}
	for i := range f.options {
		o := &f.options[i]
		if o.Keys = ""; len(o.ID) == 1 && !o.isBox() {
			o.Keys = o.ID // although none is seen to be selected
		}
	}
	if !ok {
		f = layout{top: end}
		for y := end - 1; y >= max(first, end-5) && f.options == nil; y-- { // on a narrow screen the keys are below
			if f.options = l.buttonsIn(y, style); f.options != nil {
				f.top = y
			}
		}
		f.end = f.top
		_, isKnown := findPrefix(text[0], style.Kinds)
		ok = isKnown || hasAny(strings.Join(text, " "), style.Hints)
	}
	f.first, f.isWhole = first, first > 0 // at 0 a command may start above the screen
	return f, ok
}

// barredRows returns the lowest rows that start with ┃: the first, and the row after the last that is not blank.
func (l *Look) barredRows() (first, end int) {
	isBarred := func(y int) bool { return strings.HasPrefix(strings.TrimSpace(l.line(y)), "┃") }
	below := 0
	for end = len(l.Lines); end > 0 && (!isBarred(end-1) || len(textRows(l, end-1, end)) == 0); end-- {
		if !blank(l.line(end-1)) && !isBarred(end-1) {
			below++
		}
	}
	if below > 3 {
		return 0, 0
	}
	first = end
	for first > 0 && isBarred(first-1) && margin(l.line(first-1)) == margin(l.line(end-1)) {
		first--
	}
	return first, end
}

var twoBlanks = regexp.MustCompile(`  +`)

// buttonsIn returns the buttons in row y. They are drawn side by side, the selected one on the background that stands out
// most.
func (l *Look) buttonsIn(y int, style *agents.Dialog) (buttons []Option) {
	line := l.line(y)
	text, _ := unframe(line)
	ground, most, selected, at := l.row(y).background(), 0, -1, 0
	for _, label := range twoBlanks.Split(text, -1) {
		at += max(0, strings.Index(line[at:], label))
		if !slices.Contains(style.Buttons, label) {
			continue
		}
		switch n := contrast(l.cell(ansi.StringWidth(line[:at]), y), ground); {
		case n > most:
			most, selected = n, len(buttons)
		case n == most:
			selected = -1
		}
		buttons = append(buttons, newOption(strings.ReplaceAll(strings.ToLower(label), " ", "-"), label))
	}
	for i := range buttons {
		if selected >= 0 {
			buttons[i].Keys = arrowKeys(l, "C", "D", i-selected)
			if slices.Contains(style.AsksReason, buttons[i].Label) {
				buttons[i].Keys += enter // an empty one
			}
		}
	}
	return buttons
}
