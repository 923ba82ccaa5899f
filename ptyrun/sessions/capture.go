package sessions

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// Capture says what becomes output of the agent's sessions. The recording has everything.
type Capture string

const (
	Pipe Capture = "pipe" // the agent's answers; the lines of a program that no driver knows
	PTY  Capture = "pty"  // the lines of its terminal; the answers of an agent that has none that stay
	Log  Capture = "log"  // nothing: the session's log has the answers of the turns
)

const (
	captureBudget = 64 << 10 // bytes of lines a minute, and after a text was typed
	maxOutput     = 16 << 10 // bytes in one event
	tailLines     = 10       // captured at the end of a flood
)

// captures says what is captured now:
//
//	       an agent                            a program that no driver knows
//	Pipe   answers                             lines, once that is certain; until then answers
//	PTY    lines; on the alternate screen      lines
//	       and without a terminal, answers
//	Log    nothing                             nothing
func (f *follower) captures() (answers, lines bool) {
	if isPlain, hasLines, ok := f.run.Program(); ok { // else as it was: the last answer may come behind the program's end
		f.hadLines, f.hadProgram = isPlain || f.Capture == PTY && hasLines, true
	}
	if f.Capture == Log || !f.hadProgram {
		return false, false
	}
	return !f.hadLines, f.hadLines
}

// captureWords emits what an agent says in its turn, as it comes.
func (f *follower) captureWords(e *wire.Event) {
	if isCaptured, _ := f.captures(); isCaptured && e.Source == wire.SourceACP {
		f.hasSaid = f.hasSaid || len(aliveOf(f.all)) > 0
		f.emit(e.Text("delta"), e.Seq)
	}
}

// captureAnswer emits the answer of a turn that has ended, if its words were not emitted as they came.
func (f *follower) captureAnswer(e *wire.Event) {
	if isCaptured, _ := f.captures(); !isCaptured || f.hasSaid {
		f.hasSaid = false
		return
	}
	if answer := session.AnswerOf(e); answer != "" {
		f.emit(answer, e.Seq)
	} else {
		f.emit(f.run.NewAnswer(), 0)
	}
}

// emit appends output to the agent's events, for the only session that is alive or else for all. of is the seq of the
// event whose answer, or words, this repeats; 0: none.
func (f *follower) emit(text string, of uint64) {
	alive := aliveOf(f.all)
	if text == "" || len(alive) == 0 {
		return
	}
	var id wire.UUID
	if len(alive) == 1 {
		id = alive[0]
	}
	events, err := session.Events(id, foreign.SessionEvent{Kind: wire.AgentOutput, Stream: "std_out", Content: text})
	if err != nil {
		f.run.Log.Error("appending output", "err", err)
	}
	for _, e := range events {
		if of > 0 {
			e = e.With(session.FieldAnswer, of)
		}
		f.run.Append(e)
	}
}

// HandleTyped keeps the echo of a typed text out of the output, which gets a new budget.
func (f *follower) HandleTyped(text string) {
	f.echo, f.budgetAt = driver.RemoveBlanks(text), time.Time{}
}

// MaxLines wants all lines while a session captures them, and the last ones if that was too much.
func (f *follower) MaxLines() int {
	if _, isCaptured := f.captures(); !isCaptured || len(aliveOf(f.all)) == 0 {
		return 0
	}
	if now := time.Now(); now.Sub(f.budgetAt) >= time.Minute {
		f.budget, f.budgetAt = captureBudget, now
	}
	if f.budget <= 0 {
		return tailLines
	}
	return math.MaxInt
}

// HandleLines emits lines, and says how many were omitted.
func (f *follower) HandleLines(lines []string, omitted uint64) {
	if omitted > 0 {
		f.emit(fmt.Sprintf("… %d lines omitted: asciinema play %s/run/screen.cast", omitted, f.run.Dir), 0)
	}
	text := ""
	for _, line := range lines {
		if f.isEcho(line) {
			continue
		}
		if len(text)+len(line) > maxOutput {
			f.emit(strings.Trim(text, "\n"), 0)
			text = ""
		}
		text += line + "\n"
		f.budget -= len(line) + 1
	}
	f.emit(strings.Trim(text, "\n"), 0)
}

// isEcho reports whether a line echoes the typed text: only the first line with text can.
func (f *follower) isEcho(line string) bool {
	if line == "" || f.echo == "" {
		return false
	}
	echo := f.echo
	f.echo = ""
	return strings.HasSuffix(driver.RemoveBlanks(line), echo)
}
