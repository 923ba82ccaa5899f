package driver

import (
	"cmp"
	"regexp"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/screen"
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
type Reading struct {
	Activity        reducer.Activity
	Detail          string        // the kind of what it asks, or the command that a shell runs
	Dialog          *ask.Question // nil if there is none, or it cannot be read
	Draft           string        // the text in the input box, its rows joined by newlines
	Prompt          bool          // a text typed now would be accepted as a message
	NotPromptReason control.Gate  // why Prompt is false
	Declared        screen.Report // what the program says outright that it does

	usesPaste bool   // a shell has enabled bracketed paste before, which it disables while a command runs
	prompt    string // of a shell or REPL, when nothing was behind it last; "": none was seen
}

// Read interprets a screen. before is the previous reading, at first the zero one: it counts while a synchronized
// update is open.
func (d *Driver) Read(l Look, before Reading) Reading {
	if l.Modes.Sync {
		before.Prompt, before.NotPromptReason = false, control.GateDrawing
		before.Activity = cmp.Or(before.Activity, reducer.Starting)
		return before
	}
	r := d.readScreen(&l, before)
	r.usesPaste = before.usesPaste || l.Modes.Paste && !l.Modes.Alt
	if d.Plain && r.usesPaste && !l.Modes.Paste && r.Dialog == nil {
		r = Reading{Activity: reducer.ToolRunning, Detail: l.Foreground, NotPromptReason: control.GateCommand, usesPaste: true}
	}
	if r.prompt = before.prompt; r.Prompt {
		r.prompt = l.typedRow()
	}
	r.Declared = d.declared(&l)
	switch a, detail := declaredActivity(r.Declared); {
	case a == "" || r.Dialog != nil:
	case a == reducer.Idle:
		r.Activity = a
	case a == reducer.Thinking:
		r.Activity, r.Prompt, r.NotPromptReason = a, false, control.GateBusy
	case a == reducer.Confirming:
		r.Activity, r.Detail, r.Prompt, r.NotPromptReason = a, detail, false, control.GateDialog
	}
	if d.Unknown {
		r.NotPromptReason = control.GateUnknown
	}
	if !d.Unknown && r.Activity == reducer.Unknown && (before.Activity == "" || before.Activity == reducer.Starting) {
		r.Activity = reducer.Starting
	}
	return r
}

// readScreen reads a screen. Of a shell or REPL it goes by the prompt that was known before: what looks like the rest of a
// command, as ">" of node and of a shell, is its first prompt; one that shows no prompt any more works; and without line
// editing, which tells when it reads a command, a prompt with another sign is the rest of a command, or what that asks.
func (d *Driver) readScreen(l *Look, before Reading) Reading {
	s := &d.file.Screen
	draft, isPrompt := d.draftOn(l)
	known, isEdited := before.prompt, before.usesPaste || l.Modes.Paste
	if d.Plain && known != "" && !isEdited && sign(l.promptOf(draft)) != sign(known) {
		isPrompt = false
	}
	switch q, asks := d.asksOn(l); {
	case d.Unknown:
		return Reading{Activity: reducer.Unknown, NotPromptReason: control.GateUnknown}
	case d.Plain && l.Modes.Alt:
		return Reading{Activity: reducer.ToolRunning, Detail: l.Foreground, NotPromptReason: control.GateFullScreen}
	case asks:
		r := Reading{Activity: reducer.Confirming, Detail: unknown, Dialog: q, NotPromptReason: control.GateDialog}
		if q != nil {
			r.Detail = q.Dialog
		}
		if r.Detail == "question" {
			r.Activity = reducer.AwaitingInput
		}
		return r
	case d.Plain && l.Foreground != "":
		return Reading{Activity: reducer.ToolRunning, Detail: l.Foreground, NotPromptReason: control.GateCommand}
	case d.shows(l, &s.Busy) && (!d.Plain || known != "" && !strings.HasPrefix(l.typedRow(), known)):
		return Reading{Activity: reducer.Thinking, Draft: draft, NotPromptReason: control.GateBusy}
	case !isPrompt && known != "":
		return Reading{Activity: reducer.Thinking, NotPromptReason: control.GateNoPrompt}
	case !isPrompt:
		return Reading{Activity: reducer.Unknown, NotPromptReason: control.GateNoPrompt}
	case draft != "":
		return Reading{Activity: reducer.Idle, Draft: draft, NotPromptReason: control.GateDraft}
	}
	return Reading{Activity: reducer.Idle, Prompt: true}
}

// promptOf returns what is before a draft in the row in which it is typed.
func (l *Look) promptOf(draft string) string {
	return strings.TrimSuffix(strings.TrimRight(l.typedRow(), " "), draft)
}

// sign returns the signs that a prompt ends in: "$", ">>>", "=#".
func sign(prompt string) string {
	prompt = strings.TrimRight(prompt, " ")
	return prompt[len(strings.TrimRight(prompt, "=-$#%❯»›>.)➜λ")):]
}

// draftOn returns what is in the input box, and whether the screen shows one.
func (d *Driver) draftOn(l *Look) (draft string, ok bool) {
	a := &d.file.Screen.Prompt
	g := d.regionOf(l, a)
	m := g.find(a)
	if m == nil {
		return "", false
	}
	i := 2 * a.Pattern.SubexpIndex("draft")
	if m[i] < 0 {
		return "", true
	}
	var rows []string
	for from := m[i]; ; {
		y, start := g.rowAt(from)
		end := m[i+1]
		if n := strings.IndexByte(g.text[from:m[i+1]], '\n'); n >= 0 {
			end = from + n
		}
		if d.Plain {
			return strings.TrimSpace(g.text[m[i]:m[i+1]]), true
		}
		rows = append(rows, strings.TrimSpace(frame.ReplaceAllString(l.brightPart(y, from-start, end-start), "")))
		if end == m[i+1] {
			break
		}
		from = end + 1
	}
	return strings.Trim(strings.Join(rows, "\n"), "\n"), true
}

// frame matches the sides of a frame around a row.
var frame = regexp.MustCompile(`^ *[│┃|] ?|[ \x{200b}]*[│┃|]? *$`)

// declared returns what the program says outright of its state: by the name that its file says, else, if nobody has described
// it, by any.
func (d *Driver) declared(l *Look) (says screen.Report) {
	if name := d.file.Screen.DeclaresAs; name != "" || !d.Unknown {
		says, _ = l.Declared.Program(name)
		return says
	}
	for _, report := range l.Declared {
		if says, ok := l.Declared.Program(report.App); ok {
			return says
		}
	}
	return says
}

// declaredActivity returns what a declared state means, with its words; "": nothing is declared.
func declaredActivity(says screen.Report) (a reducer.Activity, detail string) {
	switch says.State {
	case "":
		return "", ""
	case ansi.ProgramStateBlocked:
		return reducer.Confirming, cmp.Or(strings.TrimSpace(says.Message), string(says.Kind), unknown)
	case ansi.ProgramStateWorking:
		return reducer.Thinking, ""
	}
	return reducer.Idle, ""
}
