package ptyrun

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/ptyrun/screen"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
)

// terminal is an agent on a PTY: what it says is read from its screen by a driver, and it is told by typing.
type terminal struct {
	r *runner
	*process.Child
	output   *feed[[]byte] // what it writes
	input    chan write
	emulator *screen.Screen
	driver   *driver.Driver
	started  time.Time

	screenState
	turn       turn
	detail     string    // of the last activity reported
	clearedAt  time.Time // when its draft was
	keyVersion uint64    // the screen's at the last key of a text of ours
	isReady    bool      // it has once been at its prompt for timing.firstIdle
	leftover   *leftover // nil: none is expected
	limit      limit     // zero: the screen shows none
	lines      finalLines

	declaredAt time.Time // when what it declares last changed
	hasExcess  bool      // it has declared more than is kept, which was reported

	serverStarts restarts // of its own server
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
	lastRead     time.Time
	freeMemory   *time.Timer // runs after a flood, whose memory the runtime would keep for minutes
}

// startTerminal starts a program on a PTY. Its own server runs already, unless it is nil.
func (r *runner) startTerminal(argv []string, server *ownServer) (*terminal, error) {
	if argv = driver.Unshared(argv, r.isScript); server != nil {
		argv = server.program
	}
	c, err := process.Start(process.Command{Argv: withArguments(argv, r.Arguments), Dir: r.Dir, Env: r.Env, Cols: r.Cols, Rows: r.Rows})
	if err != nil {
		if server != nil {
			server.helper.Kill()
		}
		return nil, err
	}
	now := r.now()
	p := &terminal{
		r: r, Child: c, output: newFeed[[]byte](maxPieces), input: make(chan write, maxWrites),
		emulator: screen.New(r.Cols, r.Rows, screen.Scrollback), driver: r.Driver, started: now,
	}
	p.emulator.IsLight = isLight(r.Env)
	p.reading = driver.Reading{Activity: reducer.Starting, NotPromptReason: control.GateStarting}
	if p.driver.Unknown { // also if it never draws anything
		p.reading.NotPromptReason = control.GateUnknown
	}
	p.readingSince, p.outputAt = now, now
	p.freeMemory = time.AfterFunc(time.Hour, debug.FreeOSMemory)
	p.freeMemory.Stop()
	r.wg.Go(p.readOutput)
	r.wg.Go(func() { writeInput(c, p.input) })
	if server != nil {
		p.join(server)
	}
	return p, nil
}

// withArguments adds arguments at the end of a command line, but before what a "--" makes no flags.
func withArguments(argv, more []string) []string {
	end := slices.Index(argv, "--")
	if end < 0 {
		end = len(argv)
	}
	return slices.Insert(slices.Clone(argv), end, more...)
}

// isLight reports whether an environment says, with COLORFGBG, that the person's terminal has a light background: its
// last number is one of the colours 7 and 9 to 15.
func isLight(env []string) (light bool) {
	for _, pair := range env { // the last one counts
		if value, ok := strings.CutPrefix(pair, "COLORFGBG="); ok {
			n, err := strconv.Atoi(value[strings.LastIndex(value, ";")+1:])
			light = err == nil && (n == 7 || n >= 9 && n <= 15)
		}
	}
	return light
}

// maxPieces is how many pieces of output may be queued for the loop, which draws them all before it does anything else.
// A piece is 4 KiB on Linux; the dearest sequences take seconds for 16 of them.
const maxPieces = 16

// readOutput reads what the program writes. While the loop has not drawn it the program blocks, as on a slow terminal.
func (p *terminal) readOutput() {
	buf := make([]byte, 32<<10)
	for {
		n, err := p.Child.Read(buf)
		if err != nil {
			break
		}
		p.output.send(bytes.Clone(buf[:n]))
	}
	p.output.end()
}

func (p *terminal) woken() <-chan struct{} { return p.output.woken() }

// take draws what the program has written.
func (p *terminal) take() {
	var written []byte
	p.output.take(func(piece []byte) { written = append(written, piece...) })
	if len(written) > 0 {
		p.draw(written)
	}
}

// frameEnd ends a synchronized frame.
var frameEnd = []byte("\x1b[?2026l")

func (p *terminal) draw(written []byte) {
	r := p.r
	r.recording.Output(written) // first: a new file of it begins with what was drawn before
	for rest := written; len(rest) > 0; {
		n, isFrame := p.giveScrolled(rest), false
		if i := bytes.Index(rest[:n], frameEnd); i >= 0 && r.question != nil && r.question.pressed != nil {
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
	r.sendOutput(written)
	p.scheduleRead(r.now())
}

func (p *terminal) step(now time.Time) {
	p.take()
	p.giveResting(now)
	p.stepScreen(now)
	p.stepDraft(now)
}

// ended is called when its process has ended, and all that it wrote was drawn.
func (p *terminal) ended() {
	if g := p.r.mail.giving; g.isSubmitted() && p.driver.HasAccepted(p.look(), g.typing.draft) {
		p.r.happened(p.accepted(g)) // perhaps the text ended the program: it must not be typed again
	}
	p.giveLines(p.emulator.Scrolled()+uint64(lastWithText(p.emulator)+1), p.r.now())
	close(p.input)
}

// answer returns the answer to the last text, as far as it is seen.
func (p *terminal) answer() string { return p.response() }

// declared returns what the program declares of its state, for terminals that know that.
func (p *terminal) declared() screen.Status {
	status, _ := p.emulator.Status()
	return status
}

func (p *terminal) state() agentState {
	rd := &p.reading
	s := agentState{
		driver: p.driver.Name, reader: p.driver, activity: rd.Activity, detail: rd.Detail, ways: p.ways(), isPlain: p.driver.Plain,
		isByLine: p.driver.Plain && !p.emulator.Modes().Paste, takesText: p.takesText(),
		isReady: p.isReady, hasLines: !p.emulator.Modes().Alt, hasDraft: rd.Draft != "", isAsking: p.isAsking(), isDialog: rd.Dialog != nil, isOurs: p.turn.isOurs,
	}
	if rd.Dialog != nil {
		s.detail = rd.Dialog.Dialog
	}
	return s
}

func (p *terminal) ways() control.Ways {
	ways := control.Ways{Prompt: "typed", Interrupt: "keys", Answer: "keys"}
	if b := &p.r.beside; b.isOpen(p.r.now()) {
		ways.Prompt = b.by
	}
	if p.driver.Plain {
		ways.Answer = ""
	}
	if p.driver.Unknown {
		ways.Prompt = ""
	}
	if p.r.state.HasHooks() {
		ways.Steer = "hooks"
	}
	return ways
}

// claims returns what its state rests on, the strongest first.
func (p *terminal) claims() (all []control.Claim) {
	rd := &p.reading
	add := func(c control.Claim) {
		c.Counts = c.Source == string(cmp.Or(rd.Source, reducer.FromScreen))
		all = append(all, c)
	}
	if d := rd.Declared; d.State != "" {
		add(control.Claim{Source: string(reducer.FromDeclared), Says: string(d.State), By: d.App, Detail: cmp.Or(d.Message, string(d.Kind)), At: p.declaredAt})
	}
	if rd.Title == reducer.Confirming || rd.Title == reducer.Thinking || rd.Title == reducer.Idle {
		add(control.Claim{Source: string(reducer.FromTitle), Says: string(rd.Title), Detail: p.emulator.Title(), At: p.readingSince})
	}
	if rd.Progress == reducer.Confirming || rd.Progress == reducer.Thinking || rd.Progress == reducer.Idle {
		add(control.Claim{Source: string(reducer.FromProgress), Says: string(rd.Progress), Detail: string(p.emulator.Progress()), At: p.readingSince})
	}
	if rd.Source == reducer.FromScreen || rd.Source == "" || rd.Dialog != nil {
		add(control.Claim{Source: string(reducer.FromScreen), Says: string(rd.Activity), Detail: rd.Detail, At: p.readingSince})
	}
	return all
}

// isSilent reports whether it has written nothing since the last key of a text of ours. It may not have read that yet.
func (p *terminal) isSilent() bool { return p.emulator.Version() == p.keyVersion }

// repaint draws the screen, and that many lines above it, on an empty terminal.
func (p *terminal) repaint(lines int) []byte { return p.emulator.Repaint(lines) }
func (p *terminal) tail(lines int) []string  { return p.emulator.Tail(lines) }

// clear takes away the progress bar.
func (p *terminal) clear() []byte {
	if bar := p.emulator.Progress(); bar != "" && bar != screen.NoProgress { // older iTerm2 takes the end of none for a notification
		return []byte(screen.ClearProgress)
	}
	return nil
}

// leave leaves the cursor below the text. A program that exits by itself in the alternate screen did not mean to: its
// last lines are shown on the main screen.
func (p *terminal) leave() []byte {
	s := p.emulator
	switch {
	case s.Modes().Alt && p.r.stopping == nil:
		return append(p.clear(), "\x1b[m\x1b[?1049l\x1b[999;1H\r\n"+strings.Join(append(s.Tail(10), ""), "\r\n")...)
	case !s.Modes().Alt:
		return fmt.Appendf(p.clear(), "\x1b[%d;1H\r\n\x1b[0J", lastWithText(s)+1)
	}
	return p.clear()
}

func (p *terminal) show(req control.ScreenRequest) control.Screen {
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

func (p *terminal) resize(to control.Size) {
	p.take()
	before := p.emulator.Version()
	p.emulator.Resize(to.Cols, to.Rows)
	if p.keyVersion == before { // the new version is not output of the program
		p.keyVersion = p.emulator.Version()
	}
	p.Child.Resize(to.Cols, to.Rows)
	p.scheduleRead(p.r.now())
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

// wakeDelays are when a program is woken after Ctrl-Z: it may take a while to suspend itself, and waking a running
// program does nothing.
var wakeDelays = []time.Duration{300 * time.Millisecond, time.Second, 3 * time.Second}

// writeInput types into the program, in order, beside the loop, because a program that does not read would block it.
func writeInput(c *process.Child, writes <-chan write) {
	for w := range writes {
		n, err := c.Write(w.data, writeTimeout)
		if suspendKey.Match(w.data) {
			for _, after := range wakeDelays {
				time.AfterFunc(after, c.Wake)
			}
		}
		if w.done != nil {
			w.done(n, err)
		}
	}
}

// sendKeys types keys. Keys that the program does not read in time are lost, as on any terminal.
func (p *terminal) sendKeys(keys ...[]byte) {
	for _, k := range keys {
		p.send(write{data: bytes.Clone(k)})
	}
}

func (p *terminal) send(w write) {
	select {
	case p.input <- w:
	default:
		if w.done != nil {
			go w.done(0, os.ErrDeadlineExceeded)
		}
	}
}

func (p *terminal) keys(keys []byte) { p.typeKeys(keys, nil) }

// typeKeys types what the recording may show. done may be nil: see write.
func (p *terminal) typeKeys(keys []byte, done func(n int, err error)) {
	if p.r.RecordInput {
		p.r.recording.Input(keys)
	}
	p.send(write{keys, done})
}

// press presses an option, if its dialog is still on the screen.
func (p *terminal) press(q *question, o ask.Option) error {
	switch {
	case !p.frameSince.IsZero():
		return notNow("it is redrawing its screen")
	case fingerprint(p.reading.Dialog) != q.Fingerprint:
		return notNow("its screen shows no such dialog any more")
	}
	// Use the keys as they are now: arrow keys count from the option that is selected.
	if d := p.reading.Dialog; d != nil {
		if i := slices.IndexFunc(d.Options, func(f ask.Option) bool { return f.ID == o.ID }); i >= 0 {
			o = d.Options[i]
		}
	}
	if o.Keys == "" {
		return onlyAtTerminal("the keys for this option are not known: no key was pressed")
	}
	p.turn.isInterrupted = p.turn.isInterrupted || o.Denies() // a denial may end the turn
	p.sendKeys([]byte(o.Keys))
	return nil
}

// beginInterrupt expects the text that began the turn in the draft.
func (p *terminal) beginInterrupt() (forgetsText bool) {
	t := &p.turn
	t.isInterrupted = p.reading.Activity.IsWork()
	if !t.isInterrupted || !t.isOurs {
		return false
	}
	p.leftover = &leftover{text: t.text, since: p.r.now()}
	return p.driver.ForgetsInterruptedPrompt && !t.hasActed && p.response() == ""
}

func (p *terminal) interrupt(step int) (isMore bool) {
	all := p.driver.InterruptKeys()
	p.sendKeys(all[step])
	return step+1 < len(all)
}

// requestedText is a text that a request has typed.
type requestedText struct {
	text    string // "": raw keys, of which a box shows nothing
	data    []byte
	dialog  string     // fingerprint of the dialog on the screen at that moment
	written chan error // gets the result of writing it
}

// typeText types the text of a request, and submit presses the key that sends it off.
func (p *terminal) typeText(req control.TypeRequest) (*requestedText, error) {
	r, d := p.r, p.reading.Dialog
	if !req.Raw && p.hasLeftover() {
		return nil, refused("its prompt may still hold a message: nothing was typed", tryScreen, tryAttach, tryRaw)
	}
	if p.isAsking() && !p.driver.Plain {
		if err := r.checkTyping(req, d); err != nil {
			return nil, err
		}
	}
	t := &requestedText{data: req.Text, dialog: fingerprint(d), written: make(chan error, 1)}
	if !req.Raw {
		if !p.takesText() && len(req.Text) > control.MaxLine() {
			return nil, refused(untypable(string(req.Text), false) + ": nothing was typed")
		}
		t.text = Clean(string(req.Text))
		if t.data = p.keysOf(t.text); len(req.Text) <= 1 { // a pasted key answers nothing
			t.data = []byte(keysOf(t.text, false, p.driver.Plain))
		}
	}
	r.lastKey = r.now()
	p.typeKeys(t.data, func(n int, err error) {
		if err != nil {
			err = fmt.Errorf("the program stopped reading after %d of %d bytes", n, len(t.data))
		}
		t.written <- err
	})
	return t, nil
}

// hasText reports whether the box shows a text that a request has typed, as far as a box shows it.
func (p *terminal) hasText(typed *requestedText) bool {
	return typed.text == "" || typed.dialog != "" || p.driver.HasInBox(p.look(), typed.text)
}

func (p *terminal) submit(typed *requestedText) error {
	if now := fingerprint(p.reading.Dialog); now != "" && now != typed.dialog { // the return key would answer it
		return errors.New("a dialog came up: the return key was not pressed")
	}
	p.keys([]byte(p.driver.SubmitKeys()))
	return nil
}
