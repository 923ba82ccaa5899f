// Package terminal is an agent on a PTY. It is read from its screen, which a driver understands, and told by typing, which
// happens nowhere else: a text is typed only where nothing else is in the way, sent off only if it is all that the draft
// shows, and taken back or said to be unsure if that was in vain. A turn, its end and its answer are what the screen shows.
//
//	terminal    its output, its keys, what viewers see
//	detect      what the screen shows, and what of that is reported
//	turn        the turns that are made of that
//	gate        whether something may be typed now
//	typing      how a text is typed, sent off and seen to be accepted; the keys of people meanwhile
//	draft       what of ours is left in the draft
//	request     what somebody types through the socket
//	keys        the bytes of a text
package terminal

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/internal/driver"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/screen"
	"github.com/agentteammail/atm/ptyrun/internal/loop"
	"github.com/agentteammail/atm/ptyrun/internal/run"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
)

// A Terminal is an agent on a PTY: what it says is read from its screen by a driver, and it is told by typing.
type Terminal struct {
	r *run.Run
	o Options
	*process.Child
	output   *loop.Feed[[]byte] // what it writes
	input    chan write
	emulator *screen.Screen
	driver   *driver.Driver

	screenState
	given      *run.Text // the last text that it was given; nil: none
	typing     *typing   // what was typed of that
	heldKeys   []byte    // of people, while a text is being typed
	turn       turn
	detail     string    // of the last activity that its screen has reported
	clearedAt  time.Time // when its draft was
	keyVersion uint64    // the screen's at the last key of a text of ours
	isReady    bool      // it has once been at its prompt for Timing.FirstIdle
	leftover   *leftover // nil: none is expected
	hasExcess  bool      // it has declared more than is kept, which was reported
}

// Options say what runs on a terminal, and who is told of what.
type Options struct {
	Command process.Command
	Driver  *driver.Driver

	Output     func(written []byte)   // is called with what it has written and drawn
	Withheld   func(*run.Text) string // says why a text may not be sent off any more
	UsesPrompt func() bool            // a text is about to be given at the prompt, so that a draft is not a person's
}

// screenState is what a program's screen has shown.
type screenState struct {
	reading      driver.Reading // what the driver last read from the screen
	readingSince time.Time      // when its activity, detail or dialog last changed
	promptSince  time.Time      // zero: no prompt to type into
	readVersion  uint64         // the screen's version when it was read
	outputAt     time.Time      // when the program last wrote
	frameSince   time.Time      // when an open frame began; zero: none is open
	nextRead     time.Time      // zero: no output since the last read
}

// Start starts a program on a PTY.
func Start(r *run.Run, o Options) (*Terminal, error) {
	c, err := process.Start(o.Command)
	if err != nil {
		return nil, err
	}
	now := r.Now()
	p := &Terminal{
		r: r, o: o, Child: c, output: loop.NewFeed[[]byte](maxPieces), input: make(chan write, maxWrites),
		emulator: screen.New(o.Command.Cols, o.Command.Rows, screen.Scrollback), driver: o.Driver,
	}
	p.reading = driver.Reading{Activity: reducer.Starting, NotPromptReason: control.GateStarting}
	if p.driver.Unknown { // also if it never draws anything
		p.reading.Activity, p.reading.NotPromptReason = reducer.Unknown, control.GateUnknown
	}
	p.readingSince, p.outputAt = now, now
	r.Go(p.readOutput)
	r.Go(func() { writeInput(c, p.input) })
	return p, nil
}

// Of returns the terminal of the agent that runs now; nil: there is none.
func Of(r *run.Run) *Terminal {
	t, _ := r.Agent.(*Terminal)
	return t
}

// maxPieces is how many pieces of output may be queued for the loop, which draws them all before it does anything else.
// A piece is 4 KiB on Linux, and drawing one may take 20 ms. With one piece others are heard between two.
const maxPieces = 1

// readOutput reads what the program writes. While the loop has not drawn it the program blocks, as on a slow terminal.
func (p *Terminal) readOutput() {
	buf := make([]byte, 32<<10)
	for {
		n, err := p.Child.Read(buf)
		if err != nil {
			break
		}
		p.output.Send(bytes.Clone(buf[:n]))
	}
	p.output.End()
}

// Woken receives when the program has written something.
func (p *Terminal) Woken() <-chan struct{} { return p.output.Woken() }

// Take draws what the program has written.
func (p *Terminal) Take() {
	var written []byte
	p.output.Take(func(piece []byte) { written = append(written, piece...) })
	if len(written) > 0 {
		p.draw(written)
	}
}

// frameEnd ends a synchronized frame.
var frameEnd = []byte("\x1b[?2026l")

func (p *Terminal) draw(written []byte) {
	r := p.r
	r.Recording.Output(written) // first: a new file of it begins with what was drawn before
	for rest := written; len(rest) > 0; {
		n, isFrame := len(rest), false
		if i := bytes.Index(rest, frameEnd); i >= 0 && r.Questions.IsGiven() {
			n, isFrame = i+len(frameEnd), true
		}
		p.emulator.Write(rest[:n])
		rest = rest[n:]
		if isFrame {
			p.readFrame()
		}
	}
	if replies := p.emulator.Replies(); len(replies) > 0 {
		p.sendKeys(replies)
	}
	p.o.Output(written)
	p.scheduleRead(r.Now())
}

// Step draws what the program has written, and does what is due.
func (p *Terminal) Step(now time.Time) {
	p.Take()
	p.stepScreen(now)
	p.stepDraft(now)
}

// HasLast returns what has happened at last to the text that it was given: perhaps that ended the program, and must not be
// typed again.
func (p *Terminal) HasLast() (e delivery.Event, why string) {
	if p.isSubmitted() && p.driver.HasAccepted(p.look(), p.typing.draft) {
		return p.accepted(p.given)
	}
	return "", ""
}

// Ended is called when its process has ended, and all that it wrote was drawn.
func (p *Terminal) Ended() {
	close(p.input)
}

// State returns what the screen shows of the agent.
func (p *Terminal) State() run.AgentState {
	rd := &p.reading
	s := run.AgentState{
		Driver: p.driver.Name, Reader: p.driver, Activity: rd.Activity, Detail: rd.Detail, Ways: p.ways(), IsPlain: p.driver.Plain,
		TakesText: p.takesText(), IsReady: p.isReady, HasDraft: rd.Draft != "", IsAsking: p.isAsking(), IsDialog: rd.Dialog != nil, IsOurs: p.turn.isOurs,
	}
	if rd.Dialog != nil {
		s.Detail = rd.Dialog.Dialog
	}
	return s
}

func (p *Terminal) ways() control.Ways {
	ways := control.Ways{Prompt: "typed", Interrupt: "keys", Answer: "keys"}
	if p.driver.Plain {
		ways.Answer = ""
	}
	if p.driver.Unknown {
		ways.Prompt = ""
	}
	if p.r.State.Tells() {
		ways.Steer = "hooks"
	}
	return ways
}

// isSilent reports whether it has written nothing since the last key of a text of ours. It may not have read that yet.
func (p *Terminal) isSilent() bool { return p.emulator.Version() == p.keyVersion }

// Repaint draws the screen, and that many lines above it, on an empty terminal.
func (p *Terminal) Repaint(lines int) []byte { return p.emulator.Repaint(lines) }

// Tail returns the last lines as text.
func (p *Terminal) Tail(lines int) []string { return p.emulator.Tail(lines) }

// Clear takes away the progress bar.
func (p *Terminal) Clear() []byte {
	if bar := p.emulator.Progress(); bar != "" && bar != screen.NoProgress { // older iTerm2 takes the end of none for a notification
		return []byte(screen.ClearProgress)
	}
	return nil
}

// Leave leaves the cursor below the text. A program that exits by itself in the alternate screen did not mean to: its
// last lines are shown on the main screen.
func (p *Terminal) Leave() []byte {
	s := p.emulator
	switch {
	case s.Modes().Alt && !p.r.IsStopping:
		return append(p.Clear(), "\x1b[m\x1b[?1049l\x1b[999;1H\r\n"+strings.Join(append(s.Tail(10), ""), "\r\n")...)
	case !s.Modes().Alt:
		return fmt.Appendf(p.Clear(), "\x1b[%d;1H\r\n\x1b[0J", lastWithText(s)+1)
	}
	return p.Clear()
}

// lastWithText returns the last visible row with text; -1: there is none.
func lastWithText(s *screen.Screen) int {
	_, y := s.Size()
	for y--; y >= 0 && s.Line(y) == ""; y-- {
	}
	return y
}

// Show returns what the screen shows.
func (p *Terminal) Show(req control.ScreenRequest) control.Screen {
	s := p.emulator
	out := control.Screen{Title: s.Title(), Lines: s.Lines(), State: string(p.reading.Activity), Detail: p.reading.Detail}
	out.CursorX, out.CursorY = s.Cursor()
	if req.Last > 0 {
		out.Lines = s.Tail(req.Last)
	}
	if req.ANSI {
		out.ANSI = s.ANSI(req.Last)
	}
	return out
}

// Resize gives the terminal another size.
func (p *Terminal) Resize(to control.Size) {
	p.Take()
	before := p.emulator.Version()
	p.emulator.Resize(to.Cols, to.Rows)
	if p.keyVersion == before { // the new version is not output of the program
		p.keyVersion = p.emulator.Version()
	}
	p.Child.Resize(to.Cols, to.Rows)
	p.scheduleRead(p.r.Now())
}

// write is something to type. done gets the number of bytes written.
type write struct {
	data []byte
	done func(n int, err error)
}

const (
	maxWrites    = 2048 // queued for a program that does not read
	writeTimeout = 2 * time.Second
)

// suspendKey is Ctrl-Z, also as a sequence of the kitty protocol or xterm's modifyOtherKeys.
var suspendKey = regexp.MustCompile(`\x1a|\x1b\[122[:\d]*;(?:5|69|133|197)(?::1)?u|\x1b\[27;5;122~`)

// wakeDelay is from Ctrl-Z to waking the program, which takes a while to suspend itself. Waking a running program does
// nothing.
const wakeDelay = time.Second

// writeInput types into the program, in order, beside the loop, because a program that does not read would block it.
func writeInput(c *process.Child, writes <-chan write) {
	for w := range writes {
		n, err := c.Write(w.data, writeTimeout)
		if suspendKey.Match(w.data) {
			time.AfterFunc(wakeDelay, c.Wake)
		}
		if w.done != nil {
			w.done(n, err)
		}
	}
}

// sendKeys types keys. Keys that the program does not read in time are lost, as on any terminal.
func (p *Terminal) sendKeys(keys ...[]byte) {
	for _, k := range keys {
		p.send(write{data: bytes.Clone(k)})
	}
}

func (p *Terminal) send(w write) {
	select {
	case p.input <- w:
	default:
		if w.done != nil {
			go w.done(0, os.ErrDeadlineExceeded)
		}
	}
}

// press presses an option, if its dialog is still on the screen.
func (p *Terminal) press(asked string, o ask.Option) error {
	switch {
	case !p.frameSince.IsZero():
		return run.NotNow("it is redrawing its screen")
	case fingerprint(p.reading.Dialog) != asked:
		return run.NotNow("its screen shows no such dialog any more")
	}
	// Use the keys as they are now: arrow keys count from the option that is selected.
	if d := p.reading.Dialog; d != nil {
		if i := slices.IndexFunc(d.Options, func(f ask.Option) bool { return f.ID == o.ID }); i >= 0 {
			o = d.Options[i]
		}
	}
	if o.Keys == "" {
		return run.OnlyAtTerminal("the keys for this option are not known: no key was pressed")
	}
	p.turn.isInterrupted = p.turn.isInterrupted || o.Denies() // a denial may end the turn
	p.sendKeys([]byte(o.Keys))
	return nil
}

// BeginInterrupt expects the text that began the turn in the draft.
func (p *Terminal) BeginInterrupt() (forgetsText bool) {
	t := &p.turn
	t.isInterrupted = p.reading.Activity.IsWork()
	if !t.isInterrupted || !t.isOurs {
		return false
	}
	p.leftover = &leftover{text: t.text, since: p.r.Now()}
	return p.driver.ForgetsInterruptedPrompt && !t.hasActed
}

// Interrupt types the next of the keys that end a turn.
func (p *Terminal) Interrupt(step int) (isMore bool) {
	all := p.driver.InterruptKeys()
	p.sendKeys(all[step])
	return step+1 < len(all)
}
