package driver

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// asks is how a program asks.
type asks struct {
	buttons  bool   // under ┃, as a row of buttons or as numbered rows without a selector; otherwise a numbered list with one
	rule     string // the dialog begins below the nearest rule made of this
	frames   bool   // the dialog is framed ╭│╰
	flush    bool   // the dialog begins below the nearest row that is not indented
	digits   bool   // an option's digit chooses it at once
	kinds    []note // how the first row or the question begins, or what a row below the options has, and the kind it means
	headings []note // how the first row begins, and the tool that it means
	names    []note // the program's names of tools, and ours
	verbs    []note // how a row begins that tells of a running tool, and the tool
}

// selectors stand before the option that Return would choose.
const selectors = "❯›●>▸▶→◉"

// A list is a numbered list at the bottom of the screen.
type list struct {
	rows     []int // of the options, in order
	labels   []string
	selected int
	column   int  // of the numbers
	cut      bool // its first options are above the screen
}

// dialog returns what l asks, nil for nothing. p is the input box, if there is
// one: a list above it is a quotation, one inside it is somebody's draft.
func (d *Driver) dialog(l *Look, p place, boxed bool) *Dialog {
	if d.asks.buttons && !boxed {
		if q := d.buttonDialog(l); q != nil {
			return q
		}
	}
	f, ok := d.lowestList(l)
	if !ok || boxed && f.rows[0] <= p.bottom {
		return nil
	}
	first, whole := d.top(l, f)
	text := words(l, first, f.rows[0])
	q := &Dialog{Kind: "unknown", Prompt: clip(strings.Join(text, "\n"))}
	if !f.cut {
		q.Kind = d.kindOfDialog(l, text, f)
	}
	if q.Kind == "permission" && whole {
		q.Tool, q.Input = d.asked(l, first, f)
	}
	for i, label := range f.labels {
		o := answer(strconv.Itoa(i+1), label)
		switch {
		case f.cut:
			o.Keys = "" // what it would choose cannot be seen
		case d.asks.digits && i < 9:
			o.Keys = o.ID
		case o.Keys == "":
			o.Keys = arrows(l, "B", "A", i-f.selected)
		}
		q.Options = append(q.Options, o)
	}
	q.Cancel = cancels(words(l, f.rows[len(f.rows)-1]+1, len(l.Lines)))
	q.Print = d.print(q)
	return q
}

// cancels returns the key that ends a dialog without an answer, as the rows
// below its options say, which may be broken anywhere.
func cancels(foot []string) string {
	said := strings.ToLower(solid(strings.Join(foot, "")))
	if hasAny(said, []string{"esctocancel", "esctointerrupt", "escdismiss"}) {
		return escape
	}
	return ""
}

// lowestList finds the lowest numbered list of at least two, one of which has a
// selector before it, and below which nothing of the transcript stands.
func (d *Driver) lowestList(l *Look) (list, bool) {
	f := list{selected: -1}
	want, between, below := 0, 0, 0
	done := false
	for y := len(l.Lines) - 1; y >= 0 && !done; y-- {
		line := l.line(y)
		n, label, column, selected := numbered(line)
		switch {
		case n > 0 && (want == 0 || n == want && column == f.column):
			if selected && f.selected >= 0 {
				return list{}, false
			}
			if selected {
				f.selected = len(f.rows)
			}
			if next := y + 1; wraps(l, y, next) {
				more, _ := unframe(l.line(next))
				label += " " + more
			}
			f.column, want, between = column, n-1, 0
			f.rows, f.labels = append(f.rows, y), append(f.labels, label)
			done = want == 0
		case blank(line) || isRule(line, "─"):
		case want == 0:
			if below++; below > 8 || d.kindOf(line) != other {
				return list{}, false
			}
		default:
			text, at := unframe(line)
			if between++; between > 8 || text != "" && at <= f.column {
				return list{}, false
			}
		}
	}
	f.cut = !done
	if f.selected < 0 || len(f.rows) < 2 {
		return list{}, false
	}
	slices.Reverse(f.rows)
	slices.Reverse(f.labels)
	f.selected = len(f.rows) - 1 - f.selected
	return f, true
}

// numbered reads "❯ 2. Label": number 0 for anything else.
func numbered(line string) (n int, label string, column int, selected bool) {
	text, column := unframe(line)
	if r, size := utf8.DecodeRuneInString(text); size > 0 && strings.ContainsRune(selectors, r) {
		rest := text[size:]
		text = strings.TrimLeft(rest, " \u00a0")
		column += 1 + margin(rest)
		selected = true
	}
	digits := 0
	for digits < len(text) && digits < 2 && text[digits] >= '0' && text[digits] <= '9' {
		n = 10*n + int(text[digits]-'0')
		digits++
	}
	if digits == 0 || n == 0 || digits >= len(text) || text[digits] != '.' && text[digits] != ')' {
		return 0, "", 0, false
	}
	rest := text[digits+1:]
	label = strings.Trim(rest, " \u00a0✔✓") // a mark at the one that was chosen
	if label == "" || margin(rest) == 0 {
		return 0, "", 0, false
	}
	return n, label, column, selected
}

// unframe is what stands in a row between its frames, if it has any, and the
// column at which that begins.
func unframe(line string) (text string, column int) {
	column = margin(line)
	text = after(line, column)
	for {
		rest, ok := strings.CutPrefix(text, "│")
		if !ok {
			rest, ok = strings.CutPrefix(text, "┃")
		}
		if !ok {
			break
		}
		n := margin(rest)
		column += 1 + n
		text = after(rest, n)
	}
	text = strings.TrimRight(text, " \u00a0│")
	return text, column
}

// wraps reports whether row y was broken because the first word of row next did
// not fit any more.
func wraps(l *Look, y, next int) bool {
	if l.Cols == 0 || next >= len(l.Lines) {
		return false
	}
	if n, _, _, _ := numbered(l.line(next)); n > 0 {
		return false
	}
	more, column := unframe(l.line(next))
	_, from := unframe(l.line(y))
	if more == "" || column < from {
		return false
	}
	word, _, _ := strings.Cut(more, " ")
	return width(strings.TrimRight(l.line(y), " │"))+1+width(word) > l.Cols-4
}

// arrows are the keys that go n options on, or back, and choose.
func arrows(l *Look, on, back string, n int) string {
	intro, key := "\x1b[", on
	if l.Modes.AppCursor {
		intro = "\x1bO"
	}
	if n < 0 {
		n, key = -n, back
	}
	return strings.Repeat(intro+key, n) + Submit
}

// top is the first row of the dialog whose list is f, and whether the dialog is
// on the screen from its beginning.
func (d *Driver) top(l *Look, f list) (first int, whole bool) {
	if f.cut {
		return 0, false
	}
	at := f.rows[0]
	switch {
	case d.asks.rule != "":
		for y := at - 1; y >= 0; y-- {
			if isRule(l.line(y), d.asks.rule) {
				return y + 1, true
			}
		}
		return 0, false
	case d.asks.frames:
		column, framed := cutBefore(l.line(at), "│")
		if !framed || !blank(head(l.line(at), column)) {
			break
		}
		for y := at - 1; y >= 0; y-- {
			switch runeAt(l.line(y), column) {
			case "╭":
				return y + 1, true
			case "│":
			default:
				return y + 1, false
			}
		}
		return 0, false
	case d.asks.flush:
		for y := at - 1; y >= 0; y-- {
			if margin(l.line(y)) == 0 && !blank(l.line(y)) {
				return belowMessage(l, y, at, d.kindOf(l.line(y)) == userRow), true
			}
		}
		return 0, blank(l.line(0))
	}
	y := at
	for n := 0; y > 0 && n < 12; n++ {
		line := l.line(y - 1)
		if isRule(line, "─") || strings.ContainsAny(line, "╭╮╰╯╹") || d.kindOf(line) != other {
			break
		}
		y--
	}
	return y, false
}

// belowMessage is the row below y: below a message of a person's or ours, whose
// rows are indented from the second on, the first blank one after it.
func belowMessage(l *Look, y, before int, message bool) int {
	y++
	for message && y < before && !blank(l.line(y)) {
		y++
	}
	return y
}

// words are the rows from a to b (without b), without frames, rules and what is
// blank.
func words(l *Look, a, b int) []string {
	var text []string
	for y := a; y < b; y++ {
		s, _ := unframe(l.line(y))
		if s != "" && strings.Trim(s, "─╌╭╮╰╯━═ ") != "" {
			text = append(text, s)
		}
	}
	return text
}

// kindOfDialog judges by the first row, the question above the options and the
// rows below them. What stands between is what the agent wants to do: it can
// say anything.
func (d *Driver) kindOfDialog(l *Look, text []string, f list) string {
	var judged []string
	if len(text) > 0 {
		judged = append(judged, strings.Join(text[:min(3, len(text))], " "))
	}
	for n := 1; n <= 3 && n <= len(text); n++ {
		judged = append(judged, strings.Join(text[len(text)-n:], " "))
	}
	foot := strings.Join(words(l, f.rows[len(f.rows)-1]+1, len(l.Lines)), " ")
	for _, k := range d.asks.kinds {
		if slices.ContainsFunc(judged, func(s string) bool { return strings.HasPrefix(s, k.has) }) || strings.Contains(foot, k.has) {
			return k.why
		}
	}
	return "unknown"
}

// answer is an option as its label tells. Keys are set where the label names
// one: "(y)", "(esc)".
func answer(id, label string) Option {
	o := Option{ID: id, Label: label}
	if open := strings.LastIndex(label, " ("); open > 0 && strings.HasSuffix(label, ")") {
		switch key := label[open+2 : len(label)-1]; {
		case key == "esc":
			o.Keys, o.Label = escape, label[:open]
		case len(key) == 1 && key[0] >= 'a' && key[0] <= 'z':
			o.Keys, o.Label = key, label[:open]
		}
	}
	low := strings.ToLower(label)
	switch {
	case startsAny(low, []string{"reject", "deny", "don't", "cancel", "exit", "back"}), isNo(low):
		o.Deny = true
	case startsAny(low, []string{"yes", "allow", "approve", "trust", "confirm", "accept"}):
		o.Allow = true
		o.Always = hasAny(low, []string{"always", "don't ask", "this session", "all edits", "future", "all commands", "in this project", "from now on", "auto-accept", "trust", "save", "every"})
	}
	return o
}

// isNo reports whether a label says no: "none of the above" does not.
func isNo(low string) bool {
	rest, ok := strings.CutPrefix(low, "no")
	r, _ := utf8.DecodeRuneInString(rest)
	return ok && !unicode.IsLetter(r)
}

// print is the dialog's fingerprint. It leaves out blanks and frames, which a
// resize moves, and rows that spin.
func (d *Driver) print(q *Dialog) string {
	const prime = 1099511628211
	h := uint64(14695981039346656037)
	add := func(s string) {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * prime
		}
		h = (h ^ 0xff) * prime
	}
	add(d.Name)
	add(q.Kind)
	for row := range strings.SplitSeq(q.Prompt, "\n") {
		if spinning(row, claudeSpins, true) {
			continue
		}
		for i := range len(row) { // without an end mark: rows may be broken elsewhere
			if row[i] != ' ' {
				h = (h ^ uint64(row[i])) * prime
			}
		}
	}
	add(q.Tool)
	add(solid(q.Input))
	for _, o := range q.Options {
		add(solid(o.Label))
	}
	return strconv.FormatUint(h, 16)
}

// clip keeps a text readable: a dialog is one screen at most, but a screen may
// be large.
func clip(s string) string {
	const most = 8 << 10
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
