package driver

import (
	"slices"
	"strings"
)

// Response returns the answer to prompt in a transcript, the rows of scrollback and screen, or "". For an agent that is
// its text after the last message that starts like prompt, without tools, spinners and boxes; for a plain program it is
// the rows between the command and the next prompt. isCut means that earlier rows are lost. If the prompt is among
// them, Response returns the rest of the answer after a line "…".
func (d *Driver) Response(lines []string, prompt string, isCut bool) string {
	l := Look{CursorX: -1, CursorY: len(lines) - 1}
	for _, line := range lines {
		l.Lines = append(l.Lines, strings.TrimRight(strings.ReplaceAll(line, "\u00a0", " "), " "))
	}
	if d.Plain {
		return plainResponse(l.Lines, prompt, isCut)
	}
	l.Lines = l.Lines[:d.boxRow(&l)]
	var parts []string
	isInAnswer := false
	first := d.rowAfterMessage(&l, prompt)
	if isCut && first == 0 {
		parts, isInAnswer = []string{cutMark}, true
	}
	for y := first; y < len(l.Lines); y++ {
		line := l.line(y)
		k := d.kindOf(line)
		isStart := k == answerRow && !(isInAnswer && d.box.shape == barred)
		isRest := isInAnswer && (k == answerRow || k == otherRow && isIndentedText(line))
		switch {
		case isStart:
			parts = append(parts, d.answerText(line))
		case isRest:
			parts[len(parts)-1] += "\n" + d.answerText(line)
		}
		isInAnswer = isStart || isRest
	}
	for i := range parts {
		parts[i] = strings.Trim(parts[i], "\n")
	}
	if answer := strings.Join(slices.DeleteFunc(parts, blank), "\n\n"); answer != cutMark {
		return answer
	}
	return ""
}

// isIndentedText reports whether a row may continue an answer: it is blank, or indented and no note.
func isIndentedText(line string) bool {
	return blank(line) || margin(line) >= 2 && !startsAny(strings.TrimSpace(line), notes)
}

// notes are the starts of what Claude Code and Codex draw right below an answer.
var notes = []string{"⎿", "└ Tip: "}

// boxRow returns the first row of the input box, below the transcript.
func (d *Driver) boxRow(l *Look) int {
	if d.box.shape != unframed {
		if p := d.findBox(l); p != nil {
			return max(0, p.top)
		}
		return len(l.Lines)
	}
	for y := range slices.Backward(l.Lines) { // the last row with the glyph of the box
		if _, ok := d.glyphAt(l.line(y)); ok {
			return y
		}
	}
	return len(l.Lines)
}

// cutMark is the first line of an answer whose start is lost.
const cutMark = "…"

// ClipResponse limits an answer to so many bytes. It replaces the start of a longer one with a line "…".
func ClipResponse(answer string, limit int) string {
	if answer = strings.ToValidUTF8(answer, "\uFFFD"); len(answer) <= limit {
		return answer
	}
	mark := cutMark + "\n"
	return mark + strings.ToValidUTF8(answer[min(len(answer)-limit+len(mark), len(answer)):], "")
}

// answerText returns the text of an answer's row without mark or indent.
func (d *Driver) answerText(line string) string {
	if d.box.shape == barred {
		return skipRunes(line, min(5, margin(line)))
	}
	return skipRunes(line, min(2, max(margin(line), margin(skipRunes(line, 1))+1)))
}

// rowAfterMessage returns the row after the last message that starts like prompt, or if there is none, after the last
// message.
func (d *Driver) rowAfterMessage(l *Look, prompt string) int {
	want := firstRunes(RemoveBlanks(prompt), matchLength)
	last := -1
	for y, isQueued := range d.messagesAbove(l, len(l.Lines)) {
		if isQueued {
			continue
		}
		if last < 0 {
			last = y
		}
		if strings.HasPrefix(d.messageText(l, y), want) {
			last = y
			break
		}
	}
	last++
	for last > 0 && d.kindOf(l.line(last)) == otherRow && !blank(l.line(last)) && !isRule(l.line(last), "▀") {
		last++ // the rest of a message of several rows
	}
	return last
}

// plainResponse returns the rows between the command, after a prompt, and the last row, which is the next prompt.
func plainResponse(lines []string, prompt string, isCut bool) string {
	for len(lines) > 0 && blank(lines[len(lines)-1]) {
		lines = lines[:len(lines)-1]
	}
	command := strings.Split(strings.Trim(prompt, "\n"), "\n")
	want := RemoveBlanks(command[0])
	if len(lines) < 2 || want == "" {
		return ""
	}
	last := len(lines) - 1
	next := RemoveBlanks(lines[last])
	for y := last - 1; y >= 0; y-- {
		text := ""
		for end := y + 1; end <= last && len(text) <= len(want)+120; end++ { // the command may be wrapped
			text += RemoveBlanks(lines[end-1])
			before, ok := strings.CutSuffix(text, want)
			if !ok || before != next && somePrompt.FindString(before+" ") != before+" " {
				continue
			}
			for _, more := range command[1:] {
				if end < last && strings.HasSuffix(RemoveBlanks(lines[end]), RemoveBlanks(more)) {
					end++
				}
			}
			return strings.Trim(strings.Join(lines[end:last], "\n"), "\n")
		}
	}
	if isCut {
		return cutMark + "\n" + strings.Trim(strings.Join(lines[:last], "\n"), "\n")
	}
	return ""
}
