package fakeagent

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// agent is the program at work. One loop (run) owns all of it; whatever else
// runs sends it functions through events: the reader of the terminal, signals,
// timers, and the turn.
type agent struct {
	o       Options
	p       *profile
	log     journal
	hooks   *hooks
	events  chan func()
	screen  *painter
	session string

	cols, rows         int
	cwd, dir, shortDir string
	again              bool // it was started anew by itself

	opened, ready bool
	keys          keys
	reads         int
	held          []byte    // of a paste that may go on
	at            time.Time // when what is being looked at came
	lastText      time.Time // and when text came last
	awaited       string    // final bytes of the answers that are still missing
	drop, ignore  int

	draft      draft
	queue      []string
	turn       *turn
	turns      int
	first      string // the first prompt
	dialog     *dialog
	dialogs    int
	transcript []entry
	printed    int     // so many of these are above the frame already
	pending    []entry // the prompt of a turn that has shown nothing else yet

	hint    string
	hints   int
	lastKey map[string]time.Time // when keys that want a second time came
	spin    int
	state   string
	going   *leaving
}

// leaving is how the program ends.
type leaving struct {
	code    int
	crash   string // dies of this signal, with nothing put back
	signal  string // dies of this one, properly
	restart bool
	quiet   bool // without a farewell
}

// againEnv tells a process that it is the same program, started anew.
const againEnv = "FAKEAGENT_AGAIN"

func newID(kind string) string {
	var b [6]byte
	rand.Read(b[:])
	return fmt.Sprintf("%s-%x", kind, b)
}

// Run acts until it is left. The error says why it could not.
func Run(o Options) (code int, err error) {
	if err := o.check(); err != nil {
		return 2, err
	}
	log, err := openJournal(o.Log)
	if err != nil {
		return 2, err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return 2, fmt.Errorf("find the working directory: %w", err)
	}
	log.add(Entry{Event: Started, Text: o.Profile})
	if o.Profile == plain {
		return runShell(o, log)
	}
	a := &agent{
		o: o, p: profileNamed(o.Profile), log: log, events: make(chan func()),
		session: newID("session"), cwd: cwd, dir: filepath.Base(cwd), shortDir: shorten(cwd),
		again: os.Getenv(againEnv) != "", drop: o.Drop, ignore: o.IgnoreCR,
		lastKey: map[string]time.Time{},
	}
	a.hooks = &hooks{o: o, log: log, session: a.session, cwd: cwd}
	a.keys.guess = a.p.guess
	return a.run()
}

func shorten(dir string) string {
	if home, err := os.UserHomeDir(); err == nil && home != "/" {
		if rest, ok := strings.CutPrefix(dir, home); ok && (rest == "" || rest[0] == '/') {
			return "~" + rest
		}
	}
	return dir
}

func (a *agent) run() (int, error) {
	if !a.o.LoseEarly {
		// The terminal is as it was found: what is typed is echoed and edited
		// by it, and a line of over 4095 bytes is cut.
		time.Sleep(a.o.StartDelay)
	}
	restore, cols, rows, err := openTerminal()
	if err != nil {
		return 2, err
	}
	defer restore()
	a.cols, a.rows = cols, rows
	a.screen = &painter{out: os.Stdout, full: a.p.full, early: a.p.titleFirst, cols: cols, rows: rows, split: a.o.Split, pause: a.o.SplitPause}

	stop := a.listen()
	defer stop()
	go a.read()
	go func() {
		for range time.Tick(a.o.Tick) {
			a.events <- func() { a.spin++ }
		}
	}()
	a.after(a.o.Life, func() { a.leave(leaving{code: 98, quiet: true}) })
	if a.o.LoseEarly {
		a.after(a.o.StartDelay, a.open)
	} else {
		a.open()
	}
	for a.going == nil {
		if a.ready || a.dialog != nil {
			a.paint()
		}
		(<-a.events)()
	}
	return a.end(restore)
}

// open is the first that the terminal sees.
func (a *agent) open() {
	a.opened = true
	hello := a.p.hello
	if a.o.NoQueries {
		hello = withoutQueries(hello)
	} else if a.o.AwaitReplies > 0 {
		a.awaited = a.p.asks
	}
	if orElse(a.o.Paste, "on") == "on" {
		hello = "\x1b[?2004h" + hello
	}
	a.screen.raw(hello)
	if a.o.Daemon {
		a.leaveOrphan(time.Minute, false)
	}
	if a.awaited == "" {
		a.greet()
		return
	}
	a.after(a.o.AwaitReplies, func() {
		if a.awaited != "" {
			a.awaited = ""
			a.greet()
		}
	})
}

// greet draws the first screen.
func (a *agent) greet() {
	a.hooks.sessionStart(a.again)
	if a.o.Trust && !a.again {
		if !a.p.trustFirst {
			a.tell(a.p.banner(a))
		}
		a.askTrust(func() {
			if a.p.trustFirst {
				a.tell(a.p.banner(a))
			}
			a.home()
		})
		return
	}
	a.tell(a.p.banner(a))
	a.home()
}

// askTrust shows the trust dialog outside any turn.
func (a *agent) askTrust(then func()) {
	d := a.p.trust(a)
	d.then = func(o option) {
		switch {
		case o.effect != allow:
			a.leave(leaving{code: map[bool]int{true: 1}[a.p.exits], quiet: true})
		case a.p.trustAnew:
			a.leave(leaving{restart: true})
		default:
			then()
		}
	}
	a.show(d)
}

// home is the prompt, ready for the first time.
func (a *agent) home() {
	a.ready = true
	a.log.add(Entry{Event: Ready})
	junk := func() {
		if a.o.Junk != "" {
			a.draft.typed(a.o.Junk)
		}
	}
	if a.o.JunkAfter > 0 {
		a.after(a.o.JunkAfter, junk)
	} else {
		junk()
	}
	if a.o.Paste == "late" {
		a.after(a.o.PasteAfter, func() { a.screen.raw("\x1b[?2004h") })
	}
	if a.o.TrustLate > 0 && !a.again {
		a.after(a.o.TrustLate, func() {
			if a.dialog == nil {
				a.askTrust(func() {})
			}
		})
	}
}

// tell adds to the transcript; whatever was said before it is there to stay.
func (a *agent) tell(es []entry) {
	a.transcript = append(append(a.transcript, a.pending...), es...)
	a.pending = nil
}

// unsaid are the lines of the turn that are not in the transcript yet.
func (a *agent) unsaid() []string {
	var lines []string
	for _, e := range a.unsaidEntries() {
		lines = append(lines, e.lines(a.cols)...)
	}
	return lines
}

func (a *agent) unsaidEntries() []entry {
	es := append([]entry(nil), a.pending...)
	if a.turn != nil && a.turn.saying != "" {
		es = append(es, a.p.answer(a.turn.saying)...)
	}
	return es
}

// spoken are the last lines of all that was said, at most n.
func (a *agent) spoken(n int) []string {
	var lines []string
	es := append(append([]entry(nil), a.transcript...), a.unsaidEntries()...)
	for i := len(es) - 1; i >= 0 && len(lines) < n; i-- {
		lines = append(es[i].lines(a.cols), lines...)
	}
	return append([]string(nil), lines[max(len(lines)-max(n, 0), 0):]...)
}

// above is spoken, filled up to n lines.
func (a *agent) above(n int) []string {
	lines := a.spoken(n)
	for len(lines) < n {
		lines = append(lines, "")
	}
	return lines
}

func (a *agent) paint() {
	state := "idle"
	if t := a.turn; t != nil {
		state = [...]string{"thinking", "responding", "tool_running", "thinking"}[t.phase]
	}
	if a.dialog != nil {
		state = "confirming"
		if a.dialog.kind == "question" {
			state = "awaiting_input"
		}
	}
	var fresh []string
	if !a.p.full {
		if a.screen.blank { // all of it anew
			a.printed = 0
		}
		for _, e := range a.transcript[a.printed:] {
			fresh = append(fresh, e.lines(a.cols)...)
		}
		a.printed = len(a.transcript)
	}
	a.screen.draw(fresh, a.p.frame(a), a.p.title(a))
	if state != a.state {
		a.state = state
		a.log.add(Entry{Event: State, Text: state})
	}
}

// begin starts a turn.
func (a *agent) begin(text string) {
	kind := "prompt"
	switch {
	case strings.HasPrefix(text, "!"):
		kind = "bang"
	case strings.HasPrefix(text, "/"):
		kind = "command"
	}
	a.log.add(Entry{Event: Submitted, Kind: kind, Text: text})
	if a.first == "" {
		a.first = text
	}
	a.turns++
	ctx, cancel := context.WithCancel(context.Background())
	t := &turn{a: a, ctx: ctx, cancel: cancel, id: newID("prompt"), prompt: text, began: time.Now()}
	t.verb = a.oneOf("Wrangling", "Manifesting", "Noodling", "Pondering", "Schlepping")
	a.turn, a.pending = t, a.p.asked(text)
	go t.run(text)
}

// finish ends a turn, and begins the next if one waits.
func (a *agent) finish(t *turn, status string) {
	switch status {
	case "completed":
		a.tell(a.p.completed(t))
	case "denied":
		a.tell(a.p.denied(t))
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

// refuse is a prompt that a hook stopped: it is gone.
func (a *agent) refuse(t *turn, reason string) {
	a.log.add(Entry{Event: Blocked, Kind: "prompt", Text: reason})
	a.pending = nil
	a.tell([]entry{{gap: true, mark: "  ⎿ " + noBreak, hang: "     ", text: "UserPromptSubmit operation blocked by hook: " + reason}})
	a.finish(t, "refused")
}

// interrupt is what the user's key does to a turn.
func (a *agent) interrupt() {
	t := a.turn
	if t == nil {
		return
	}
	kind := "stopped"
	if a.p.restores && !a.o.NoRestore && !t.said {
		kind = "restored"
	}
	a.log.add(Entry{Event: Interrupted, Kind: kind, Text: t.prompt})
	go a.hooks.interrupted(t.id)
	a.dialog = nil
	if kind == "restored" {
		a.pending = nil
		rest := a.draft.pieces
		a.draft.pieces = nil
		a.draft.typed(t.prompt)
		a.draft.pieces = append(a.draft.pieces, rest...)
	} else {
		if t.saying != "" {
			a.tell(a.p.answer(t.saying))
		}
		a.tell(a.p.stopped(t))
	}
	if a.p.unqueues {
		for _, q := range a.queue {
			if !a.draft.empty() {
				a.draft.typed("\n")
			}
			a.draft.typed(q)
		}
		a.queue = nil
		a.over(t, "interrupted")
		return
	}
	a.finish(t, "interrupted")
}

// remark shows a hint in the footer for a while.
func (a *agent) remark(hint string, lasting time.Duration) {
	a.hints++
	n := a.hints
	a.hint = hint
	a.after(lasting, func() {
		if a.hints == n {
			a.hint = ""
		}
	})
}

// twice says whether a key was pressed before within so long.
func (a *agent) twice(key string, within time.Duration) bool {
	last := a.lastKey[key]
	a.lastKey[key] = time.Now()
	return time.Since(last) < within
}

func (a *agent) leave(l leaving) {
	if a.going == nil {
		a.going = &l
	}
}
