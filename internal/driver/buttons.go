package driver

import (
	"slices"
	"strconv"
	"strings"
)

// buttonLabels are opencode's answers. They are drawn side by side, the one
// that Return would press on a ground of its own.
var buttonLabels = []string{"Allow once", "Allow always", "Reject", "Confirm", "Cancel"}

// buttonDialog reads opencode's dialog: rows that begin with ┃, at the bottom
// and not closed by ╹ as the input box is, the last with text a row of buttons
// and of keys.
func (d *Driver) buttonDialog(l *Look) *Dialog {
	last, below := len(l.Lines)-1, 0
	for ; last >= 0 && !strings.HasPrefix(strings.TrimSpace(l.line(last)), "┃"); last-- {
		if !blank(l.line(last)) {
			below++
		}
	}
	if last < 0 || below > 3 {
		return nil
	}
	column := margin(l.line(last))
	first := last
	for first > 0 && margin(l.line(first-1)) == column && runeAt(l.line(first-1), column) == "┃" {
		first--
	}
	rows := make([]string, 0, last-first+1)
	var at []int
	for y := first; y <= last; y++ {
		if s := strings.TrimSpace(after(l.line(y), column+1)); s != "" {
			rows, at = append(rows, s), append(at, y)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	if q := d.numberedDialog(rows); q != nil {
		return q
	}
	// On a narrow screen the keys stand in rows of their own below the buttons.
	foot := len(rows)
	for n := len(rows) - 1; n >= 0 && n >= len(rows)-4; n-- {
		if slices.ContainsFunc(fields(rows[n]), isButton) {
			foot = n
			break
		}
	}
	keys := strings.Join(rows[min(foot, len(rows)-1):], " ")
	if !hasAny(keys, []string{"enter confirm", "enter submit", "esc dismiss", "⇆ select", "↑↓ select"}) {
		return nil
	}
	q := &Dialog{Kind: "unknown", Prompt: clip(strings.Join(rows[:min(foot, len(rows))], "\n"))}
	if foot < len(rows) {
		q.Options = d.buttonsIn(l, rows[foot], at[foot])
	}
	switch {
	case strings.HasPrefix(rows[0], "△ ") && len(q.Options) > 0:
		q.Kind = "permission"
		q.Tool, q.Input = askedByOpencode(rows[1:foot])
		if first == 0 {
			q.Tool, q.Input = "", "" // its beginning may be above the screen
		}
	case strings.Contains(keys, "dismiss"):
		q.Kind = "question"
	}
	q.Cancel = cancels([]string{keys})
	q.Print = d.print(q)
	return q
}

// numberedDialog reads opencode's question: its options numbered below each
// other, each with what is said of it in rows of its own, and "esc dismiss" at
// the end. A digit chooses its option, and where several may be chosen marks it,
// which answers nothing.
func (d *Driver) numberedDialog(rows []string) *Dialog {
	foot := len(rows) - 1
	if !strings.Contains(rows[foot], "esc dismiss") {
		return nil
	}
	var options []Option
	first, want := foot, 0
	for y := foot - 1; y >= 0 && want != 1; y-- {
		n, label, _, _ := numbered(rows[y])
		if n == 0 || want > 0 && n != want-1 {
			continue
		}
		o := answer(strconv.Itoa(n), label)
		if o.Keys = ""; n <= 9 && !hasAny(label, []string{"[ ]", "[✓]"}) {
			o.Keys = o.ID
		}
		options, first, want = append(options, o), y, n
	}
	if want != 1 {
		return nil
	}
	slices.Reverse(options)
	q := &Dialog{Kind: "question", Prompt: clip(strings.Join(rows[:first], "\n")), Options: options, Cancel: cancels(rows[foot:])}
	q.Print = d.print(q)
	return q
}

// fields cuts a row where two blanks or more stand.
func fields(row string) []string {
	var out []string
	for f := range strings.SplitSeq(row, "  ") {
		if f = strings.TrimSpace(f); f != "" {
			out = append(out, f)
		}
	}
	return out
}

func isButton(s string) bool { return slices.Contains(buttonLabels, s) }

func (d *Driver) buttonsIn(l *Look, row string, y int) []Option {
	var out []Option
	lit := l.lit(y)
	selected := -1
	for _, label := range fields(row) {
		if !isButton(label) {
			continue
		}
		if strings.Contains(lit, label) {
			selected = len(out)
		}
		o := answer(strings.ReplaceAll(strings.ToLower(label), " ", "-"), label)
		out = append(out, o)
	}
	if selected < 0 && l.Lit == nil {
		selected = 0 // as the dialog comes up
	}
	for i := range out {
		if selected >= 0 {
			out[i].Keys = arrows(l, "C", "D", i-selected)
		}
	}
	return out
}

// askedByOpencode reads the rows between the heading and the buttons.
func askedByOpencode(rows []string) (tool, input string) {
	start := -1
	for i, s := range rows {
		if strings.HasSuffix(s, "…") {
			return "", "" // cut short
		}
		if strings.HasPrefix(s, "$ ") {
			if start >= 0 {
				return "", ""
			}
			start = i
		}
	}
	switch {
	case len(rows) == 0:
		return "", ""
	case start >= 0:
		return "Bash", strings.TrimPrefix(strings.Join(rows[start:], "\n"), "$ ")
	}
	for _, t := range []note{{"→ Edit ", "Edit"}, {"← Edit ", "Edit"}, {"← Write ", "Write"}, {"→ Write ", "Write"}, {"→ Read ", "Read"}, {"→ List ", "LS"}, {"% WebFetch ", "WebFetch"}, {"✱ Glob ", "Glob"}, {"✱ Grep ", "Grep"}, {"◈ ", "WebSearch"}} {
		if what, ok := strings.CutPrefix(rows[0], t.has); ok {
			return t.why, what
		}
	}
	return "", ""
}
