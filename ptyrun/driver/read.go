package driver

import (
	"cmp"
	"strings"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/driver/agents"
	"github.com/agentteammail/atm/ptyrun/screen"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
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
// limit ends, of which Detail has the program's words and [agents.LimitEnd] the time.
type Reading struct {
	Activity        reducer.Activity
	Detail          string        // the tool, "permission", "question", "trust", "API retry 4/10", "compacting", the notice of a usage limit
	Failure         string        // the error that ended the last turn, in the program's words; "": none
	MayBeAnswer     bool          // Failure may be an answer that begins like an error: Claude Code draws both alike
	IsRetrying      bool          // it tries again after an error
	Dialog          *ask.Question // nil if there is none
	Draft           string        // the text in the input box, its rows joined by newlines
	HasDraft        bool          //
	Prompt          bool          // a text typed now would be accepted as a message
	NotPromptReason control.Gate  // why Prompt is false

	// Source is what Activity rests on: what the program declares, its title, its progress bar or its screen. Detail is
	// always the screen's, but for a question of which the screen shows nothing. Declared, Title and Progress are what
	// these say, also if another counts more.
	Source   reducer.Source
	Declared screen.Report
	Title    reducer.Activity
	Progress reducer.Activity

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
	switch {
	case d.Unknown:
		return d.readUnknown(&l)
	case d.Plain:
		return d.readPlain(&l, before)
	}
	r := d.lookFor(&l).readAgent(&l, before)
	r.Declared, _ = l.Declared.Program(d.screen.DeclaresAs)
	r.Title, r.Progress = d.titleActivity(&l), d.progressActivity(&l)
	return r
}

func (d *Driver) readAgent(l *Look, before Reading) Reading {
	box, shows := d.findBox(l), d.shownState(l)
	if q := d.readDialog(l, box, shows.activity); q != nil {
		r := Reading{Activity: reducer.Confirming, Detail: q.Dialog, Dialog: q, NotPromptReason: control.GateDialog}
		if q.Dialog == "question" {
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
		if says, _ := l.Declared.Program(d.screen.DeclaresAs); says.State == ansi.ProgramStateBlocked {
			r.Detail = cmp.Or(strings.TrimSpace(says.Message), string(says.Kind), r.Detail)
		}
		return r
	}
	if box == nil {
		r := d.readWithoutBox(l, shows.activity, before)
		if r.Source = reducer.FromScreen; r.Activity == reducer.Idle || r.Activity.IsWork() {
			r.Source = shows.source
		}
		return r
	}
	r := Reading{Draft: box.draft, HasDraft: box.draft != "" || box.mode != "", Source: shows.source}
	turn := d.lastTurnAbove(l, box.first)              // its upper edge may say what goes on
	isDeclared := shows.source == reducer.FromDeclared // also of sub-agents, for which the title cannot speak
	isWorking := shows.activity == reducer.Thinking && (isDeclared || !turn.isWaiting)
	showsWork := turn.isBusy || box.foot == control.GateBusy
	switch {
	case isWorking || showsWork && !(isDeclared && shows.activity == reducer.Idle):
		r.Activity, r.Detail, r.NotPromptReason = turn.activity, cmp.Or(turn.detail, d.detailBelow(l, box)), control.GateBusy
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
	limit := turn.limit
	if box.foot == control.GateLimit {
		limit = withoutMark(box.notice)
	}
	if limit != "" {
		r.Activity, r.Detail, r.Failure = reducer.Limited, limit, limit
	}
	isBusyAround := d.shownAround(l).activity == reducer.Thinking && !turn.isWaiting
	switch {
	case showsWork || isBusyAround: // what it declares, its title and its screen come one after the other
		r.NotPromptReason = control.GateBusy
	case box.mode != "":
		r.NotPromptReason = box.mode
	case box.foot != "":
		r.NotPromptReason = box.foot
	case r.HasDraft:
		r.NotPromptReason = control.GateDraft
	case !d.hasCursorAtStart(l, box):
		r.NotPromptReason = control.GateCursor
	}
	r.Prompt = r.NotPromptReason == ""
	return r
}

// shown is what the program shows of its state beside the text on its screen.
type shown struct {
	activity reducer.Activity
	source   reducer.Source
}

// shownAround returns what the title and the progress bar show. Of the two, one that asks counts most, then one that
// works.
func (d *Driver) shownAround(l *Look) shown {
	title, progress := shown{d.titleActivity(l), reducer.FromTitle}, shown{d.progressActivity(l), reducer.FromProgress}
	for _, a := range []reducer.Activity{reducer.Confirming, reducer.Thinking, reducer.Idle} {
		if a == reducer.Thinking && l.IsStill {
			continue
		}
		switch a {
		case title.activity:
			return title
		case progress.activity:
			return progress
		}
	}
	return shown{reducer.Unknown, reducer.FromScreen}
}

// shownState returns what the program declares, else what its title or its progress bar shows. One of these that asks
// counts more than another declaration, which may be older.
func (d *Driver) shownState(l *Look) shown {
	around := d.shownAround(l)
	declared, isDeclared := l.Declared.Program(d.screen.DeclaresAs)
	asksAround := around.activity == reducer.Confirming && declared.State != ansi.ProgramStateBlocked
	if asksAround || !isDeclared {
		return around
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
	foot := RemoveBlanks(d.screen.Box.Starting)
	return foot != "" && blank(l.Title) && l.solidRows(box.bottom+1, len(l.Lines)) == foot
}

// readWithoutBox reads a screen without an input box: at the start, in an overlay, or in the middle of a redraw.
func (d *Driver) readWithoutBox(l *Look, shows reducer.Activity, before Reading) Reading {
	r := Reading{NotPromptReason: control.GateNoPrompt}
	turn := d.lastTurnAbove(l, len(l.Lines))
	switch {
	case shows == reducer.Thinking || turn.isBusy && d.endsBusy(l):
		r.Activity, r.Detail, r.IsRetrying = turn.activity, turn.detail, turn.isRetrying
	case strings.Contains(l.solidFoot(), "Esctocancel"):
		// A dialog whose options are not on the screen: it is too small.
		r.Activity, r.Detail, r.NotPromptReason = reducer.Confirming, "unknown", control.GateDialog
	case d.screen.Box.Text == nil:
		r.Activity = reducer.Unknown
	case before.Activity == "" || before.Activity == reducer.Starting:
		r.Activity = reducer.Starting
	case before.Activity == reducer.Limited:
		r.Activity, r.Detail = before.Activity, before.Detail
	case shows == reducer.Idle && before.Activity != reducer.Confirming && before.Activity != reducer.AwaitingInput:
		r.Activity = reducer.Idle
	default:
		r.Activity = reducer.Unknown // what it shows may be a question that its file does not describe
	}
	return r
}

// endsBusy reports whether the last row says that a turn is open: a row further up may be in a list.
func (d *Driver) endsBusy(l *Look) bool {
	y := len(l.Lines) - 1
	for y > 0 && blank(l.line(y)) {
		y--
	}
	k := d.kindOf(l, y)
	return k == agents.BusyRow || k == agents.RetryRow
}

// ruleOf returns the rule that says what row y is; nil: there is none. A row of an answer may have any text, also one that
// the program itself writes, so the words of a row never tell it from an answer: its style does.
func (d *Driver) ruleOf(l *Look, y int) *agents.Row {
	line := l.line(y)
	if blank(line) {
		return nil
	}
	for i := range d.screen.Rows {
		if r := &d.screen.Rows[i]; l.holds(&r.Condition, y) {
			l.note("rows", r.Kind, r.Line, y, "")
			return r
		}
	}
	return nil
}

const otherRow = "" // no rule says what it is

func (d *Driver) kindOf(l *Look, y int) string {
	if r := d.ruleOf(l, y); r != nil {
		return r.Kind
	}
	return otherRow
}

// groupsOf returns what the groups of a rule's pattern match in row y: the name of a tool, or how many retries there were.
func (l *Look) groupsOf(r *agents.Row, y int) string {
	return strings.Join(r.Pattern.FindStringSubmatch(l.line(y))[1:], "")
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
		rule := d.ruleOf(l, y)
		if rule == nil {
			continue
		}
		switch k := rule.Kind; k {
		case agents.BusyRow, agents.RetryRow:
			if isLast && !isOver && !t.isBusy {
				t.isBusy, t.isRetrying = true, k == agents.RetryRow
				t.detail = l.busyDetail(rule, y)
			}
		case agents.DoneRow, agents.WaitsRow:
			t.isWaiting = t.isWaiting || k == agents.WaitsRow && isLast && !t.isBusy
			isOver = true
		case agents.RunningRow, agents.ToolRow, agents.AnswerRow, agents.TextRow, agents.ErrorRow, agents.LimitRow, agents.NoteRow:
			switch {
			case !isLast:
			case k == agents.ErrorRow:
				t.failure, t.mayBeAnswer = d.noticeAt(l, rule, y), d.mayBeAnswer(l, rule, y)
			case k == agents.LimitRow:
				t.limit = d.noticeAt(l, rule, y)
			case isOver || t.detail != "":
			case k == agents.AnswerRow, k == agents.TextRow:
				t.activity = reducer.Responding
			case k == agents.RunningRow:
				t.activity, t.detail = reducer.ToolRunning, d.runningTool(l, y)
			}
			isLast = false
		case agents.MessageRow:
			if !d.isQueued(l, y) {
				return t
			}
		}
	}
	return t
}

// noticeAt returns the text of a notice of the program's own, without its mark. Its rows end with a blank row or one of
// another kind.
func (d *Driver) noticeAt(l *Look, rule *agents.Row, y int) string {
	text := withoutMark(strings.TrimPrefix(l.line(y), rule.Prefix))
	above := d.screen.Box.Top
	isFoot := func(y int) bool { return above != nil && above.MatchString(l.line(y)) }
	for y++; y < len(l.Lines) && !blank(l.line(y)) && d.kindOf(l, y) == otherRow && !isFoot(y); y++ {
		text += " " + strings.Trim(l.line(y), " ┃")
	}
	return strings.TrimSpace(text)
}

// withoutMark returns a notice without the symbol before it.
func withoutMark(s string) string {
	return strings.TrimLeftFunc(s, func(c rune) bool { return c == ' ' || unicode.Is(unicode.So, c) })
}

// mayBeAnswer reports whether an error in row y may be an answer that begins like one: the end of the turn is below it,
// which is shown only after an answer.
func (d *Driver) mayBeAnswer(l *Look, rule *agents.Row, y int) bool {
	if !rule.MayAnswer {
		return false
	}
	for y++; y < len(l.Lines); y++ {
		switch d.kindOf(l, y) {
		case agents.DoneRow:
			return true
		case agents.MessageRow:
			return false
		}
	}
	return false
}

// detailBelow returns what a row about a retry below the box says beside that.
func (d *Driver) detailBelow(l *Look, box *inputBox) string {
	for y := box.bottom + 1; y < len(l.Lines); y++ {
		if r := d.ruleOf(l, y); r != nil && r.Kind == agents.RetryRow {
			return l.busyDetail(r, y)
		}
	}
	return ""
}

// busyDetail returns what a row about an open turn says beside that.
func (l *Look) busyDetail(rule *agents.Row, y int) string {
	if rule.Detail != "" || rule.Kind != agents.RetryRow {
		return rule.Detail
	}
	return strings.TrimSpace("API retry " + l.groupsOf(rule, y))
}

// isQueued reports whether the message in row y waits for the end of the turn: it is below the busy line, or a row below
// it says so.
func (d *Driver) isQueued(l *Look, y int) bool {
	for next := y + 1; next <= y+12; next++ {
		k := d.kindOf(l, next)
		if k == agents.QueuedRow {
			return true
		}
		if k != otherRow || blank(l.line(next)) {
			break
		}
	}
	for y--; y >= 0; y-- {
		switch d.kindOf(l, y) {
		case agents.BusyRow, agents.RetryRow:
			return true
		case otherRow, agents.MessageRow, agents.HintRow, agents.QueuedRow:
		default:
			return false
		}
	}
	return false
}

// runningTool returns the tool that row y shows as running: its name in that row or in the nearest call above it.
func (d *Driver) runningTool(l *Look, y int) string {
	for n := y; n >= 0 && n > y-12; n-- {
		r := d.ruleOf(l, n)
		if r == nil {
			continue
		}
		if tool := l.groupsOf(r, n); tool != "" {
			return cmp.Or(d.screen.Tools[tool], tool)
		}
		if n < y && r.Kind == agents.MessageRow {
			break
		}
	}
	return ""
}
