package testagent

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// skin is what tells one agent from another: how it takes input, and what it shows.
type skin struct {
	isFull     bool   // it draws on the alternate screen
	hello, bye string // modes and queries at its start, but for bracketed paste, and what puts them back

	swallow        time.Duration                   // a Return so soon after text is a line break
	placeholder    func(n int, text string) string // how a paste is shown; "": as it is
	steers         bool                            // Return during a turn goes into the turn; else it waits
	escapes        int                             // so many interrupt
	ctrlCExits     bool                            // at once; else it asks again
	restores       bool                            // a prompt that was interrupted before any answer comes back
	unqueues       bool                            // and what waited, at any interrupt
	digitsSelect   bool                            // a digit only selects in its dialogs
	exitsOnSignals bool                            // with 129 and 143; else it dies of them
	trustFirst     bool                            // it asks for trust before it shows anything else

	title func(a *agent) string
	frame func(a *agent) frame

	// Pieces of the transcript.
	banner   func(a *agent) []block
	asked    func(text string) []block
	answer   func(text string) []block
	approved func(command string) []block
	ran      func(command string) []block
	failed   string
	stopped  func(t *turn) []block // interrupted by its user
	denied   func(t *turn) []block
	ended    func(t *turn) []block

	permission, question, trust func(a *agent, about string) *dialog
}

var skins = map[string]*skin{"claude": &claude, "codex": &codex, "gemini": &gemini, "opencode": &opencode}

// agent is the program at work. One loop (run) owns all of it; whatever else runs sends it functions
// through events: the reader of the terminal, signals, timers, and the turn.
type agent struct {
	o Options
	*skin
	log      journal
	events   chan func()
	screen   painter
	restore  func() // of the terminal
	session  string
	cwd, dir string

	cols, rows int
	isReady    bool
	keys       keys
	reads      int
	lastText   time.Time

	draft      draft
	queue      []string
	turn       *turn
	first      string // the first prompt
	dialog     *dialog
	transcript []block
	printed    int     // so many of these are above the frame already
	pending    []block // the prompt of a turn that has shown nothing else yet

	hint    string
	lastKey map[string]time.Time // when keys that want a second time came
	spin    int
	state   string
	exit    *exit
}

// exit is how the program ends: with a code, or of a signal. A crash puts nothing back.
type exit struct {
	code    int
	signal  string
	isCrash bool
}

// run acts until it is left. The error says why it could not.
func run(o Options) (int, error) {
	s := skins[o.Profile]
	if s == nil {
		return 2, fmt.Errorf("--profile %q is not one of claude, codex, gemini, opencode", o.Profile)
	}
	log, err := openJournal(o.Log)
	if err != nil {
		return 2, err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return 2, err
	}
	log.add(Entry{Event: Started, Text: o.Profile})
	time.Sleep(o.StartDelay)
	a := &agent{
		o: o, skin: s, log: log, events: make(chan func()), session: rand.Text(), cwd: cwd, dir: filepath.Base(cwd),
		lastKey: map[string]time.Time{},
	}
	if a.restore, a.cols, a.rows, err = openTerminal(); err != nil {
		return 2, err
	}
	defer a.restore()
	a.screen = painter{out: os.Stdout, isFull: s.isFull, rows: a.rows}
	a.listen()
	go a.read()
	go func() {
		for range time.Tick(100 * time.Millisecond) {
			a.events <- func() { a.spin++ }
		}
	}()
	a.after(5*time.Minute, func() { a.leave(exit{code: 98}) })
	a.open()
	for a.exit == nil {
		a.paint()
		(<-a.events)()
	}
	return a.end()
}

// open is the first that the terminal sees.
func (a *agent) open() {
	hello := a.hello
	if !a.o.PasteOff {
		hello = "\x1b[?2004h" + hello
	}
	os.Stdout.WriteString(hello)
	if a.o.Daemon {
		a.leaveOrphan(time.Minute)
	}
	if !a.o.Trust {
		a.home()
		return
	}
	if !a.trustFirst {
		a.tell(a.banner(a)...)
	}
	a.askTrust(a.home)
}

// askTrust shows the trust dialog outside any turn.
func (a *agent) askTrust(then func()) {
	d := a.trust(a, a.cwd)
	d.then = func(o option) {
		if o.effect != allow {
			a.leave(exit{code: 1})
			return
		}
		then()
	}
	a.show(d)
}

// home is the prompt, ready for the first time.
func (a *agent) home() {
	if len(a.transcript) == 0 {
		a.tell(a.banner(a)...)
	}
	a.isReady = true
	a.log.add(Entry{Event: Ready})
	if a.o.Junk != "" {
		a.draft.add(a.o.Junk, "")
	}
	if a.o.TrustLate > 0 {
		a.after(a.o.TrustLate, func() {
			if a.dialog == nil {
				a.askTrust(func() {})
			}
		})
	}
}

// after has the loop run f in a while.
func (a *agent) after(d time.Duration, f func()) {
	time.AfterFunc(d, func() { a.events <- f })
}

// tell adds to the transcript; whatever was said before it is there to stay.
func (a *agent) tell(blocks ...block) {
	a.transcript = append(append(a.transcript, a.pending...), blocks...)
	a.pending = nil
}

// unsaid are the blocks of the turn that are not in the transcript yet.
func (a *agent) unsaid() []block {
	if a.turn == nil || a.turn.saying == "" {
		return a.pending
	}
	return append(slices.Clone(a.pending), a.answer(a.turn.saying)...)
}

func (a *agent) lines(blocks []block) (lines []string) {
	for _, b := range blocks {
		lines = append(lines, b(a.cols)...)
	}
	return lines
}

// above are the last n lines of all that was said, filled up with empty ones.
func (a *agent) above(n int) []string {
	lines := append(a.lines(a.transcript), a.lines(a.unsaid())...)
	lines = slices.Clone(lines[max(len(lines)-max(n, 0), 0):])
	for len(lines) < n {
		lines = append(lines, "")
	}
	return lines
}

func (a *agent) paint() {
	if !a.isReady && a.dialog == nil {
		return
	}
	state := "idle"
	switch {
	case a.dialog != nil && a.dialog.kind == "question":
		state = "awaiting_input"
	case a.dialog != nil:
		state = "confirming"
	case a.turn != nil:
		state = a.turn.phase
	}
	var fresh []string
	if !a.isFull {
		fresh = a.lines(a.transcript[a.printed:])
		a.printed = len(a.transcript)
	}
	a.screen.draw(fresh, a.frame(a), a.title(a))
	if state != a.state {
		a.state = state
		a.log.add(Entry{Event: State, Text: state})
	}
}

// begin starts a turn.
func (a *agent) begin(text string) {
	a.log.add(Entry{Event: Submitted, Text: text})
	if a.first == "" {
		a.first = text
	}
	a.tell()
	a.pending = a.asked(text)
	t := &turn{a: a, prompt: text, began: time.Now(), phase: thinking}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	a.turn = t
	go t.run()
}

// finish ends a turn; what waited begins the next.
func (a *agent) finish(t *turn, status string) {
	switch status {
	case "completed":
		a.tell(a.ended(t)...)
	case "denied":
		a.tell(a.denied(t)...)
	}
	a.over(t, status)
	if len(a.queue) > 0 {
		next := a.queue[0]
		a.queue = a.queue[1:]
		a.begin(next)
	}
}

func (a *agent) over(t *turn, status string) {
	t.cancel()
	a.turn = nil
	a.log.add(Entry{Event: TurnOver, Kind: status, Text: t.prompt})
}

// interrupt is what the user's key does to a turn.
func (a *agent) interrupt() {
	t := a.turn
	kind := "stopped"
	if a.restores && !a.o.NoRestore && !t.hasShown {
		kind = "restored"
	}
	a.log.add(Entry{Event: Interrupted, Kind: kind, Text: t.prompt})
	a.dialog = nil
	if kind == "restored" {
		a.pending = nil
		a.draft.pieces = append([]piece{{text: t.prompt}}, a.draft.pieces...)
	} else {
		a.tell(a.unsaid()[len(a.pending):]...)
		a.tell(a.stopped(t)...)
	}
	if !a.unqueues {
		a.finish(t, "interrupted")
		return
	}
	for _, q := range a.queue {
		if !a.draft.isEmpty() {
			q = "\n" + q
		}
		a.draft.add(q, "")
	}
	a.queue = nil
	a.over(t, "interrupted")
}

// remark shows a hint in the footer for a while.
func (a *agent) remark(hint string, lasting time.Duration) {
	a.hint = hint
	a.after(lasting, func() { a.hint = "" })
}

// twice says whether a key was pressed before within so long.
func (a *agent) twice(key string, within time.Duration) bool {
	last := a.lastKey[key]
	a.lastKey[key] = time.Now()
	return time.Since(last) < within
}

func (a *agent) leave(e exit) {
	if a.exit == nil {
		a.exit = &e
	}
}

// read brings what the terminal sends to the loop, until the terminal is gone or it is told to be
// deaf.
func (a *agent) read() {
	buf := make([]byte, 64<<10)
	left := a.o.Deaf
	for {
		room := buf
		if left > 0 {
			room = buf[:min(left, len(buf))]
		}
		n, err := os.Stdin.Read(room)
		if n > 0 {
			p := slices.Clone(room[:n])
			a.events <- func() { a.received(p) }
		}
		if err != nil || n == 0 {
			a.events <- a.hungUp
			return
		}
		if left == 0 {
			continue
		}
		if left -= n; left > 0 {
			continue
		}
		a.events <- func() { a.log.add(Entry{Event: Deaf}) }
		if a.o.DeafFor == 0 {
			return
		}
		time.Sleep(a.o.DeafFor)
	}
}

// received is what one read brought. An ESC may be the beginning of something for 25 ms.
func (a *agent) received(p []byte) {
	a.log.add(Entry{Event: Input, Bytes: p})
	a.keys.rest = append(a.keys.rest, p...)
	a.press()
	a.reads++
	n := a.reads
	a.after(25*time.Millisecond, func() {
		if a.reads == n && a.keys.escape() {
			a.keyed(key{name: "esc"})
			a.press()
		}
	})
}

func (a *agent) press() {
	for k, ok := a.keys.next(); ok && a.exit == nil; k, ok = a.keys.next() {
		a.keyed(k)
	}
}

func (a *agent) keyed(k key) {
	if a.dialog != nil {
		a.inDialog(k)
		return
	}
	switch k.name {
	case "text":
		a.typed(k.text)
	case "paste":
		a.pasted(k.text)
	case "newline":
		a.typed("\n")
	case "enter":
		a.enter()
	case "esc":
		a.escape()
	case "backspace":
		a.draft.backspace()
	case "ctrl-u":
		a.draft.cutLine()
	case "ctrl-c":
		a.controlC()
	case "ctrl-d":
		if a.draft.isEmpty() && a.turn == nil {
			a.leave(exit{})
		}
	case "up": // what waits comes back to be edited
		if n := len(a.queue); n > 0 && a.draft.isEmpty() {
			a.draft.add(a.queue[n-1], "")
			a.queue = a.queue[:n-1]
		}
	}
}

// losing takes off a text what is to be lost.
func (a *agent) losing(s string) string {
	cut := 0
	for ; a.o.Drop > 0 && cut < len(s); a.o.Drop-- {
		_, size := utf8.DecodeRuneInString(s[cut:])
		cut += size
	}
	if cut > 0 {
		a.log.add(Entry{Event: Dropped, Text: s[:cut]})
	}
	return s[cut:]
}

func (a *agent) typed(s string) {
	a.lastText = time.Now()
	if s = a.losing(s); s != "" {
		a.draft.add(s, "")
		a.log.add(Entry{Event: Typed, Text: s})
	}
}

func (a *agent) pasted(s string) {
	a.lastText = time.Time{} // a paste that says so is no burst of typing, and ends one
	if s = a.losing(s); s == "" {
		return
	}
	a.log.add(Entry{Event: Typed, Kind: "paste", Text: s})
	shown := a.placeholder(a.draft.pastes+1, s)
	if shown != "" {
		a.draft.pastes++
	}
	a.draft.add(s, shown)
}

// enter is Return at the prompt.
func (a *agent) enter() {
	switch {
	case time.Since(a.lastText) < a.swallow:
		a.log.add(Entry{Event: Swallowed})
		a.lastText = time.Now()
		a.draft.add("\n", "")
	case a.o.IgnoreCR > 0:
		a.o.IgnoreCR--
		a.log.add(Entry{Event: Ignored})
	case strings.TrimSpace(a.draft.text()) == "" || !a.isReady:
	case a.turn == nil:
		a.begin(a.draft.take())
	case a.steers:
		text := a.draft.take()
		a.log.add(Entry{Event: Steered, Text: text})
		a.tell(a.asked(text)...)
		a.turn.steps = append(a.turn.steps, steps(text)...)
	default:
		text := a.draft.take()
		a.queue = append(a.queue, text)
		a.log.add(Entry{Event: Queued, Text: text})
	}
}

func (a *agent) escape() {
	if a.turn == nil {
		return
	}
	if a.escapes > 1 && !a.twice("esc", 5*time.Second) {
		a.remark("again to interrupt", 5*time.Second)
		return
	}
	delete(a.lastKey, "esc")
	a.hint = ""
	a.interrupt()
}

// controlC is the key; what `kill -INT` does is another matter.
func (a *agent) controlC() {
	switch {
	case a.turn != nil && !a.ctrlCExits:
		a.interrupt()
	case a.turn == nil && !a.draft.isEmpty():
		a.log.add(Entry{Event: Cleared, Text: a.draft.take()})
	case a.ctrlCExits || a.twice("ctrl-c", 2*time.Second):
		a.leave(exit{})
	default:
		a.remark("Press Ctrl+C again to exit.", 2*time.Second)
	}
}
