package driver

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/agentteammail/atm/internal/driver/agents"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire/foreign"
)

const (
	shownRows = 12             // of what is asked, if its kind is not known
	unknown   = agents.Unknown // kind of dialog
	enter     = "\r"           // chooses the selected option of a dialog
	escape    = "\x1b"
)

// asksOn returns what the program asks in place of its input box, and whether it asks at all: its title alone may say so. What
// it asks is shown to people, and answered by them: nothing on a screen is taken for a command that a rule could decide about.
func (d *Driver) asksOn(l *Look) (q *ask.Question, asks bool) {
	if d.Plain && l.Hidden {
		return d.question("question", strings.TrimSpace(l.typedRow())), true
	}
	s := &d.file.Screen.Asks
	g := d.regionOf(l, &s.Area)
	m := g.find(&s.Area)
	if m == nil {
		return nil, s.Title != nil && s.Title.MatchString(strings.TrimSpace(l.Title))
	}
	group := func(name string) string {
		if i := 2 * s.Pattern.SubexpIndex(name); i >= 0 && m[i] >= 0 {
			return g.text[m[i]:m[i+1]]
		}
		return ""
	}
	kind, words := agents.Unknown, g.text[m[0]:m[1]]
	for _, k := range agents.DialogKinds {
		if text := group(k); text != "" {
			kind, words = k, text
			break
		}
	}
	first, _ := g.rowAt(m[0] + strings.Index(g.text[m[0]:m[1]], words))
	options, end := l.optionsIn(s.Option, first, g.end)
	words = wordsOf(words)
	if kind == agents.Unknown || len(options) == 0 && !d.Plain {
		rows := strings.Split(words, "\n")
		kind, words, options = agents.Unknown, strings.Join(rows[max(0, len(rows)-shownRows):], "\n"), nil
	}
	q = d.question(kind, words)
	q.Tool, q.Options = group("tool"), options
	for _, o := range options {
		if o.Keys == escape {
			q.Cancel = o
		}
	}
	if foot := strings.Join(l.Lines[end:g.end], " "); q.Cancel.ID == "" && escHint.MatchString(foot) {
		q.Cancel = ask.Option{ID: "cancel", Label: "Esc", Keys: escape, Kind: "reject_once"}
	}
	q.Fingerprint = d.fingerprint(q)
	return q, true
}

// escHint matches what names Esc as the key that ends a dialog without an answer.
var escHint = regexp.MustCompile(`(?i)\besc(?:ape)? (?:to (?:cancel|interrupt)|dismiss|cancel)|escape/ctrl\+c cancel`)

func (d *Driver) question(kind, words string) *ask.Question {
	q := &ask.Question{Dialog: kind, Prompt: words}
	q.Fingerprint = d.fingerprint(q)
	return q
}

// fingerprint identifies a dialog. It ignores blanks, which a resize moves.
func (d *Driver) fingerprint(q *ask.Question) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%q %q %q", d.Name, q.Dialog, RemoveBlanks(q.Prompt))
	for _, o := range q.Options {
		fmt.Fprintf(h, " %q", RemoveBlanks(o.Label))
	}
	return strconv.FormatUint(h.Sum64(), 16)
}

// wordsOf returns the rows of a dialog without frames, rules and blank rows.
func wordsOf(text string) string {
	var rows []string
	for row := range strings.Lines(text) {
		if row = strings.Trim(row, " │┃|\n"); strings.Trim(row, "─╌╭╮╰╯━═▔+- ") != "" {
			rows = append(rows, row)
		}
	}
	return strings.Join(rows, "\n")
}

// An optionRow is an option where it stands on the screen.
type optionRow struct {
	ask.Option
	row, column int // of its label
	number      int // 0: it has none
	isSelected  bool
}

// optionsIn returns the lowest options in rows first to end (exclusive), and the row below them: those in one row, or those
// in one column, one of which is selected, or which have a key or a number.
func (l *Look) optionsIn(p *agents.Pattern, first, end int) (options []ask.Option, below int) {
	if p == nil {
		return nil, end
	}
	for y := end - 1; y >= first; y-- {
		row := l.optionRows(p, y)
		if len(row) > 1 {
			return l.withKeys(row, "C", "D"), y + 1
		}
		if len(row) == 0 {
			continue
		}
		found := l.columnAbove(p, first, row[0])
		if !slices.ContainsFunc(found, func(o optionRow) bool { return o.isSelected || o.ID != "" }) {
			continue
		}
		last := &found[len(found)-1]
		for below = y + 1; below < end && !blank(l.Lines[below]); below++ {
		}
		last.Label += l.restOf(last.row, below)
		if found[0].number > 1 { // the first ones are above the screen
			return nil, below
		}
		return l.withKeys(found, "B", "A"), below
	}
	return nil, end
}

// maxGap is how many rows may be between two numbered options.
const maxGap = 4

// columnAbove returns an option and those above it, from row first on: in the same column, and right above each other or
// numbered down to 1.
func (l *Look) columnAbove(p *agents.Pattern, first int, last optionRow) []optionRow {
	found := []optionRow{last}
	for y, gap := last.row-1, 0; y >= first && found[0].number != 1; y-- {
		above := l.optionRows(p, y)
		isNext := len(above) == 1 && above[0].column == found[0].column && (above[0].number > 0 && above[0].number == found[0].number-1 || found[0].number == 0 && above[0].number == 0)
		switch {
		case isNext:
			above[0].Label += l.restOf(y, found[0].row)
			found, gap = append(above, found...), 0
		case found[0].number == 0 || gap == maxGap:
			return found
		default:
			gap++
		}
	}
	return found
}

// restOf returns the rest of an option's label: rows below its own that go on with a word for which that had no room.
func (l *Look) restOf(y, end int) (more string) {
	for next := y + 1; next < end; next++ {
		text := strings.Trim(l.Lines[next], " │┃|")
		word, _, _ := strings.Cut(text, " ")
		width := 0
		if len(l.Cells) > 0 {
			width = len(l.Cells[0])
		}
		if wordsOf(text) == "" || ansi.StringWidth(strings.TrimRight(l.Lines[next-1], " │┃|"))+1+ansi.StringWidth(word) <= width-4 {
			break
		}
		more += " " + text
	}
	return more
}

// keyNames are the keys that have a longer name.
var keyNames = map[string]string{"esc": escape, "tab": "\t", "shift+tab": "\x1b[Z"}

// optionRows returns the options that a pattern finds in row y.
func (l *Look) optionRows(p *agents.Pattern, y int) (options []optionRow) {
	line := l.Lines[y]
	for _, m := range p.FindAllStringSubmatchIndex(line, -1) {
		group := func(name string) string {
			if i := 2 * p.SubexpIndex(name); i >= 0 && m[i] >= 0 {
				return line[m[i]:m[i+1]]
			}
			return ""
		}
		key, number, label := group("key"), group("number"), strings.TrimSpace(group("label"))
		if label == "" {
			continue
		}
		o := optionRow{row: y, column: ansi.StringWidth(line[:m[2*p.SubexpIndex("label")]]), isSelected: group("selected") != ""}
		o.number, _ = strconv.Atoi(cmp.Or(number, key))
		o.Label, o.ID = label, cmp.Or(number, key)
		if key != "" {
			o.Keys = cmp.Or(keyNames[strings.ToLower(key)], key)
		}
		options = append(options, o)
	}
	return options
}

// withKeys returns options with what chooses each: its own key, else the arrow keys that lead to it from the one that is
// selected, and Enter. on and back are the arrows.
func (l *Look) withKeys(found []optionRow, on, back string) (options []ask.Option) {
	selected, columns := -1, []int{}
	for i, o := range found {
		columns = append(columns, o.column)
		if o.isSelected {
			selected = i
		}
	}
	if isRow := on == "C"; isRow && selected < 0 {
		selected = l.standsOut(found[0].row, columns)
	}
	for i, o := range found {
		if o.ID == "" && on == "C" {
			o.ID = strings.ReplaceAll(strings.ToLower(o.Label), " ", "-")
		}
		o.ID = cmp.Or(o.ID, strconv.Itoa(i+1))
		o.Kind = foreign.OptionKind(o.ID, o.Label)
		if o.Keys == "" && selected >= 0 {
			o.Keys = arrowKeys(l, on, back, i-selected)
		}
		options = append(options, o.Option)
	}
	return options
}

// arrowKeys returns the keys that move n options on, or back, and choose.
func arrowKeys(l *Look, on, back string, n int) string {
	intro, key := "\x1b[", on
	if l.Modes.AppCursor {
		intro = "\x1bO"
	}
	if n < 0 {
		n, key = -n, back
	}
	return strings.Repeat(intro+key, n) + enter
}
