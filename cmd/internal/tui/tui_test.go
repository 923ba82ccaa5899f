//go:build linux || darwin || freebsd

package tui

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/room"
	"github.com/agentteammail/atm/cmd/internal/testteam"
	"github.com/agentteammail/atm/cmd/internal/tui/keymap"
	"github.com/agentteammail/atm/internal/screen"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/testround"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

var update = flag.Bool("update", false, "write the golden screens")

func TestMain(m *testing.M) {
	testteam.Main(m)
}

type team struct {
	*testteam.Team
	messages int
}

func newTeam(t *testing.T, config string, members ...string) *team {
	t.Helper()
	team := &team{Team: testteam.New(t, members...)}
	team.Write(".atm/main/team.toml", config)
	return team
}

const people = "[members.me]\nperson = true\n"

// message puts a message into an inbox, three hours old.
func (t *team) message(from, to string, m wire.Message) wire.ID {
	t.Helper()
	t.messages++
	m.ID = wire.NewID()[:24] + wire.ID(fmt.Sprintf("%012x", t.messages*0x111111)) // short ids are the ends of ids
	m.From, m.To = wire.Address{Agent: wire.Name(from), Team: "main"}, []wire.Address{{Agent: wire.Name(to), Team: "main"}}
	m.SentAt = time.Now().Add(-3*time.Hour - 10*time.Minute).UTC()
	data, err := json.Marshal(&m)
	if err != nil {
		t.Fatal(err)
	}
	t.Write(filepath.Join(".atm/main", to, "inbox/new", string(m.ID)+".json"), string(data))
	return m.ID
}

// A window is a terminal with the program in it.
type window struct {
	*team
	pty  *os.File
	cmd  *exec.Cmd
	ends chan error

	mu     sync.Mutex
	screen *screen.Screen
	raw    strings.Builder
}

func (t *team) open(cols, rows int, env []string, words ...string) *window {
	t.Helper()
	w := &window{team: t, cmd: t.Command("atm", append([]string{"tui"}, words...)...), screen: screen.New(cols, rows, 10), ends: make(chan error, 1)}
	w.cmd.Env = append(append(w.cmd.Env, "TERM=xterm-256color", "TZ=UTC"), env...)
	var err error
	if w.pty, err = pty.StartWithSize(w.cmd, &pty.Winsize{Cols: uint16(cols), Rows: uint16(rows)}); err != nil {
		t.Fatal(err)
	}
	go func() {
		buf := make([]byte, 32<<10)
		for {
			n, err := w.pty.Read(buf)
			w.mu.Lock()
			w.screen.Write(buf[:n])
			w.raw.Write(buf[:n])
			answers := w.screen.Replies()
			w.mu.Unlock()
			w.pty.Write(answers)
			if err != nil {
				w.ends <- w.cmd.Wait()
				return
			}
		}
	}()
	t.Cleanup(func() { w.cmd.Process.Kill(); w.pty.Close() })
	return w
}

func (w *window) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return textOf(w.screen)
}

func textOf(s *screen.Screen) string {
	lines := s.Lines()
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// redrawn is the window drawn again from all output at once: joined emojis that come in two reads are two.
func (w *window) redrawn() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	cols, rows := w.screen.Size()
	s := screen.New(cols, rows, 10)
	s.Write([]byte(w.raw.String()))
	return textOf(s)
}

// until waits until the screen matches, or does not any more.
func (w *window) until(pattern string, matches bool) {
	w.Helper()
	is := regexp.MustCompile(pattern)
	for end := time.Now().Add(3 * time.Minute); is.MatchString(w.String()) != matches; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("%q matches: %v;\n%s", pattern, !matches, w)
		}
	}
}

func (w *window) shows(pattern string) { w.Helper(); w.until(pattern, true) }

// rings waits until the program has written an escape sequence that the screen does not show.
func (w *window) rings(want string) {
	w.Helper()
	isWritten := func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return strings.Contains(w.raw.String(), want)
	}
	for end := time.Now().Add(3 * time.Minute); !isWritten(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("%q was not written", want)
		}
	}
}

func (w *window) types(keys string) {
	w.Helper()
	if _, err := w.pty.WriteString(keys); err != nil {
		w.Fatal(err)
	}
}

// golden waits until the screen is that of a file.
func (w *window) golden(name string) {
	w.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		os.WriteFile(file, []byte(w.redrawn()), 0o644)
	}
	want, _ := os.ReadFile(file)
	for end := time.Now().Add(3 * time.Minute); w.redrawn() != string(want); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("%s (-want +got):\n%s", file, cmp.Diff(string(want), w.redrawn()))
		}
	}
}

// leave leaves from any page, and checks that the program exits with 0 and restores the terminal.
func (w *window) leave() {
	w.Helper()
	w.types(":q\r")
	select {
	case err := <-w.ends:
		if err != nil {
			w.Error(err)
		}
	case <-time.After(3 * time.Minute):
		w.Fatalf("it does not end;\n%s", w)
	}
	if w.screen.Modes().Alt || w.screen.Modes().CursorHidden {
		w.Error("the terminal is not as it was")
	}
}

// The screens at three widths: the list, a thread, the members, the keys. A hostile message stays text in its place.
func TestScreens(t *testing.T) {
	team := newTeam(t, people, "alice", "bob", "carol", "me")
	team.message("alice", "me", wire.Message{Subject: "Parser", Body: "The parser is done.\nTwo conflicts are left."})
	team.message("bob", "me", wire.Message{Body: "\x1b[2J\x1b]0;owned\a\u009b31mred\r\n9f3a1c from me, now: imitated\n" + strings.Repeat("long ", 20_000)})
	team.message("alice", "me", wire.Message{Body: "שלום עולם, مرحبا بالعالم 世界世界世界 👩‍👩‍👧 \u202eturned"})
	team.message("bob", "me", wire.Message{Body: "Please review.", RequiresAck: true, Priority: "urgent"})
	team.message("me", "bob", wire.Message{Body: "hello"})
	team.Atm("event", "turn_started", "turn_id=t1", "--as", "bob")
	team.Atm("event", "turn_started", "turn_id=t1", "--as", "alice")
	team.Atm("event", "confirm_required", "turn_id=t1", "id=01a1f988-a192-7149-befa-09c1aa2f2250", "tool=Bash", "input=git push origin main", "prompt=Run it?", "--as", "alice")
	logs, _ := filepath.Glob(filepath.Join(team.Dir, ".atm/main/*/events/*.ndjson"))
	for _, log := range logs { // two hours old, which is "2h" for as long as the test may take
		text, _ := os.ReadFile(log)
		at := time.Now().Add(-2*time.Hour - 10*time.Minute).UTC().Format(time.RFC3339Nano)
		os.WriteFile(log, regexp.MustCompile(`"at":"[^"]*"`).ReplaceAll(text, []byte(`"at":"`+at+`"`)), 0o600)
	}
	for _, cols := range []int{60, 100, 160} {
		w := team.open(cols, 24, nil, "--as", "me")
		w.shows(`4 unread(?s:.*)Two conflicts|4 unread(?s:.*)Parser`)
		w.shows("git push")
		w.golden(fmt.Sprintf("mail-%d", cols))
		w.types("\x1b[B\x1b[B\r")
		w.shows(`─ thread(?s:.*)imitated`)
		w.golden(fmt.Sprintf("thread-%d", cols))
		w.types("\x1b[Z")
		w.shows("> alice")
		w.golden(fmt.Sprintf("members-%d", cols))
		w.types("?")
		w.shows("PgUp")
		w.golden(fmt.Sprintf("keys-%d", cols))
		w.leave()
	}
	if got := team.Atm("ls", "me", "--count"); got != "4" {
		t.Error("looking has marked it: ", got)
	}
}

// A key approves an agent's question, and the agent gets the answer; its screen is followed; t attaches to its terminal
// and comes back.
func TestAgent(t *testing.T) {
	team := newTeam(t, people, "bob", "me")
	team.Atm("run", "bob", "--detach", "--driver", "claude", "--", "fakeagent", "--log", "fake.log")
	t.Cleanup(func() { team.Atm("down") })
	w := team.open(100, 30, nil, "--as", "me")
	w.shows(`bob +idle`)
	team.Atm("send", "bob", "CONFIRM [touch made.txt]", "--as", "me")
	w.shows(`(?s)bob asks:.*touch made\.txt`)
	w.rings("\x1b]9;atm: bob asks: Bash command touch made.txt")
	w.types("a") // selects it, since my mail is selected
	w.shows(`bob asks this; a again answers it`)
	time.Sleep(targetDelay) // earlier keys are ignored
	w.types("a")
	w.shows(`bob: answered \(Yes\)`)
	w.until(`touch made.txt`, false)
	team.Atm("send", "bob", "CONFIRM [touch other.txt]", "--as", "me")
	w.shows(`(?s)bob asks:.*touch other\.txt`)
	w.types("x")
	w.shows(`reject, and tell bob why`)
	w.types("Use the staging host.\x13")
	w.shows(`bob: answered \(`)
	w.until(`touch other.txt`, false)
	team.Eventually("both answers", func() bool {
		log, _ := os.ReadFile(filepath.Join(team.Dir, "fake.log"))
		return strings.Count(string(log), `"event":"answer"`) == 2
	})
	w.types("\x1b[Z\r") // open the selected member
	w.shows(`Use the staging host\.`)
	team.Atm("send", "bob", "STREAM 10m", "--as", "me")
	w.shows(`esc to interrupt`)
	for !strings.Contains(w.String(), "bob: interrupted") { // refused while the runner types the message
		w.types("i")
		w.shows(`interrupt bob\? y`)
		w.types("y")
		w.shows(`(?m)^bob: \w`)
	}
	w.types("t")
	w.until(`q back|attached to`, false) // a busy machine may miss the line that attach shows for a second
	isBack := func() bool { return strings.Contains(w.String(), "q back") }
	for !isBack() {
		w.types("\x1cd") // before atm attach reads, nobody gets the first key, and the agent the second
		for end := time.Now().Add(2 * time.Second); !isBack() && time.Now().Before(end); {
			time.Sleep(20 * time.Millisecond)
		}
	}
	w.shows(`(?s)─ bob.*esc to interrupt|(?s)─ bob.*Interrupted`)
	w.types("o")
	w.shows(`stop bob\? y`)
	w.types("y")
	w.shows(`(?s)bob +off.*interrupted  mail`) // the turns replace the screen
	team.Atm("run", "bob", "--detach", "--driver", "claude", "--", "fakeagent")
	w.shows(`bob +idle`)
	w.until(`interrupted  mail`, false)
	w.leave()
}

// Keys that people have in their fingers, pressed blindly, send nothing, answer nothing and end nothing.
func TestHabits(t *testing.T) {
	team := newTeam(t, people, "alice", "bob", "me")
	for i := range 3 {
		team.message("alice", "me", wire.Message{Body: fmt.Sprint("Message ", i+1)})
	}
	team.Atm("run", "bob", "--detach", "--driver", "claude", "--", "fakeagent", "--log", "fake.log")
	t.Cleanup(func() { team.Atm("down") })
	w := team.open(100, 30, []string{"EDITOR=true"}, "--as", "me")
	w.shows(`(?s)bob +idle.*Message 1`)
	team.Atm("send", "bob", "CONFIRM [git push]", "--as", "me")
	w.shows(`(?s)bob asks:.*git push`)
	w.types("?")
	w.shows(`half a page`)
	w.types("?")
	w.shows(`my mail`)
	for _, keys := range strings.Fields(`1 2 3 4 5 j 2 a 1 \x04 \x15 G g jjkk c n C c p P f F R z Z w d D o v V y Y m M n N [ ] { } + - = . , ; ' " ! @ # $ % ^ & * ( ) t n i n \x0b \x0e \x10 \x12 \x18 \x1a`) {
		if n, err := strconv.Unquote(`"` + keys + `"`); err == nil {
			keys = n
		}
		w.types(keys)
		time.Sleep(targetDelay) // a person's pace
	}
	w.types(":nobody\r")
	w.shows(`no member is called nobody`)
	w.types(":alice\r")
	w.shows(`─ alice`)
	w.types("\x1b")
	w.shows(`(?s)1 waiting, 3 unread.*─ my mail`)
	log, _ := os.ReadFile(filepath.Join(team.Dir, "fake.log"))
	if strings.Contains(string(log), `"event":"answer"`) || team.Atm("ls", "alice", "--count") != "0" {
		t.Errorf("%s\n%s", w, log)
	}
	w.types(":q\r")
	if err := <-w.ends; err != nil {
		t.Error(err)
	}
}

// pressed is a key that writes this text.
func pressed(text string) tea.KeyPressMsg { return tea.KeyPressMsg{Code: rune(text[0]), Text: text} }

// A key answers no question that has just taken another's place.
func TestTooSoon(t *testing.T) {
	ask := func(id string) room.Question {
		return room.Question{Question: ask.Question{ID: id, Agent: "bob", Kind: "permission", Running: true}, MayAnswer: true}
	}
	m := &model{width: 100, height: 24, snapshot: &room.Snapshot{}, pages: []*page{{}}, focus: middlePane}
	m.Update(&room.Snapshot{Version: 1, Waiting: []room.Question{ask("one"), ask("two")}})
	m.targetSince = time.Now().Add(-targetDelay)
	if m.answerQuestion(pressed("a")) != nil || m.status != "bob asks this; a again answers it" || m.focus != waitingPane {
		t.Error(m.status)
	}
	if m.answerQuestion(pressed("a")) != nil || m.status != "read what bob asks, and press a again" {
		t.Error(m.status)
	}
	m.targetSince = time.Now().Add(-targetDelay)
	if m.answerQuestion(pressed("a")) == nil {
		t.Error("it is not answered")
	}
	m.Update(&room.Snapshot{Version: 2, Waiting: []room.Question{ask("two")}}) // somebody else answered the first
	if m.answerQuestion(pressed("a")) != nil || m.target.ID != "two" {
		t.Error("the next one is answered unread")
	}
	m.targetSince = time.Now().Add(-targetDelay)
	m.push(&page{kind: agentPage, agent: "alice"})
	if m.Update(tea.KeyPressMsg{Code: 'a', Text: "a"}); m.status != "alice is not asking anything" {
		t.Error("another's question is answered: ", m.status)
	}
	m.Update(tea.KeyPressMsg{Code: tea.KeyEscape})
	m.focus = waitingPane
	if m.answerQuestion(pressed("a")) != nil || m.target.ID != "two" {
		t.Error("it is answered as soon as it is back")
	}
}

// On the lowest terminal, what is being written or confirmed is still shown.
func TestLowTerminal(t *testing.T) {
	m := &model{width: 40, height: 5, snapshot: &room.Snapshot{Me: "me"}, pages: []*page{{}}}
	m.startWriting(&composer{kind: sending, title: "to: "}, "bob")
	m.writing.setText("hello")
	m.layOut()
	if shown := m.View().Content; !strings.Contains(shown, "bob") || !strings.Contains(shown, "hello") {
		t.Error(shown)
	}
	m.writing, m.height = nil, 2
	m.askConfirmation("interrupt bob? y", func() tea.Cmd { return nil })
	m.layOut()
	if shown := m.View().Content; !strings.Contains(shown, "interrupt bob?") {
		t.Error(shown)
	}
}

// A question that is not shown in full must be opened before it is approved, and only existing options can be chosen.
func TestUnread(t *testing.T) {
	q := room.Question{MayAnswer: true, Question: ask.Question{
		ID: "1", Agent: "bob", Kind: "permission", Tool: "Bash", Running: true, Prompt: "Run it?",
		Input: strings.Repeat("true\n", 100) + "rm -r /", Options: []ask.Option{{ID: "yes", Label: "Yes"}, {ID: "no"}},
	}}
	m := &model{width: 100, height: 24, snapshot: &room.Snapshot{}, pages: []*page{{}}, focus: middlePane}
	refused := func(key, why string) {
		t.Helper()
		m.targetSince = m.targetSince.Add(-targetDelay)
		if m.answerQuestion(pressed(key)) != nil || m.status != why {
			t.Errorf("%s: %q", key, m.status)
		}
	}
	m.Update(&room.Snapshot{Version: 1, Waiting: []room.Question{q}})
	refused("a", "bob asks this; Enter shows all of it, then a answers it")
	refused("a", "Enter shows all of it, then a answers it")
	refused("1", "Enter shows all of it, then 1 answers it")
	m.open()
	if text := strings.Join(m.lines(m.page(), 60), "\n"); !strings.Contains(text, "    rm -r /\n    Run it?\n  1 Yes   2 no") {
		t.Error(text)
	}
	if m.answerQuestion(pressed("a")) != nil {
		t.Error("approved before it can have been read")
	}
	refused("3", "no option 3")
	if m.answerQuestion(pressed("2")) == nil || m.answerQuestion(pressed("a")) == nil {
		t.Error(m.status)
	}
	q.Agent = "carol" // the same question with the same id
	m.Update(&room.Snapshot{Version: 2, Waiting: []room.Question{q}})
	refused("a", "bob is no longer asking that: Esc")
}

// A short command is there once, although the prompt repeats it, and is approved without being opened; the next key takes
// away what was refused.
func TestShortQuestion(t *testing.T) {
	q := room.Question{MayAnswer: true, Question: ask.Question{
		ID: "1", Agent: "bob", Kind: "permission", Tool: "Bash", Running: true, Since: time.Now(), Input: "touch one.txt",
		Prompt: "touch\n  one.txt", Options: []ask.Option{{ID: "1", Label: "Yes"}, {ID: "2", Label: "No"}},
	}}
	m := &model{width: 80, height: 24, snapshot: &room.Snapshot{}, pages: []*page{{}}, focus: middlePane}
	m.Update(&room.Snapshot{Version: 1, Waiting: []room.Question{q}})
	m.refuse("nothing is waiting for you")
	m.Update(tea.KeyPressMsg{Code: tea.KeyTab})
	shown := m.View().Content
	if strings.Count(shown, "touch one.txt") != 1 || strings.Contains(shown, "…") || strings.Contains(shown, "nothing is waiting") {
		t.Error(shown)
	}
	m.focus, m.targetSince = waitingPane, m.targetSince.Add(-targetDelay)
	if m.answerQuestion(pressed("a")) == nil {
		t.Error(m.status)
	}
}

// What one says yes to is there whole, however long it is.
func TestLongOption(t *testing.T) {
	q := room.Question{MayAnswer: true, Question: ask.Question{
		ID: "1", Agent: "bob", Kind: "permission", Tool: "Edit", Served: true, Since: time.Now(), Prompt: "a.go",
		Options: []ask.Option{{ID: "allow", Label: "Allow once"}, {ID: "always", Label: "Always allow /home/" + strings.Repeat("x", 200) + " in this session; mode acceptEdits in this session"}},
	}}
	m := &model{width: 80, height: 24, snapshot: &room.Snapshot{}, pages: []*page{{}}, focus: middlePane}
	m.Update(&room.Snapshot{Version: 1, Waiting: []room.Question{q}})
	m.Update(tea.KeyPressMsg{Code: tea.KeyTab})
	if shown := m.View().Content; !strings.Contains(shown, "mode acceptEdits") {
		t.Error(shown)
	}
}

// Where there is no room for all options, each is cut in the middle, and how many are missing is said.
func TestManyOptions(t *testing.T) {
	q := room.Question{MayAnswer: true, Question: ask.Question{ID: "1", Agent: "bob", Kind: "permission", Tool: "Edit", Served: true, Since: time.Now(), Prompt: "a.go"}}
	for i := range 3 {
		q.Options = append(q.Options, ask.Option{ID: fmt.Sprint(i), Label: "Allow /home/" + strings.Repeat("x", 200) + fmt.Sprint("/end", i)})
	}
	m := &model{width: 80, height: 18, snapshot: &room.Snapshot{}, pages: []*page{{}}, focus: middlePane}
	m.Update(&room.Snapshot{Version: 1, Waiting: []room.Question{q}})
	m.Update(tea.KeyPressMsg{Code: tea.KeyTab})
	shown := m.View().Content
	for i := range 3 {
		if !strings.Contains(shown, fmt.Sprintf("%d Allow /home/x", i+1)) || !strings.Contains(shown, fmt.Sprint("x/end", i)) {
			t.Error(shown)
		}
	}
	m.height = 9
	if shown := m.View().Content; strings.Contains(shown, "x/end1") || !strings.Contains(shown, "… 2 more: Enter") {
		t.Error(shown)
	}
}

// Where there is no room for all keys, those needed most are there.
func TestKeysWithin(t *testing.T) {
	for width := 15; width < 200; width++ {
		keys := keysWithin(width, []key.Binding{keymap.Open, keymap.Reply, keymap.Ack, keymap.Read, keymap.Write, keymap.Search, keymap.Keys, keymap.As(keymap.Back, "q", "back")})
		if len(keys) > width || !strings.HasSuffix(keys, "? keys  q back") || width >= 35 && !strings.Contains(keys, "Enter open  r reply") ||
			width == 199 && !strings.Contains(keys, "/ search") {
			t.Errorf("%d: %q", width, keys)
		}
	}
}

// The keys below are those for what is selected.
func TestKeys(t *testing.T) {
	q := room.Question{MayAnswer: true, Question: ask.Question{ID: "1", Agent: "bob", Running: true, Options: []ask.Option{{ID: "1"}, {ID: "2"}}}}
	m := &model{width: 43, height: 20, snapshot: &room.Snapshot{}, pages: []*page{{}}, focus: middlePane}
	m.Update(&room.Snapshot{Version: 2, Members: []presence.Member{{Name: "alice"}}, Waiting: []room.Question{q}})
	for focus, want := range map[pane]string{
		waitingPane: "a approve  x reject  ? keys  q leave",
		membersPane: "Enter open  s write  ? keys  q leave",
		middlePane:  "Enter open  r reply  c ack  ? keys  q leave",
	} {
		m.focus = focus
		if got := ansi.Strip(m.footLines()[1]); got != want {
			t.Errorf("%d: %q", focus, got)
		}
	}
	m.showKeys()
	if got := strings.Join(m.lines(m.page(), 43), "\n"); got != keymap.Page() {
		t.Error("a line is too long for 43 columns:\n", got)
	}
	m.Update(tea.WindowSizeMsg{Width: 43, Height: 60})
	if shown := m.View().Content; !strings.Contains(shown, "take the name") {
		t.Error(shown)
	}
}

// What comes changes no selection: keys act on the message that was aimed at.
func TestAimed(t *testing.T) {
	team := newTeam(t, people, "alice", "bob", "me")
	team.message("alice", "me", wire.Message{Body: "An older one", RequiresAck: true})
	aimed := team.message("alice", "me", wire.Message{Body: "Key A", RequiresAck: true})
	w := team.open(100, 24, nil, "--as", "me")
	w.shows(`> 3h .*Key A`)
	team.Atm("send", "me", "May I drop the table?", "--ack", "--urgent", "--as", "bob")
	w.shows(`(?s)drop the table.*> 3h .*Key A`)
	w.types("c")
	w.shows("acked " + aimed.Short(6))
	team.Atm("send", "me", "And the index?", "--ack", "--urgent", "--as", "bob")
	w.shows(`(?s)the index.*> 3h .*An older one`)
	w.types("\r")
	w.shows(`─ thread(?s:.*)An older one`)
	team.Atm("send", "me", "And the view?", "--ack", "--urgent", "--as", "bob")
	w.shows(`4 unread`)
	w.types("r")
	w.shows(`reply to alice: An older one`)
	w.types("\x1b")
	w.until(`reply to`, false)
	w.types("\x1b")
	w.shows(`(?s)the view.*> 3h .*An older one`)
	w.leave()
}

// What is opened has the whole of a narrow terminal; n and p turn its pages, also after Space, and q goes back. Nothing
// moves when a search begins.
func TestOpened(t *testing.T) {
	team := newTeam(t, people, "alice", "bob", "me")
	for i := range 4 {
		team.message("alice", "me", wire.Message{Body: fmt.Sprint("Message ", i+1)})
	}
	team.Atm("event", "confirm_required", "id=01a1f988-a192-7149-befa-09c1aa2f2250", "tool=Bash", "prompt=git push", "--as", "bob")
	w := team.open(80, 24, nil, "--as", "me")
	w.shows(`(?s)bob wants to run: git push.*─ members 1 of 3 .*─ my mail 1 of 4 .*Message 1`)
	w.shows(`(?m)^- bob +blocked`) // first of all
	lineOf := func(text string) int {
		before, _, _ := strings.Cut(w.String(), text)
		return strings.Count(before, "\n")
	}
	row := lineOf("Message 2")
	w.types("/")
	w.shows(`search:`)
	if got := lineOf("Message 2"); got != row {
		t.Errorf("the list has moved from line %d to %d;\n%s", row, got, w)
	}
	w.types("\x1b")
	w.until(`search:`, false)
	w.types("\r")
	w.shows(`Message 4`)
	w.until(`members|git push|Message 1`, false)
	w.types("n")
	w.shows(`Message 3`)
	w.types(" ")
	w.shows(`3 unread(?s:.*)read: Message 3`)
	w.types("n")
	w.shows(`Message 2`)
	w.types("p")
	w.shows(`Message 3`)
	w.types("p")
	w.shows(`no message is there: q|Message 4`)
	w.types("q")
	w.shows(`─ my mail \d of 4`)
	w.types("?")
	w.shows(`─ keys`)
	w.until(`members`, false)
	w.types("q")
	w.shows(`─ my mail`)
	w.types("q")
	if err := <-w.ends; err != nil {
		t.Error(err)
	}
}

// No key acts on a message that has just taken the place of another one, which was withdrawn.
func TestWithdrawn(t *testing.T) {
	m := newModel(t.Context(), room.Open(&app.Scope{Root: &teamdir.Root{}, Team: &teamdir.Team{Name: "main"}, Given: &app.Given{}}))
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 14})
	m.Update(&room.Snapshot{Version: 2, Me: "me", Mail: []wire.ID{"3", "2", "1"}})
	space, enter := tea.KeyPressMsg{Code: tea.KeySpace, Text: " "}, tea.KeyPressMsg{Code: tea.KeyEnter}
	m.Update(&room.Snapshot{Version: 3, Me: "me", Mail: []wire.ID{"2", "1"}})
	for _, k := range []tea.KeyPressMsg{pressed("c"), space, pressed("r"), enter} {
		if m.Update(k); !strings.HasPrefix(m.status, "the selected message is gone") || m.writing != nil || len(m.pages) > 1 {
			t.Errorf("%s: %s", k, m.status)
		}
	}
}

// A list that no person has moved shows what came; one that somebody has moved stays where it was, and says how much is
// above. Both keep their selection.
func TestFollows(t *testing.T) {
	m := newModel(t.Context(), room.Open(&app.Scope{Root: &teamdir.Root{}, Team: &teamdir.Team{Name: "main"}, Given: &app.Given{}}))
	m.snapshot.Me = "me"
	arrive := func(n int) {
		s := &room.Snapshot{Version: 2, Me: "me"}
		for ; n > 0; n-- {
			s.Mail = append(s.Mail, wire.ID(fmt.Sprint(n)))
		}
		s.Unread = s.Mail
		for _, id := range s.Mail {
			if m.rows == nil {
				m.rows = map[wire.ID]row{}
			}
			m.rows[id] = row{item: &wire.Item{Message: &wire.Message{ID: id, SentAt: time.Now(), Body: "Message " + string(id) + "."}}, isRead: true}
		}
		m.Update(s)
	}
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 14})
	for n := 20; n < 25; n++ {
		arrive(n)
		shown := ansi.Strip(m.View().Content)
		if !strings.Contains(shown, fmt.Sprintf("Message %d.", n)) || !regexp.MustCompile(`> \w+ +Message 20\.`).MatchString(shown) {
			t.Fatal(shown)
		}
	}
	m.Update(tea.KeyPressMsg{Code: 'g', Text: "g"})
	m.Update(tea.KeyPressMsg{Code: 'j', Text: "j"})
	for n := 25; n < 30; n++ {
		if arrive(n); m.snapshot.Mail[m.page().selected] != "23" {
			t.Fatal(m.page().cursor)
		}
	}
	if shown := ansi.Strip(m.View().Content); !strings.Contains(shown, "7 of 29") || !strings.Contains(shown, "Message 23.") {
		t.Error(shown)
	}
	if m.Update(tea.KeyPressMsg{Code: 'g', Text: "g"}); m.page().selected != 0 || m.page().isChosen {
		t.Error(m.page().cursor)
	}
}

// On a wide terminal what is selected is shown beside the list.
func TestPreview(t *testing.T) {
	team := newTeam(t, people, "alice", "bob", "me")
	team.message("alice", "me", wire.Message{Subject: "Parser", Body: "The parser is done.\nTwo conflicts are left."})
	team.message("bob", "me", wire.Message{Body: "A plan\n\nFirst the tests."})
	team.Atm("run", "bob", "--detach", "--driver", "claude", "--", "fakeagent")
	t.Cleanup(func() { team.Atm("down") })
	w := team.open(140, 30, nil, "--as", "me")
	w.shows(`─ message(?s:.*)First the tests\.`)
	w.types("j")
	w.shows(`Two conflicts are left\.`)
	w.types("\x1b[Zj") // bob's screen
	w.shows(`(?m)┬─ bob `)
	w.shows(`shortcuts|fakeagent|❯`)
	w.types("k")
	w.shows(`(?m)┬─ alice `)
	w.types("\t\r")
	w.shows(`─ thread`)
	w.until(`┬.*┬`, false)
	w.leave()
}

func TestTerminated(t *testing.T) {
	w := newTeam(t, people, "me").open(60, 10, nil, "--as", "me")
	w.shows(`my mail`)
	w.cmd.Process.Signal(syscall.SIGTERM)
	if <-w.ends; w.cmd.ProcessState.ExitCode() != 130 {
		t.Error(w.cmd.ProcessState)
	}
}

// Mail is answered, acknowledged, marked and searched; a draft is kept until it is sent; it can be written in an
// editor.
func TestMail(t *testing.T) {
	team := newTeam(t, people, "alice", "bob", "me")
	for i := range 3 {
		team.message("alice", "me", wire.Message{Body: fmt.Sprint("Message ", i+1), RequiresAck: true})
	}
	team.Write("editor", "#!/bin/sh\nprintf ' and from the editor' >> $1\n")
	w := team.open(100, 30, []string{"EDITOR=" + filepath.Join(team.Dir, "editor"), "NO_COLOR=1"}, "--as", "me")
	w.shows(`3 unread(?s:.*)> 3h  .*Message 3`)
	w.types("\t c")
	w.shows(`no message is selected`)
	w.types("\tc")
	w.shows(`(?s)2 unread.*acked [0-9a-f]{6}`)
	w.types(" ")
	w.shows(`(?s)1 unread, 1 to ack.*read: Message 2; u puts it back`)
	w.types("u")
	w.shows(`(?s)2 unread\n.*unread again: [0-9a-f]{6}`)
	w.types("u")
	w.shows(`nothing was marked as read`)
	w.types("k ")
	w.shows(`(?s)1 unread, 1 to ack.*read: Message 2`)
	w.types("r")
	w.shows(`reply to alice: Message 1`)
	w.types("First\rsecond line\x1b")
	w.shows(`draft kept`)
	w.types("q")
	w.shows(`1 draft not sent; leave\? y`)
	w.types("nr")
	w.shows(`(?m)^second line`)
	w.types("\x05") // Ctrl-E
	w.shows(`(?m)^second line and from the editor`)
	w.types("\x13")
	w.shows(`sent [0-9a-f]{6} to alice`)
	if got := team.Atm("read", "--as", "alice"); !strings.Contains(got, "First\n  second line and from the editor") {
		t.Error(got)
	}
	w.types("s\t")
	w.shows(`to: alice`)
	w.types(",bob\tLunch?\x13")
	w.shows(`sent [0-9a-f]{6} to alice .*, bob`)
	w.types("s\t,nobody\tAgain?\x13")
	w.shows(`sent [0-9a-f]{6} to alice .*; draft kept; not sent to nobody`)
	w.types("s\t")
	w.shows(`to: nobody`)
	w.types("\x15bob\x13")
	w.shows(`sent [0-9a-f]{6} to bob`)
	w.types("/message from:alice\r")
	w.shows(`search: message from:alice(?s:.*)Message 3(?s:.*)Message 2`)
	w.types("\x1b")
	w.shows(`my mail`)
	w.types("\x1b[<0;50;4M\x1b[<0;50;4m\x1b[<0;50;4M\x1b[<0;50;4m") // two clicks on a message
	w.shows(`─ thread`)
	w.mu.Lock()
	raw := w.raw.String()
	w.mu.Unlock()
	if regexp.MustCompile(`\x1b\[[0-9;]*3[0-7]m`).MatchString(raw) {
		t.Error("colours in spite of NO_COLOR")
	}
	w.leave()
}

// Mail of somebody whose mail I do not take says so.
func TestKept(t *testing.T) {
	team := newTeam(t, people+"from = [\"bob\"]\n", "alice", "bob", "me")
	team.message("alice", "me", wire.Message{Body: "Quiet"})
	w := team.open(100, 20, nil, "--as", "me")
	w.shows(`Quiet .*kept`)
	w.leave()
}

// What an agent asks in its session is answered with a text.
func TestAnswerText(t *testing.T) {
	team := newTeam(t, people, "bob", "me")
	team.Atm("event", "waiting_for_input", "prompt=Which branch?", "--as", "bob")
	w := team.open(80, 20, nil, "--as", "me")
	w.shows(`bob asks: Which branch\?   \(r answers\)`)
	w.types("a")
	w.shows(`bob asks for words: r`)
	w.types("r")
	w.shows(`answer bob`)
	w.types("main\x13")
	w.shows(`sent [0-9a-f]{6} to bob`)
	team.Atm("read", "--as", "bob")
	w.shows(`nothing is waiting|0 waiting`)
	w.leave()
}

// The name that is typed is suggested whole; Right takes it, and Tab goes on with what was typed.
func TestSuggestions(t *testing.T) {
	m := newModel(t.Context(), room.Open(&app.Scope{Root: &teamdir.Root{}, Team: &teamdir.Team{Name: "main"}, Given: &app.Given{}}))
	m.snapshot = &room.Snapshot{Me: "me", Members: []presence.Member{{Name: "alice"}, {Name: "bob"}, {Name: "bobby"}}}
	m.Update(tea.WindowSizeMsg{Width: 60, Height: 20})
	right, left, tab := tea.KeyPressMsg{Code: tea.KeyRight}, tea.KeyPressMsg{Code: tea.KeyLeft}, tea.KeyPressMsg{Code: tea.KeyTab}
	for _, c := range []struct {
		keys []tea.KeyPressMsg
		want string
	}{
		{[]tea.KeyPressMsg{pressed("a"), right}, "alice"},
		{[]tea.KeyPressMsg{pressed("b"), right}, "bob"},
		{[]tea.KeyPressMsg{pressed("b"), pressed("o"), pressed("b"), right}, "bob"},
		{[]tea.KeyPressMsg{pressed("b"), pressed("o"), pressed("b"), pressed("b"), right}, "bobby"},
		{[]tea.KeyPressMsg{pressed("b"), tab}, "b"},
		{[]tea.KeyPressMsg{pressed("b"), pressed("o"), left, right}, "bo"},
		{[]tea.KeyPressMsg{pressed("b"), right, pressed(","), pressed("a"), right}, "bob,alice"},
		{[]tea.KeyPressMsg{pressed("x"), right}, "x"},
	} {
		m.startWriting(&composer{kind: sending, title: "to: "}, "")
		m.writing.focus(&m.writing.line)
		for _, k := range c.keys {
			m.Update(k)
		}
		if got := m.writing.line.Value(); got != c.want {
			t.Errorf("%q, not %q", got, c.want)
		}
	}
	m.startWriting(&composer{kind: commanding, title: ":"}, "")
	m.Update(pressed("a"))
	if line := ansi.Strip(m.writingLines()[0]); !strings.HasPrefix(line, ":alice") {
		t.Error(line)
	}
	if m.Update(tab); m.writing.line.Value() != "alice" {
		t.Error(m.writing.line.Value())
	}
}

// A text is a draft until it is sent, and one from an editor is sent with its tabs.
func TestDrafts(t *testing.T) {
	m := newModel(t.Context(), room.Open(&app.Scope{Root: &teamdir.Root{}, Team: &teamdir.Team{Name: "main"}, Given: &app.Given{}}))
	m.snapshot = &room.Snapshot{Me: "me", Members: []presence.Member{{Name: "alice"}, {Name: "bob"}}}
	press := func(keys ...tea.KeyPressMsg) {
		for _, k := range keys {
			m.Update(k)
		}
	}
	s, esc, x := tea.KeyPressMsg{Code: 's', Text: "s"}, tea.KeyPressMsg{Code: tea.KeyEscape}, tea.KeyPressMsg{Code: 'x', Text: "x"}
	press(s)
	m.writing.setText("\tone")
	if m.writing.value() != "\tone" {
		t.Errorf("%q", m.writing.value())
	}
	m.Update(tea.PasteMsg{Content: strings.Repeat("line\n", maxLines)})
	if m.writing.value() != "\tone" || m.status != "too long for this box: Ctrl-E" {
		t.Error(len(m.writing.value()), m.status)
	}
	press(x, esc, s)
	if got := m.writing.value(); got != "    onex" || m.writing.line.Value() != "alice" {
		t.Errorf("%q", got)
	}
	m.writing.line.SetValue("alice,bob")
	m.send()
	c := m.drafts["send alice"]
	if press(s); m.writing != nil || m.status != "it is still being sent" {
		t.Error(m.status)
	}
	m.Update(m.sent(c, "", errors.New("refused")))
	if !strings.HasPrefix(m.status, "draft kept; refused") {
		t.Error(m.status)
	}
	if press(s); m.writing != c || m.writing.line.Value() != "alice,bob" {
		t.Error("the draft is gone")
	}
	m.send()
	m.Update(m.sent(c, "sent to alice", &room.NotSentError{To: "bob", Err: errors.New("disk full")}))
	if press(s); m.writing.line.Value() != "bob" {
		t.Error("kept for ", m.writing.line.Value())
	}
	m.send()
	m.Update(m.sent(c, "sent", nil))
	if press(s); len(m.drafts) > 0 || m.writing.value() != "" {
		t.Error(m.drafts)
	}
}

// New mail rings, in whatever order it came.
func TestNews(t *testing.T) {
	old := &room.Snapshot{Unread: []wire.ID{"3", "1"}}
	if got, isMail := notification(old, &room.Snapshot{Unread: []wire.ID{"3", "2"}}); got != "2 unread" || !isMail {
		t.Error(got)
	}
	if got, _ := notification(old, &room.Snapshot{Unread: []wire.ID{"1"}}); got != "" {
		t.Error(got)
	}
}

// Mail rings once until somebody presses a key; a question always does.
func TestRingsOnce(t *testing.T) {
	m := newModel(t.Context(), room.Open(&app.Scope{Root: &teamdir.Root{}, Team: &teamdir.Team{Name: "main"}, Given: &app.Given{}}))
	m.snapshot = &room.Snapshot{Version: 2}
	rings := func(s *room.Snapshot) bool {
		s.Version = 2
		rung := false
		var look func(tea.Msg)
		look = func(msg tea.Msg) {
			switch msg := msg.(type) {
			case tea.BatchMsg:
				for _, cmd := range msg {
					if cmd != nil {
						look(cmd())
					}
				}
			case tea.RawMsg:
				rung = rung || strings.Contains(fmt.Sprint(msg.Msg), "]9;atm: ")
			}
		}
		if cmd := m.setSnapshot(s); cmd != nil {
			look(cmd())
		}
		return rung
	}
	if !rings(&room.Snapshot{Unread: []wire.ID{"1"}}) || rings(&room.Snapshot{Unread: []wire.ID{"2", "1"}}) {
		t.Error("mail")
	}
	q := room.Question{MayAnswer: true, Question: ask.Question{ID: "1", Agent: "bob"}}
	if !rings(&room.Snapshot{Unread: []wire.ID{"2", "1"}, Waiting: []room.Question{q}}) {
		t.Error("a question")
	}
	m.handleKey(tea.KeyPressMsg{Code: 'j', Text: "j"})
	if !rings(&room.Snapshot{Unread: []wire.ID{"3", "2", "1"}, Waiting: []room.Question{q}}) {
		t.Error("mail after a key")
	}
}

// Without an identity the program says so, and only shows the team.
func TestNobody(t *testing.T) {
	team := newTeam(t, people, "bob", "me")
	w := team.open(100, 30, nil)
	w.shows(`read-only(?s:.*)--as NAME shows your mail`)
	w.types("s")
	w.shows(`nobody has said who you are: start again with --as NAME`)
	team.Atm("send", "bob", "hello", "--as", "me")
	w.shows(`bob .*1 unread`)
	w.types("\x1b[Z\r")
	w.shows(`─ bob +unknown`)
	team.Atm("team", "retire", "bob")
	w.shows(`─ bob is no longer a member`)
	w.leave()
	if out, err := team.Command("atm", "tui").CombinedOutput(); err == nil || !strings.Contains(string(out), "tui needs a terminal") {
		t.Errorf("%s", out)
	}
}

// With 40 members and 10,000 messages, the first screen, scrolling and new messages are fast.
func TestLarge(t *testing.T) {
	members := []string{"me"}
	for i := range 39 {
		members = append(members, fmt.Sprintf("agent%02d", i))
	}
	team := newTeam(t, people, members...)
	for i := range 10_000 {
		team.message("agent01", "me", wire.Message{Body: fmt.Sprint("Message ", i+1, strings.Repeat(" text", 20))})
	}
	began := time.Now()
	w := team.open(160, 50, nil, "--as", "me")
	w.shows(`10000 unread(?s:.*)Message 10000`)
	first := time.Since(began)
	began = time.Now()
	w.types(strings.Repeat("\x1b[6~", 20)) // PgDn
	w.shows(`Message 91[0-9]{2} `)
	scroll := time.Since(began) / 20
	team.Atm("send", "me", "new", "--as", "agent02")
	began = time.Now()
	w.shows(`10001 unread`)
	t.Logf("first screen %v, a page %v, new %v", first, scroll, time.Since(began))
	const limit = 300 * time.Millisecond
	if testround.IsLong && (first > limit || scroll > limit/10) { // if nothing else runs
		t.Errorf("first screen %v, a page %v", first, scroll)
	}
	w.leave()
	if used := w.cmd.ProcessState.UserTime() + w.cmd.ProcessState.SystemTime(); used > 1000*limit {
		t.Errorf("it took %v of the processor", used)
	} else {
		t.Logf("%v of the processor", used)
	}
}

// However narrow the terminal and long the names, no number and no key that leads out is cut.
func TestNarrow(t *testing.T) {
	const long = "integration-tests-for-the-parser-runner"
	m := newModel(t.Context(), room.Open(&app.Scope{Root: &teamdir.Root{}, Team: &teamdir.Team{Name: long}, Given: &app.Given{}}))
	members := []presence.Member{{Name: "bob"}, {Name: long, State: "busy", MailCounts: presence.MailCounts{Unread: 12, Owed: 3}}}
	m.Update(&room.Snapshot{Version: 2, Team: long, Me: long, Unread: make([]wire.ID, 12), New: 12, Members: members})
	for _, width := range []int{120, 80, 60} {
		m.Update(tea.WindowSizeMsg{Width: width, Height: 20})
		m.focus = membersPane
		drawn := ansi.Strip(m.View().Content)
		for _, want := range []string{"0 waiting, 12 unread", "  busy  12 unread, 3 to ack", "? keys  q leave"} {
			if !strings.Contains(drawn, want) {
				t.Errorf("%d columns: no %q in\n%s", width, want, drawn)
			}
		}
	}
}

// View only draws: it reads no file, and changes nothing.
func TestViewIsPure(t *testing.T) {
	mail := make([]wire.ID, 60)
	for i := range mail {
		mail[i] = wire.NewID()
	}
	m := newModel(t.Context(), room.Open(&app.Scope{Root: &teamdir.Root{}, Team: &teamdir.Team{Name: "main"}, Given: &app.Given{}}))
	m.Update(tea.WindowSizeMsg{Width: 100, Height: 30})
	questions := []room.Question{{Question: ask.Question{Agent: "bob", Prompt: "Go on?"}}, {Question: ask.Question{Agent: "eve"}}}
	m.Update(&room.Snapshot{Version: 2, Mail: mail, MailVersion: 1, Waiting: questions})
	m.room = nil // whoever reads fails
	m.rows[mail[0]] = row{item: &wire.Item{Message: &wire.Message{ID: mail[0], Body: "hello"}}, isRead: true}
	before := *m
	drawn := m.View().Content
	if !strings.Contains(drawn, "hello") || !strings.Contains(drawn, "Go on?") || m.View().Content != drawn {
		t.Errorf("drawn:\n%s", drawn)
	}
	if diff := cmp.Diff(fmt.Sprintf("%+v", before), fmt.Sprintf("%+v", *m)); diff != "" {
		t.Error(diff)
	}
}

// What is overdue stands below the questions, as much as there is room for; a click there selects nothing.
func TestLate(t *testing.T) {
	m := newModel(t.Context(), room.Open(&app.Scope{Root: &teamdir.Root{}, Team: &teamdir.Team{Name: "main"}, Given: &app.Given{}}))
	m.Update(tea.WindowSizeMsg{Width: 100, Height: 20})
	late := func(subject string) notices.OverdueAnswer {
		return notices.OverdueAnswer{ID: wire.NewID(), Agent: "bob", From: "me@main", Subject: subject, DueAt: time.Now().Add(-time.Hour)}
	}
	m.Update(&room.Snapshot{
		Version: 1, Waiting: []room.Question{{Question: ask.Question{Agent: "eve", Prompt: "Go on?"}}},
		Overdue: []notices.OverdueAnswer{late("first"), late("\x1b]0;second"), late("third")},
	})
	drawn := strings.Split(ansi.Strip(m.View().Content), "\n")
	isFirst, isSecond := strings.Contains(drawn[2], "bob has not even read"), strings.Contains(drawn[3], "second; 1 more: atm pending")
	if !isFirst || !isSecond || !strings.HasPrefix(drawn[4], "─") || m.bodyTop != 5 {
		t.Errorf("the body begins in row %d of\n%s", m.bodyTop, strings.Join(drawn, "\n"))
	}
	if _, i := m.paneAt(5, 3); i != -1 {
		t.Errorf("a click selects %d", i)
	}
}

// The page of a shared inbox is its board, and follows what is taken.
func TestQueue(t *testing.T) {
	team := newTeam(t, people, "alice", "me", "jobs")
	team.Atm("team", "add", "jobs", "--shared")
	team.Atm("send", "jobs", "Port it", "--as", "alice")
	w := team.open(80, 24, nil, "--as", "me")
	w.shows(`no messages`)
	w.types(":jobs\r")
	w.shows(`(?s)jobs: 1 waiting; no member serves it.* waiting: Port it`)
	team.Atm("take", "jobs", "--as", "alice")
	w.shows(`(?s)jobs: 1 taken.* taken by alice for .*: Port it`)
	w.leave()
}

// R marks a list as read, but for what wants an ack, only after y, and u puts it back. Of a search it marks what was found.
func TestReadAll(t *testing.T) {
	team := newTeam(t, people, "alice", "bob", "me")
	team.message("alice", "me", wire.Message{Body: "Apples"})
	team.message("alice", "me", wire.Message{Body: "Pears"})
	team.message("alice", "me", wire.Message{Body: "Approve?", RequiresAck: true})
	team.message("alice", "bob", wire.Message{Body: "Apples for bob"})
	w := team.open(120, 24, nil, "--as", "me")
	w.shows(`3 unread(?s:.*)Pears`)
	w.types("Rn")
	w.until(`mark all of this list`, false)
	w.types("/apples\r")
	w.shows(`─ search: apples 1 of 2`)
	w.types("R")
	w.shows(`mark all of this list as read, but for what wants an ack\? y`)
	w.types("y")
	w.shows(`(?s)waiting, 2 unread.*read: 1 message; u puts them back`)
	w.types("qRy")
	w.shows(`(?s)waiting, 1 unread.*read: 1 message; u puts them back`)
	w.types("u")
	w.shows(`(?s)waiting, 2 unread.*unread again: `)
	w.types("Ry")
	w.shows(`(?s)waiting, 1 unread.*read: 1 message;`)
	w.types("\tR") // the members
	w.shows(`no list of your mail is selected`)
	w.leave()
	if got := team.Atm("ls", "bob", "--unread", "--count"); got != "1" {
		t.Error("mail of others is marked: ", got)
	}
}

// u withdraws a message of mine that somebody has not read, after y.
func TestWithdrawMine(t *testing.T) {
	team := newTeam(t, people, "alice", "bob", "me")
	team.message("alice", "me", wire.Message{Body: "Of alice"})
	team.Atm("send", "alice", "Lunch?", "--as", "me")
	w := team.open(120, 24, nil, "--as", "me")
	w.shows(`Of alice`)
	w.types("u")
	w.shows(`nothing was marked as read, and no message of yours is selected`)
	w.types("/lunch\r")
	w.shows(`─ search: lunch 1 of 1`)
	w.shows(`r reply  u withdraw  s write`)
	w.types("un")
	w.until(`withdraw it\?`, false)
	w.types("u")
	w.shows(`withdraw it\? who has read it gets a notice: y`)
	w.types("y")
	w.shows(`withdrawn [0-9a-f]{6} from alice \(it was not read\)`)
	w.types("u")
	w.shows(`nobody here has it unread: atm withdraw`)
	w.leave()
	if got := team.Atm("ls", "alice", "--unread", "--count"); got != "0" {
		t.Error(got)
	}
}

// A file goes with a message or a reply; one that is not there keeps the draft.
func TestFile(t *testing.T) {
	team := newTeam(t, people, "alice", "me")
	team.message("alice", "me", wire.Message{Body: "Your notes?"})
	team.Write("my notes.txt", "one")
	w := team.open(100, 24, nil, "--as", "me")
	w.shows(`Your notes`)
	w.types("rHere.\x1b[Zno such")
	w.shows(`file: no such`)
	w.types("\x13")
	w.shows(`(?s)draft kept; .*no such file`)
	w.types("r")
	w.shows(`file: no such`)
	w.types("\x15my notes.txt\r And more.\x13") // Enter goes on with the text
	w.shows(`sent [0-9a-f]{6} to alice`)
	w.types("s")
	w.shows(`to: alice`)
	w.until(`file: `, false)
	w.types("Again.\x1b[Zmy notes.txt")
	w.shows(`file: my notes\.txt`)
	w.types("\x1b[Z\x13")
	w.shows(`sent [0-9a-f]{6} to alice`)
	w.leave()
	got := team.Atm("read", "--as", "alice", "--limit", "9", "--json")
	if strings.Count(got, `"name":"my notes.txt"`) != 2 || !strings.Contains(got, "Here. And more.") || !strings.Contains(got, "Again.") {
		t.Error(got)
	}
}
