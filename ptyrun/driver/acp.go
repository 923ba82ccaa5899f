package driver

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// front is the driver of package ptyrun/acp, which draws a screen for an agent that speaks the Agent Client Protocol.
// It draws the agent's words indented or after a mark.
var front = Driver{
	Name:          "acp",
	LogsOwnEvents: true,
	interrupt:     "\x03",
	box:           boxStyle{shape: unframed, glyph: FrontPrompt, text: 2, maxBelow: 1},
	rows: []rowPattern{
		{kind: busyRow, re: pattern(`^` + FrontBusy)},
		{kind: toolRow, re: pattern(`^\` + FrontTool)},
		{kind: noteRow, re: pattern(`^` + FrontNote)},
		{kind: answerRow, re: pattern(`^` + FrontSays)},
		{kind: userRow, re: pattern(`^` + FrontPrompt + ` `)},
	},
	dialogs: dialogStyle{isFront: true},
}

// Prefixes of the rows on the front's screen. A dialog is FrontAsks with its kind, the request in the form of
// FrontRequest, a text for people, the options with their kinds, and FrontFoot.
const (
	FrontPrompt = "›"
	FrontSays   = "● "
	FrontTool   = "* "
	FrontNote   = "- "
	FrontBusy   = "… working"
	FrontAsks   = "? "
	FrontFoot   = "  a number answers, Esc ends the turn"
)

// FrontKeys are the keys of the options, in order.
const FrontKeys = "123456789abcdefghijk"

// FrontRequest formats the exact request, for rules: the tool, another name for it or "", a $ before a command, and the
// input. The text is ASCII, so that each character is one cell.
func FrontRequest(tool, alias string, isCommand bool, input string) string {
	mark := ""
	if isCommand {
		mark = " $"
	}
	return fmt.Sprintf("%s|%s%s %s", validName(tool), validName(alias), mark, strconv.QuoteToASCII(input))
}

// validName returns s, or "" if it cannot be a name in FrontRequest.
func validName(s string) string {
	if !frontWord.MatchString(s) {
		return ""
	}
	return s
}

var (
	frontWord    = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)
	frontRequest = regexp.MustCompile(`^([A-Za-z0-9_.-]*)\|([A-Za-z0-9_.-]*)( \$)? ("(?:[^"\\]|\\.)*")( *)`)
	frontOption  = regexp.MustCompile(`^(.*) \((allow_once|allow_always|reject_once|reject_always|choice)\)$`)
)

// readFrontDialog reads a dialog of the front.
func (d *Driver) readFrontDialog(l *Look, f layout) *Dialog {
	kind, ok := strings.CutPrefix(l.line(f.first-1), FrontAsks)
	q := &Dialog{Kind: "unknown", Options: f.options}
	if ok && (kind == "permission" || kind == "question") {
		q.Kind, q.cancel = kind, escape
		f.first += l.readFrontRequest(q, f.first, f.top)
	}
	q.Prompt = cmp.Or(strings.Join(textRows(l, f.first, f.top), "\n"), q.Input)
	for i := range q.Options {
		o := &q.Options[i]
		if n, _ := strconv.Atoi(o.ID); n <= len(FrontKeys) {
			o.Keys = FrontKeys[n-1 : n]
		}
		o.Kind = ""
		if m := frontOption.FindStringSubmatch(o.Label); m != nil {
			o.Label, o.Kind = m[1], strings.TrimPrefix(m[2], "choice")
		}
	}
	q.Fingerprint = d.fingerprint(q)
	return q
}

// readFrontRequest reads a FrontRequest from the rows at y, each as wide as the screen, and returns their number, or 0
// if there is none.
func (l *Look) readFrontRequest(q *Dialog, y, end int) int {
	text := ""
	for rows := 0; rows < end-y; {
		text += skipRunes(l.row(y+rows).text(keepAll), 2) // with trailing blanks
		rows++
		m := frontRequest.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		input, err := strconv.Unquote(m[4])
		if err != nil || len(m[0]) != len(text) {
			break
		}
		q.Tool, q.Alias, q.IsCommand, q.Input = m[1], m[2], m[3] != "", input
		return rows
	}
	return 0
}
