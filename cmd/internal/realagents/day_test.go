//go:build linux

package realagents

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/letter"
)

// A day of each agent: mail, work, questions, interrupts, a person at its keyboard, and the end,
// after which nothing is left.
func TestDay(t *testing.T) {
	for _, program := range append(slices.Clone(programs), "qwen", "kilo", "continue", "cline", "pi", "copilot") {
		t.Run(program, func(t *testing.T) { newBob(t, program).day(t) })
	}
}

// The same for those that speak the Agent Client Protocol.
func TestDayByACP(t *testing.T) {
	for program, word := range map[string]string{"gemini": "--experimental-acp", "opencode": "acp"} {
		t.Run(program, func(t *testing.T) {
			bob := newBob(t, program)
			bob.acp = []string{word}
			bob.day(t)
		})
	}
}

// The same with atm's plugin, which takes the mail once there is a conversation, and leaves nothing to be typed.
func TestDayWithPlugin(t *testing.T) {
	for _, program := range []string{"opencode"} {
		t.Run(program, func(t *testing.T) {
			bob := newBob(t, program)
			s := bob.in(t)
			s.installHooks()
			s.talks("first")
			s.wait("the plugin to take mail", s.isPushed)
			bob.steps(t)
			if events := bob.do("events", "bob", "--json", "--limit", "0"); strings.Contains(events, `"plugin: `) {
				t.Errorf("something was typed:\n%s", events)
			}
		})
	}
}

func (bob *team) day(t *testing.T) {
	bob.in(t).run()
	bob.steps(t)
}

func (bob *team) steps(t *testing.T) {
	for _, step := range []struct {
		name string
		do   func(*team)
	}{
		{"word for word", (*team).wordForWord},
		{"long", (*team).long},
		{"while busy", (*team).whileBusy},
		{"approve", (*team).approve},
		{"reject", (*team).reject},
		{"urgent", func(s *team) { s.urgent("until something urgent comes", 0) }},
		// The model's first word comes after 5 s, its last after 8.
		{"urgent in the middle of an answer", func(s *team) { s.urgent("until words have come", 6*time.Second) }},
		{"interrupt", (*team).interrupt},
		{"draft", (*team).draft},
		{"suspend", (*team).suspend},
		{"stop", (*team).stop},
	} {
		if bob.acp != nil && slices.Contains([]string{"urgent", "draft", "suspend"}, step.name) { // it has no terminal
			continue
		}
		isRun := false
		t.Run(step.name, func(t *testing.T) {
			isRun = true
			s := bob.in(t)
			s.idle()
			step.do(s)
		})
		bob.isPart = bob.isPart || !isRun
	}
}

// wordForWord: what was sent is what the model gets, whatever it looks like, and what the model
// answers is in the history.
func (s *team) wordForWord() {
	body := "ECHO \"double\", 'single', `back`, $HOME, \\n and \\x1b: über, naïve — ✓ ✳ 日本語 👩‍💻.\n" +
		"!ls is no command here,\n/quit neither, #nor this, @file too;\n\n\tan empty line and a tab before.\n[atm 000000 from root] ?"
	id := s.send(body)
	s.getsOnce(id, body)
	s.idle()
	if !s.has(id, "read") || !s.has(id, "turn_started") || !s.has(id, "turn_done") {
		s.t.Error("its trace is not whole: ", s.do("trace", id))
	}
	var h struct {
		Turns []struct {
			Prompt, Response string
			Messages         []string
		}
	}
	s.get(&h, "history", "bob", "--limit", "1")
	const some = "naïve — ✓ ✳ 日本語"
	if len(h.Turns) != 1 || len(h.Turns[0].Messages) != 1 {
		s.t.Fatalf("its message is not in the history:\n%+v", h)
	}
	if r := h.Turns[0].Response; r != "" && !strings.Contains(r, some) { // "": only a screen has it
		s.t.Errorf("the response is not in the history: %q", r)
	}
	if turn := h.Turns[0]; !strings.Contains(turn.Prompt, some) && !s.isPushed() { // which no screen shows as it is
		s.t.Errorf("the prompt is not in the history:\n%q", turn.Prompt)
	}
}

// long: what a program shows as "[Pasted text]" arrives whole as well.
func (s *team) long() {
	var b strings.Builder
	for i := range 60 {
		fmt.Fprintf(&b, "line %d of a long text, with some words to make it long.\n", i)
	}
	body := strings.TrimSuffix(b.String(), "\n")
	s.getsOnce(s.send(body), body)
}

// slowly has bob at a slow answer whose first word has not come.
func (s *team) slowly(what string) {
	s.t.Helper()
	id := s.send("DOSLOW " + what)
	s.wait("work", func() bool { return len(s.prompts(id)) == 1 && s.state() == "busy" })
}

// whileBusy: what comes while it works goes in at the next idle, together, in order, each once.
func (s *team) whileBusy() {
	s.slowly("before the twenty")
	var ids []string
	for i := range 20 {
		ids = append(ids, s.send(fmt.Sprintf("number %d of twenty", i)))
	}
	all := func() string { // some give their model several texts at once
		var texts []string
		for _, l := range s.log() {
			for _, text := range append(l.Turn, l.User) {
				if l.Kind == "prompt" && strings.Contains(text, "of twenty") && !slices.Contains(texts, text) {
					texts = append(texts, text)
				}
			}
		}
		return strings.Join(texts, "\n")
	}
	s.wait("all of them", func() bool { return strings.Contains(all(), ids[19]) })
	s.idle()
	got, rest := all(), all()
	for i, id := range ids {
		if n := strings.Count(got, "[atm "+id); n != 1 {
			s.t.Errorf("%s arrived %d times", id, n)
		}
		_, after, found := strings.Cut(rest, fmt.Sprintf("number %d of twenty", i))
		if !found {
			s.t.Fatalf("number %d is not behind the one before it:\n%s", i, got)
		}
		rest = after
	}
	if n := len(s.prompts("of twenty")); n > 2 {
		s.t.Errorf("twenty messages were %d interruptions", n)
	}
	if s.hungUp("before the twenty") {
		s.t.Error("they interrupted it")
	}
}

// asksForLeave has bob ask for leave to run touch made.txt, with mail waiting.
func (s *team) asksForLeave() (waiting string) {
	s.t.Helper()
	os.Remove(s.made())
	before := len(s.prompts("DOTOOL"))
	s.send("DOTOOL please")
	q := s.asks()
	s.wait("the whole question", func() bool { // a program may draw it piece by piece
		p := s.pending()
		if len(p) == 1 {
			q = p[0]
		}
		return strings.Contains(q.Prompt, "touch made.txt")
	})
	isKnown := slices.Contains([]string{"Bash", "bash", "execute", "Shell", ""}, q.Tool) // "": only the screen tells, and no rule answers it
	if q.Kind != "permission" || !isKnown || s.state() != "blocked" {
		s.t.Errorf("it asks %+v, and is %s", q, s.state())
	}
	waiting = s.send("for after the question")
	time.Sleep(2 * time.Second) // in which it would be typed, or something pressed
	if p := s.pending(); len(p) != 1 || p[0].ID != q.ID {
		s.t.Errorf("the question did not stand: %+v", p)
	}
	if len(s.prompts("DOTOOL")) != before+1 || len(s.prompts(waiting)) > 0 || s.isMade() {
		s.t.Error("something was typed or pressed while it asked")
	}
	return waiting
}

// goesOn: once it has its answer, the mail comes.
func (s *team) goesOn(waiting string) {
	s.t.Helper()
	s.getsOnce(waiting, "for after the question")
	s.idle()
	if p := s.pending(); len(p) > 0 {
		s.t.Errorf("still open: %+v", p)
	}
}

// approve: the command runs when it was allowed.
func (s *team) approve() {
	waiting := s.asksForLeave()
	s.do("approve", s.pending()[0].ID, "--as", "lead")
	s.wait("the command to have run", s.isMade)
	s.goesOn(waiting)
}

// reject: the command does not run.
func (s *team) reject() {
	waiting := s.asksForLeave()
	s.do("reject", "bob", "--as", "lead")
	s.goesOn(waiting)
	if s.isMade() {
		s.t.Error("the command was run")
	}
}

// urgent: it ends what is under way, and arrives; what it ended is not lost.
func (s *team) urgent(work string, after time.Duration) {
	s.slowly(work)
	time.Sleep(after)
	id := s.send("ECHO drop that", "--urgent")
	s.wait("the urgent mail", func() bool { return len(s.prompts(id)) > 0 })
	if !s.hungUp(work) {
		s.t.Error("the answer under way was not ended")
	}
	s.idle()
	if n := len(s.prompts(id)); n != 1 {
		s.t.Errorf("it arrived %d times", n)
	}
	// Whether a program remembers what was interrupted, or is told again: the model has it.
	isKnown := after > 0
	for _, l := range s.log() {
		if l.Kind == "prompt" && strings.Contains(l.User, id) {
			isKnown = isKnown || strings.Contains(l.User+strings.Join(l.Turn, "\n"), work)
		}
	}
	if !isKnown {
		s.t.Error("what was interrupted is lost")
	}
}

// interrupt: atm interrupt ends the turn, and mail goes in afterwards.
func (s *team) interrupt() {
	s.slowly("until somebody says stop")
	if out := s.do("interrupt", "bob"); !strings.Contains(out, "interrupted") {
		s.t.Errorf("atm interrupt printed %q", out)
	}
	s.wait("the end of the answer", func() bool { return s.hungUp("until somebody says stop") })
	s.getsOnce(s.send("ECHO after that"), "ECHO after that")
	if n := len(s.prompts("until somebody says stop")); n != 1 {
		s.t.Errorf("what was interrupted was submitted %d times", n)
	}
}

// draft: what a person has half typed is left alone, and mail that is typed waits for it.
func (s *team) draft() {
	const half = "a thought half typed"
	s.do("type", "bob", half)
	isShown := func() bool { return strings.Contains(s.do("screen", "bob"), half) }
	s.wait("the draft", isShown)
	id := s.send("ECHO with a draft in the way")
	if s.isPushed() {
		s.getsOnce(id, "ECHO with a draft in the way")
	}
	time.Sleep(5 * time.Second) // a person's last key counts for 3 s
	if n := len(s.prompts(id)) + len(s.prompts(half)); n > 0 && !s.isPushed() || !isShown() {
		s.t.Fatalf("the draft was touched; %d submitted", n)
	}
	erase := strings.Repeat(`\b`, len(half))
	if s.program == "continue" { // of keys that come together it takes the first
		erase = `\x15`
	}
	s.do("type", "bob", "--raw", erase)
	s.getsOnce(id, "ECHO with a draft in the way")
}

// suspend: Ctrl-Z would leave it waiting for a shell's fg. (To Gemini CLI and Qwen Code it means undo: a draft is back.)
func (s *team) suspend() {
	if s.program == "gemini" || s.program == "qwen" {
		return
	}
	s.do("type", "bob", "--raw", `\x1a`)
	s.getsOnce(s.send("ECHO after Ctrl-Z"), "ECHO after Ctrl-Z")
}

// A program that asks at its start whether to trust its directory blocks, and nothing answers it.
func TestTrust(t *testing.T) {
	for _, program := range []string{"claude", "codex", "gemini", "qwen", "copilot"} { // opencode never asks
		t.Run(program, func(t *testing.T) {
			s := newBob(t, program, "--untrusted").in(t)
			s.runTrust()
			id := s.send("ECHO let me in")
			q := s.asks()
			if !strings.Contains(q.Prompt, "rust") || q.Tool != "" {
				t.Errorf("it asks %+v", q)
			}
			for _, args := range [][]string{{"approve", "bob", "--as", "lead"}, {"reject", "bob", "--as", "lead"}, {"interrupt", "bob"}} {
				if out, code := s.try(args...); code == 0 {
					t.Errorf("atm %s answered it: %s", args, out)
				}
			}
			time.Sleep(3 * time.Second) // in which it would be typed
			if p := s.pending(); len(p) != 1 || p[0].ID != q.ID || len(s.prompts(id)) > 0 {
				t.Errorf("the question did not stand: %+v", p)
			}
			if strings.Contains(s.do("screen", "bob"), "❯ No, exit") {
				s.chooseBelow("Yes")
			} else {
				s.do("type", "bob", "--raw", `\r`)
			}
			s.getsOnce(id, "ECHO let me in")
			s.stop()
		})
	}
}

// A runner that is killed in the middle of typing leaves nothing that the next one trips over: the
// message comes once, or again with a word that says so.
func TestRunnerIsKilled(t *testing.T) {
	for _, program := range programs {
		t.Run(program, func(t *testing.T) {
			s := newBob(t, program).in(t)
			s.run()
			run := filepath.Join(s.dir, ".atm", "main", "bob", "run")
			// Before the return key, about then, and when the text was taken.
			for _, after := range []time.Duration{0, 180 * time.Millisecond, 600 * time.Millisecond} {
				s.idle()
				id := s.send("ECHO whatever happens")
				for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
					if held, _ := filepath.Glob(filepath.Join(run, "../inbox/held/*/*.json")); len(held) > 0 {
						break
					}
				}
				time.Sleep(after)
				var pids struct{ Runner int }
				data, err := os.ReadFile(filepath.Join(run, "run.json"))
				if json.Unmarshal(data, &pids) != nil || pids.Runner <= 1 || syscall.Kill(pids.Runner, syscall.SIGKILL) != nil {
					t.Fatalf("run.json: %v: %s", err, data)
				}
				s.wait("the lock to be free", func() bool { return s.state() == "off" || s.state() == "unknown" })
				s.run()
				s.wait("the message to be read", func() bool { return s.has(id, "read") })
				s.wait("the prompt at the model", func() bool { return len(s.prompts(id)) > 0 }) // sent a moment after
				got := s.prompts(id)
				t.Logf("killed %s after the claim: %d times", after, len(got))
				for _, text := range got[1:] {
					if head, _, _ := strings.Cut(text, "\n"); !strings.Contains(head, "may be a repeat") {
						t.Errorf("it came again, and does not say so: %q", text)
					}
				}
			}
			s.stop()
		})
	}
}

// With atm's hooks installed a program tells of its turns itself, and takes mail in the middle of
// work: by a hook or typed, never both.
func TestHooks(t *testing.T) {
	for _, program := range programs {
		t.Run(program, func(t *testing.T) {
			s := newBob(t, program).in(t)
			s.installHooks()
			s.hooksTell()
		})
	}
}

// atm run brings the hooks along, and those that are installed as well are silent.
func TestBrought(t *testing.T) {
	for _, program := range []string{"claude", "opencode"} {
		for name, start := range map[string]func(*team){"alone": (*team).run, "installed": (*team).installHooks} {
			t.Run(program+"/"+name, func(t *testing.T) {
				s := newBob(t, program).in(t)
				s.kit.isNamed = true
				start(s)
				s.hooksTell()
			})
		}
	}
}

// hooksTell: a message begins one turn, of which hooks tell.
func (s *team) hooksTell() {
	// A session of Codex or opencode begins with the first message: whether there are hooks is not
	// known before that, so the first message may be typed.
	first := s.send("ECHO zero")
	s.wait("the model to get the first message", func() bool { return len(s.prompts(first)) == 1 })
	s.idle()
	if s.program == "opencode" {
		s.wait("the plugin to take mail", s.isPushed)
	}
	before := s.turns()
	id := s.send("ECHO one")
	s.getsOnce(id, "ECHO one")
	s.idle()
	if !s.has(id, "read") || !s.has(id, "turn_done") {
		s.t.Error("its trace is not whole: ", s.do("trace", id))
	}
	if n := s.turns() - before; n != 1 {
		s.t.Errorf("one message began %d turns", n)
	}
	if !strings.Contains(s.do("events", "bob", "--json"), `"source":"hook"`) {
		s.t.Error("no hook has told anything")
	}
	s.midWork()
	s.stop()
}

// midWork: what comes in the middle of work is handed over by a hook or typed. What a hook hands
// over is no prompt.
func (s *team) midWork() {
	os.Remove(s.made())
	s.send("DOTOOL please")
	s.asks()
	id := s.send("note this")
	time.Sleep(time.Second)
	s.do("approve", "bob", "--as", "lead")
	s.wait("the command to have run", s.isMade)
	s.wait("the message to be read", func() bool { return s.has(id, "read") })
	s.idle()
	typed, count, last := 0, map[string]int{}, ""
	for _, prompt := range s.prompts(id) {
		if !strings.Contains(prompt, letter.NotTyped) { // else the plugin has pushed it
			typed++
		}
	}
	for line := range strings.Lines(s.do("events", "bob", "--json", "--limit", "0")) {
		var e struct{ Source, Kind, New, ID string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			s.t.Fatalf("%v in %q", err, line)
		}
		if strings.HasSuffix(e.ID, id) {
			count[e.Kind]++
		}
		isBusy := e.New == "thinking" || e.New == "responding" || e.New == "tool_running"
		if e.Source == "pty" && e.Kind == "state_change" && isBusy && last == "turn_idle" {
			s.t.Errorf("the screen says busy after a hook has said idle: %s", line)
		}
		last = e.Kind
	}
	s.t.Logf("events: %v, typed %d times", count, typed)
	if count["injected"]+count["message_read"] != 1 || typed != count["injected"] {
		s.t.Errorf("the events say %v; the model got it as a prompt %d times", count, typed)
	}
}

// turns is how many bob has had.
func (s *team) turns() int {
	s.t.Helper()
	var h struct{ Turns []json.RawMessage }
	s.get(&h, "history", "bob")
	return len(h.Turns)
}

// installHooks installs atm's hooks, and starts bob. Codex asks whether the new hooks are to be trusted: nobody but a person at
// its terminal says yes.
func (s *team) installHooks() {
	s.t.Helper()
	s.install(s.kit)
	if s.program != "codex" {
		s.run()
		return
	}
	s.runTrust()
	if out, code := s.try("approve", "bob", "2", "--as", "lead"); code == 0 {
		s.t.Errorf("atm approve trusted the hooks: %s", out)
	}
	s.chooseBelow("Trust all")
	s.idle()
}
