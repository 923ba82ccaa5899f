package testagent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// agent is the running program. One loop, in run, owns all of it. The other goroutines send it functions through
// events: the reader of the terminal, signals, timers, and the command that plays the model.
type agent struct {
	o Options
	*face
	log      journal
	events   chan func()
	cwd, dir string

	cols, rows int
	screen     painter
	transcript []block
	printed    int   // how many blocks are above the frame already
	pending    block // the prompt of a turn that has shown nothing else yet
	spin       int

	isReady   bool
	hasWorked bool // a turn has ended since the last key
	declares  bool // the terminal reads what it declares
	keys      keys
	reads     int

	draft  string
	pastes map[string]string // the texts by their placeholders in the draft
	paste  int               // how many placeholders there were

	queue  []string
	turn   *turn
	dialog *dialog
	exit   *int // the exit code; nil: it runs

	turns int             // how many there were
	hooks <-chan struct{} // closed when the last hooks have ended; nil: none was called
}

func run(o Options) (int, error) {
	f, err := loadFace()
	if err != nil {
		return 2, err
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
		o: o, face: f, log: log, events: make(chan func()), cwd: cwd, dir: filepath.Base(cwd),
		pastes: map[string]string{},
	}
	restore, cols, rows, err := openTerminal()
	if err != nil {
		return 2, err
	}
	defer restore()
	a.cols, a.rows = cols, rows
	a.handleSignals()
	go a.read()
	go func() {
		for range time.Tick(100 * time.Millisecond) {
			a.events <- func() { a.spin++ }
		}
	}()
	a.after(5*time.Minute, func() { a.exitWith(98) })
	switch {
	case o.Inbox == "":
	case o.Profile == "opencode":
		go a.actAsPlugin()
	default:
		closeInbox, err := a.openInbox()
		if err != nil {
			return 1, err
		}
		defer closeInbox()
	}
	a.start()
	for a.exit == nil {
		a.paint()
		(<-a.events)()
	}
	fmt.Printf("\x1b[%dB\r\n"+bye, max(len(a.screen.drawn.lines)-a.screen.drawn.y, 1))
	return *a.exit, nil
}

func (a *agent) after(d time.Duration, f func()) { time.AfterFunc(d, func() { a.events <- f }) }

func (a *agent) exitWith(code int) {
	if a.exit == nil {
		a.exit = &code
	}
}

// hello sends the queries that programs send to a terminal, and bye restores its modes.
const (
	hello = "\x1b[?25l\x1b[?1004h\x1b]11;?\x1b\\\x1b[6n\x1b[c"
	bye   = "\x1b[?1004l\x1b[?2004l\x1b[?25h\x1b]0;\x07"
)

func (a *agent) start() {
	if !a.o.PasteOff {
		os.Stdout.WriteString("\x1b[?2004h")
	}
	os.Stdout.WriteString(hello)
	if a.o.Declares {
		os.Stdout.WriteString(ansi.RequestProgramStatusSupport)
	}
	if a.o.Daemon {
		a.leaveOrphan(time.Minute)
	}
	a.print(a.Banner, "")
	if a.o.Resume != "" {
		a.print([]string{"Resumed " + a.o.Resume, ""}, "")
	}
	if a.o.Trust {
		a.askTrust(a.showPrompt)
	} else {
		a.showPrompt()
	}
}

func (a *agent) askTrust(then func()) {
	a.show(&dialog{prompt: a.Trust, kind: "trust", about: a.cwd, then: func(o option) {
		if o.denies() {
			a.exitWith(1)
			return
		}
		then()
	}})
}

func (a *agent) showPrompt() {
	a.isReady = true
	a.log.add(Entry{Event: Ready})
	a.callHooks("SessionStart", map[string]any{"source": "startup"})
	if a.o.TrustLate > 0 {
		a.after(a.o.TrustLate, func() {
			if a.dialog == nil {
				a.askTrust(func() {})
			}
		})
	}
}

// print adds a block to the transcript, after the pending one.
func (a *agent) print(rows []string, text string) {
	a.transcript = append(a.transcript, a.pending, block{rows, text, a.turn.age()})
	a.pending = block{}
}

func (a *agent) paint() {
	if !a.isReady && a.dialog == nil {
		return
	}
	var fresh []string
	for ; a.printed < len(a.transcript); a.printed++ {
		fresh = append(fresh, a.draw(a.transcript[a.printed])...)
	}
	title := a.Idle
	switch {
	case a.dialog != nil && a.dialog.kind != "trust":
		title = a.Asks
	case a.dialog == nil && a.turn != nil:
		title = a.Busy
	}
	declared := ""
	if a.declares { // then its title says nothing
		title, declared = a.o.Profile, ansi.SetProgramStatus(a.status())
	}
	a.screen.show(fresh, a.frame(), a.fill(title, block{}), declared, a.rows)
}

// status is what it declares: nothing while it asks for trust.
func (a *agent) status() ansi.ProgramStatus {
	s := ansi.ProgramStatus{State: ansi.ProgramStateIdle, App: "claude-code"}
	switch {
	case a.dialog != nil && a.dialog.kind == "trust":
		return ansi.ProgramStatus{}
	case a.dialog != nil || a.turn != nil && a.turn.isWaiting:
		s.State, s.Kind, s.Message = ansi.ProgramStateBlocked, ansi.ProgramStatusKindPermission, "approve Bash"
	case a.turn != nil:
		s.State = ansi.ProgramStateWorking
	case a.hasWorked:
		s.State = ansi.ProgramStateDone
	}
	return s
}

// read passes the terminal's input to the loop until the terminal is gone. The option Deaf makes it pause.
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
			a.events <- func() { a.handleInput(p) }
		}
		if err != nil || n == 0 {
			if !a.o.ignores("HUP") { // else it runs on without a terminal
				a.events <- func() { a.exitWith(129) }
			}
			return
		}
		if left > 0 {
			if left -= n; left == 0 {
				time.Sleep(a.o.DeafFor)
			}
		}
	}
}

// handleInput handles the bytes of one read. An ESC at the end becomes the Escape key after 25 ms.
func (a *agent) handleInput(p []byte) {
	a.log.add(Entry{Event: Input, Text: strconv.QuoteToGraphic(string(p))})
	a.keys.rest = append(a.keys.rest, p...)
	a.handleKeys()
	a.reads++
	n := a.reads
	a.after(25*time.Millisecond, func() {
		if a.reads == n && a.keys.escape() {
			a.handleKey(key{name: "esc"})
			a.handleKeys()
		}
	})
}

func (a *agent) handleKeys() {
	for k, ok := a.keys.next(); ok && a.exit == nil; k, ok = a.keys.next() {
		a.handleKey(k)
	}
}

func (a *agent) handleKey(k key) {
	if k.name == "status" {
		a.declares = a.o.Declares
		return
	}
	a.hasWorked = false // idle is declared again at the first key
	if a.dialog != nil {
		a.handleDialogKey(k)
		return
	}
	switch k.name {
	case "text":
		a.insertText(k.text)
	case "paste":
		a.insertPaste(k.text)
	case "newline":
		a.insertText("\n")
	case "enter":
		a.enter()
	case "esc":
		if a.turn != nil {
			a.interrupt()
		}
	case "backspace":
		a.backspace()
	case "ctrl-u": // to the beginning of the line: a draft of many lines survives one
		a.draft = a.draft[:strings.LastIndexByte(a.draft, '\n')+1]
	}
}

func (a *agent) insertText(s string) {
	a.draft += s
	a.log.add(Entry{Event: Typed, Text: s})
}

func (a *agent) insertPaste(s string) {
	a.log.add(Entry{Event: Typed, Kind: "paste", Text: s})
	lines, chars := strings.Count(s, "\n"), utf8.RuneCountInString(s)
	if lines < 3 && chars <= 800 {
		a.draft += s
		return
	}
	a.paste++
	shown := fmt.Sprintf("[Pasted text #%d +%d lines]", a.paste, lines)
	a.pastes[shown] = s
	a.draft += shown
}

// backspace removes the last character, or a paste's placeholder.
func (a *agent) backspace() {
	for shown := range a.pastes {
		if rest, ok := strings.CutSuffix(a.draft, shown); ok {
			a.draft = rest
			return
		}
	}
	_, size := utf8.DecodeLastRuneInString(a.draft)
	a.draft = a.draft[:len(a.draft)-size]
}

func (a *agent) takeDraft() string {
	text := a.draft
	for shown, paste := range a.pastes {
		text = strings.ReplaceAll(text, shown, paste)
	}
	a.draft = ""
	clear(a.pastes)
	return text
}

func (a *agent) enter() {
	switch {
	case strings.TrimSpace(a.draft) == "" || !a.isReady:
	case a.turn == nil:
		a.startTurn(a.takeDraft())
	default:
		text := a.takeDraft()
		a.log.add(Entry{Event: Queued, Text: text})
		a.queue = append(a.queue, text)
	}
}
