package driver

import (
	"cmp"
	"regexp"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/screen"
	"github.com/agentteammail/atm/reducer"
)

// How long a reading must hold before the caller acts on it.
const (
	FirstSettle  = time.Second
	Settle       = 500 * time.Millisecond
	DialogSettle = 200 * time.Millisecond
)

// A Reading is the meaning of a screen. The zero Reading means that nothing of the program was seen yet.
//
// At a prompt Activity is Idle, or Limited: then the program would accept a message, but could not work on it until the
// limit ends, of which Detail has the program's words and [LimitEnd] the time.
type Reading struct {
	Activity        reducer.Activity
	Detail          string       // the tool, "permission", "question", "trust", "API retry 4/10", "compacting", the notice of a usage limit
	Failure         string       // the error that ended the last turn, in the program's words; "": none
	MayBeAnswer     bool         // Failure may be an answer that begins like an error: Claude Code draws both alike
	IsRetrying      bool         // it tries again after an error
	Dialog          *Dialog      // nil if there is none
	Draft           string       // the text in the input box, its rows joined by newlines
	HasDraft        bool         //
	Prompt          bool         // a text typed now would be accepted as a message
	BoxRow          int          // the first row of an agent's input box at its prompt
	NotPromptReason control.Gate // why Prompt is false

	// Source is what Activity rests on: what the program declares, its title or its screen. Detail is always the
	// screen's, but for a question of which the screen shows nothing. Declared and Title are what these say, also if
	// another counts more.
	Source   reducer.Source
	Declared screen.Report
	Title    reducer.Activity

	memory memory
}

// memory is what the next reading must know. Only a plain driver uses it.
type memory struct {
	usesPaste bool   // the program has enabled bracketed paste before
	prompt    string // the last prompt that had nothing typed after it
}

// Read interprets a screen. before is the previous reading, at first the zero one: it counts while a synchronized
// update is open or the screen shows nothing known.
func (d *Driver) Read(l Look, before Reading) Reading {
	if l.Modes.Sync {
		before.Prompt, before.NotPromptReason = false, control.GateDrawing
		before.Activity = cmp.Or(before.Activity, reducer.Starting)
		return before
	}
	if d.Plain {
		return d.readPlain(&l, before)
	}
	r := d.tableFor(&l).readAgent(&l, before)
	r.Declared, _ = l.Declared.Program(d.declaresAs)
	r.Title = d.titleActivity(l.Title)
	return r
}

func (d *Driver) readAgent(l *Look, before Reading) Reading {
	box, shows := d.findBox(l), d.shownState(l)
	if q := d.readDialog(l, box, shows.activity); q != nil {
		r := Reading{Activity: reducer.Confirming, Detail: q.Kind, Dialog: q, NotPromptReason: control.GateDialog}
		if q.Kind == "question" {
			r.Activity = reducer.AwaitingInput
		}
		r.Source = reducer.FromScreen
		if shows.activity == reducer.Confirming {
			r.Source = shows.source
		}
		return r
	}
	if shows.activity == reducer.Confirming {
		// The program says that it asks something that cannot be read: nothing may be typed or answered.
		r := Reading{Activity: reducer.Confirming, Detail: "unknown", NotPromptReason: control.GateDialog, Source: shows.source}
		if says, _ := l.Declared.Program(d.declaresAs); says.State == ansi.ProgramStateBlocked {
			r.Detail = cmp.Or(strings.TrimSpace(says.Message), string(says.Kind), r.Detail)
		}
		return r
	}
	if box == nil {
		r := d.readWithoutBox(l, shows.activity, before)
		if r.Source = reducer.FromScreen; r.Activity == reducer.Idle || isWork(r.Activity) {
			r.Source = shows.source
		}
		return r
	}
	r := Reading{Draft: box.draft, HasDraft: box.draft != "" || box.mode != "", BoxRow: box.top, Source: shows.source}
	turn := d.lastTurnAbove(l, box.top)
	isDeclared := shows.source == reducer.FromDeclared // also of sub-agents, for which the title cannot speak
	isWorking := shows.activity == reducer.Thinking && (isDeclared || !turn.isWaiting)
	showsWork := turn.isBusy || box.foot == control.GateBusy
	switch {
	case isWorking || showsWork && !(isDeclared && shows.activity == reducer.Idle):
		r.Activity, r.Detail, r.NotPromptReason = turn.activity, cmp.Or(turn.detail, d.footDetail(l, box)), control.GateBusy
		r.IsRetrying = turn.isRetrying
		if !isWorking {
			r.Source = reducer.FromScreen
		}
		return r
	case d.isStarting(l, box):
		r.Activity, r.NotPromptReason, r.Source = reducer.Starting, control.GateStarting, reducer.FromScreen
		return r
	}
	r.Activity, r.Failure, r.MayBeAnswer = reducer.Idle, turn.failure, turn.mayBeAnswer
	if limit := cmp.Or(d.limitBelow(l, box), turn.limit); limit != "" {
		r.Activity, r.Detail, r.Failure = reducer.Limited, limit, limit
	}
	isBusyInTitle := d.titleActivity(l.Title) == reducer.Thinking && !turn.isWaiting
	switch {
	case showsWork || isBusyInTitle: // what it declares, its title and its screen come one after the other
		r.NotPromptReason = control.GateBusy
	case box.mode != "":
		r.NotPromptReason = box.mode
	case box.foot != "":
		r.NotPromptReason = box.foot
	case r.HasDraft:
		r.NotPromptReason = control.GateDraft
	case !box.hasCursorAtStart(l):
		r.NotPromptReason = control.GateCursor
	}
	r.Prompt = r.NotPromptReason == ""
	return r
}

func isWork(a reducer.Activity) bool {
	return a == reducer.Thinking || a == reducer.Responding || a == reducer.ToolRunning
}

// shown is what the program shows of its state beside the text on its screen.
type shown struct {
	activity reducer.Activity
	source   reducer.Source
}

// shownState returns what the program declares, else what its title shows. A title that asks counts more than another
// declaration, which may be older.
func (d *Driver) shownState(l *Look) shown {
	title := shown{d.titleActivity(l.Title), reducer.FromTitle}
	declared, isDeclared := l.Declared.Program(d.declaresAs)
	switch {
	case title.activity == reducer.Confirming && declared.State != ansi.ProgramStateBlocked:
		return title
	case !isDeclared && title.activity == reducer.Unknown:
		return shown{reducer.Unknown, reducer.FromScreen}
	case !isDeclared:
		return title
	}
	switch declared.State {
	case ansi.ProgramStateBlocked:
		return shown{reducer.Confirming, reducer.FromDeclared}
	case ansi.ProgramStateWorking:
		return shown{reducer.Thinking, reducer.FromDeclared}
	}
	return shown{reducer.Idle, reducer.FromDeclared}
}

// isStarting reports whether the program has drawn its box but does not accept a message yet: Codex does so for
// seconds, and may ask for trust instead.
func (d *Driver) isStarting(l *Look, box *inputBox) bool {
	foot := RemoveBlanks(d.box.startingFoot)
	return foot != "" && blank(l.Title) && l.solidRows(box.bottom+1, len(l.Lines)) == foot
}

// readWithoutBox reads a screen without an input box: at the start, in an overlay, or in the middle of a redraw.
func (d *Driver) readWithoutBox(l *Look, shows reducer.Activity, before Reading) Reading {
	r := Reading{NotPromptReason: control.GateNoPrompt}
	switch {
	case shows == reducer.Thinking:
		turn := d.lastTurnAbove(l, len(l.Lines))
		r.Activity, r.Detail = turn.activity, turn.detail
	case strings.Contains(l.solidFoot(), "Esctocancel"):
		// A dialog whose options are not on the screen: it is too small.
		r.Activity, r.Detail, r.NotPromptReason = reducer.Confirming, "unknown", control.GateDialog
	case before.Activity == "" || before.Activity == reducer.Starting:
		r.Activity = reducer.Starting
	case before.Activity == reducer.Confirming || before.Activity == reducer.AwaitingInput:
		r.Activity = reducer.Unknown // the dialog is gone, and nothing has followed it yet
	case shows == reducer.Idle && before.Activity != reducer.Limited:
		r.Activity = reducer.Idle
	default:
		// An overlay may hide a turn.
		r.Activity, r.Detail = before.Activity, before.Detail
	}
	return r
}

// A rowKind says what a row of the transcript is.
type rowKind int

const (
	otherRow  rowKind = iota
	userRow           // starts a message to the agent
	answerRow         // starts an answer
	textRow           // is part of an answer, and starts one if none is open
	toolRow           // a tool call that has ended
	runsRow           // shows that a tool is running, this one or the one above
	busyRow           // shows an open turn
	retryRow          // shows an open turn after an error
	doneRow           // ends a turn
	waitsRow          // likewise; sub-agents go on in the background
	errorRow          // ends a turn with an error
	limitRow          // ends a turn because of a usage limit
	noteRow           // a note of the program itself
	hintRow           // anything else that is no text of an answer: a hint, a tool's output, a queued message
)

// A rowPattern recognizes rows of one kind. A group names the tool.
type rowPattern struct {
	kind rowKind
	re   *regexp.Regexp
	has  func(l *Look, y int) bool // the style that the row must have too; nil: any
}

var pattern = regexp.MustCompile

// spins are the braille characters of spinners, for a character class.
const spins = `\x{2801}-\x{28ff}`

func (d *Driver) kindOf(l *Look, y int) rowKind {
	kind, _ := d.readRow(l, y)
	return kind
}

// readRow returns a row's kind and the tool that it names. A row of an answer may have any text, also one that the
// program itself writes, so the words of a row never tell it from an answer: its style does.
func (d *Driver) readRow(l *Look, y int) (kind rowKind, tool string) {
	line := l.line(y)
	if blank(line) {
		return otherRow, ""
	}
	for _, p := range d.rows {
		if m := p.re.FindStringSubmatch(line); m != nil && (p.has == nil || p.has(l, y)) {
			return p.kind, strings.Join(m[1:], "")
		}
	}
	return otherRow, ""
}

// A lastTurn is the turn above the input box, from the last message on.
type lastTurn struct {
	isBusy    bool
	activity  reducer.Activity // if it is open
	detail    string
	isWaiting bool // it is over, and only sub-agents work

	isRetrying  bool
	failure     string // the error, if that comes last
	mayBeAnswer bool   // see Reading
	limit       string // the notice of a usage limit, if that comes last
}

// lastTurnAbove reads upwards from row y (exclusive) to the last message.
func (d *Driver) lastTurnAbove(l *Look, y int) (t lastTurn) {
	t.activity = reducer.Thinking
	isLast, isOver := true, false // no row of the turn, or its end, was seen yet
	for y--; y >= 0; y-- {
		switch k := d.kindOf(l, y); k {
		case busyRow, retryRow:
			if isLast && !isOver && !t.isBusy {
				t.isBusy, t.isRetrying = true, k == retryRow
				t.detail = busyDetail(strings.TrimSpace(l.line(y)), t.isRetrying)
			}
		case doneRow, waitsRow:
			t.isWaiting = t.isWaiting || k == waitsRow && isLast && !t.isBusy
			isOver = true
		case runsRow, toolRow, answerRow, textRow, errorRow, limitRow, noteRow:
			switch {
			case !isLast:
			case k == errorRow:
				t.failure, t.mayBeAnswer = d.noticeAt(l, y), d.mayBeAnswer(l, y)
			case k == limitRow:
				t.limit = d.noticeAt(l, y)
			case isOver || t.detail != "":
			case k == answerRow, k == textRow:
				t.activity = reducer.Responding
			case k == runsRow:
				t.activity, t.detail = reducer.ToolRunning, d.runningTool(l, y)
			}
			isLast = false
		case userRow:
			if !d.isQueued(l, y) {
				return t
			}
		}
	}
	return t
}

// noticeAt returns the text of a notice of the program's own, without its mark. Its rows end with a blank row or one of
// another kind.
func (d *Driver) noticeAt(l *Look, y int) string {
	text := strings.TrimLeft(strings.TrimPrefix(l.line(y), d.errorMark), " ●⏺⎿■✕┃")
	isFoot := func(y int) bool { return d.box.shape == flat && d.box.above.MatchString(l.line(y)) }
	for y++; y < len(l.Lines) && !blank(l.line(y)) && d.kindOf(l, y) == otherRow && !isFoot(y); y++ {
		text += " " + strings.Trim(l.line(y), " ┃")
	}
	return strings.TrimSpace(text)
}

// mayBeAnswer reports whether an error in row y may be an answer that begins like one: the end of the turn is below it,
// as the newest Claude Code shows it only after an answer.
func (d *Driver) mayBeAnswer(l *Look, y int) bool {
	if !d.drawsAnswersAsErrors || strings.HasPrefix(strings.TrimSpace(l.line(y)), "⎿") {
		return false
	}
	for y++; y < len(l.Lines) && d.kindOf(l, y) != userRow; y++ {
		if d.kindOf(l, y) == doneRow {
			return true
		}
	}
	return false
}

// footDetail returns what a busy line below the box says beside that.
func (d *Driver) footDetail(l *Look, box *inputBox) string {
	for y := box.bottom + 1; y < len(l.Lines); y++ {
		if d.kindOf(l, y) == retryRow {
			return busyDetail(l.line(y), true)
		}
	}
	return ""
}

// limitBelow returns the notice of a usage limit below the box, where no answer is.
func (d *Driver) limitBelow(l *Look, box *inputBox) string {
	for y := box.bottom + 1; d.limitFoot != "" && y < len(l.Lines); y++ {
		if text := strings.TrimSpace(l.line(y)); strings.HasPrefix(text, d.limitFoot) {
			return strings.TrimLeft(text, "⚠ ")
		}
	}
	return ""
}

// busyDetail returns what a busy line says beside that.
func busyDetail(line string, isRetry bool) string {
	switch {
	case isRetry && limitWords.MatchString(line):
		return "usage limit"
	case isRetry:
		count := append(retryCount.FindStringSubmatch(line), "", "")[1]
		return strings.TrimSpace("API retry " + count)
	case strings.Contains(line, "ompacting"):
		return "compacting"
	}
	return ""
}

var (
	retryCount = regexp.MustCompile(`(?:attempt |Reconnecting(?:\.\.\.|…) )#?([0-9/]+)`) // in the line of a retry
	limitWords = regexp.MustCompile(`(?i)usage limit|usage exceeded`)                    // in such a line
)

// isQueued reports whether the message in row y waits for the end of the turn: it is below the busy line, or a hint
// says so.
func (d *Driver) isQueued(l *Look, y int) bool {
	for next := y + 1; next <= y+12; next++ {
		k := d.kindOf(l, next)
		if k == hintRow && strings.Contains(l.line(next), "Queued ·") {
			return true
		}
		if k != otherRow || blank(l.line(next)) {
			break
		}
	}
	for y--; y >= 0; y-- {
		switch d.kindOf(l, y) {
		case busyRow, retryRow:
			return true
		case otherRow, userRow, hintRow:
		default:
			return false
		}
	}
	return false
}

// runningTool returns the tool that row y shows as running: its name in that row or in the nearest call above it.
func (d *Driver) runningTool(l *Look, y int) string {
	for n := y; n >= 0 && n > y-12; n-- {
		kind, tool := d.readRow(l, n)
		if tool != "" {
			return cmp.Or(d.dialogs.verbs[tool], tool)
		}
		if n < y && kind == userRow {
			break
		}
	}
	return ""
}
