//go:build linux

package realagents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/driver"
)

// versions are the programs at the kit's version, and some at their newest.
var versions = []struct {
	program  string
	isNewest bool
}{{"claude", false}, {"claude", true}, {"codex", false}, {"codex", true}, {"gemini", false}, {"opencode", false}, {"qwen", false}, {"qwen", true}}

func newVersion(t *testing.T, program string, isNewest bool, flags ...string) *team {
	t.Helper()
	bob := newBob(t, program, flags...)
	if isNewest {
		bob.useNewest()
	}
	return bob
}

func nameOf(program string, isNewest bool) string {
	if isNewest {
		return "newest-" + program
	}
	return program
}

// hostile are answers of which each paragraph looks like something of a program's own. No two begin alike, because
// the programs treat a first line in a way of their own.
var hostile = []string{
	"Added a test for the parser. All 12 pass.\n\nSearched the tree…",
	"Fixed (3 files).\n\n$ make test\n\n→ Read it\n\n● Bash(ls)",
	"The rate limit reached handler now retries: you've hit your limit.",
	"API Error: 529 is what the test expects.",
	"$ make test",
}

// What the model says is the answer, whatever it looks like, and no failure.
func TestAnswers(t *testing.T) {
	for _, v := range versions {
		t.Run(nameOf(v.program, v.isNewest), func(t *testing.T) {
			bob := newVersion(t, v.program, v.isNewest).in(t)
			bob.run()
			for _, answer := range hostile {
				bob.says(answer)
			}
			bob.stop()
		})
	}
}

// says has the model say something, which must be the answer of the turn.
func (bob *team) says(answer string) {
	bob.t.Helper()
	id := bob.send("SAYS " + answer)
	bob.wait("the turn", func() bool { return bob.has(id, "turn_done") })
	bob.idle()
	var h struct {
		Turns []struct{ Status, Response string }
	}
	bob.get(&h, "history", "bob", "--limit", "1")
	if len(h.Turns) != 1 || h.Turns[0].Status != "completed" || strings.TrimSpace(h.Turns[0].Response) != answer {
		bob.t.Errorf("it said %q, and the history has %+v", answer, h)
	}
}

// Looks beside the usual one: mail goes in, the answer comes out, and a permission is asked for and given.
func TestLooks(t *testing.T) {
	const env = `REAL_AGENTS_DIR="$dir" `
	for name, look := range map[string]struct {
		program  string
		isNewest bool
		args     []string
		env      string
	}{
		"claude for a screen reader":        {"claude", false, []string{"--settings", `{"axScreenReader":true}`}, ""},
		"newest claude for a screen reader": {"claude", true, []string{"--permission-mode", "default", "--settings", `{"axScreenReader":true}`}, ""},
		"newest claude in light colours":    {"claude", true, []string{"--permission-mode", "default", "--settings", `{"theme":"light-ansi"}`}, ""},
		"claude without colours":            {"claude", false, nil, "NO_COLOR=1 "},
		"newest claude without colours":     {"claude", true, []string{"--permission-mode", "default"}, "NO_COLOR=1 "},
		"codex without colours":             {"codex", false, nil, "NO_COLOR=1 "},
		"newest codex without animations":   {"codex", true, []string{"-c", "tui.animations=false"}, ""},
		"copilot without colours":           {"copilot", false, nil, "NO_COLOR=1 "},
		"gemini without colours":            {"gemini", false, nil, "NO_COLOR=1 "},
		"gemini for a screen reader":        {"gemini", false, []string{"--screen-reader"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			bob := newVersion(t, look.program, look.isNewest).in(t)
			bob.args = look.args
			if look.env != "" {
				bob.changeRun(env, env+look.env)
			}
			bob.run()
			bob.says("Fixed (3 files).")
			bob.slowly("before the next")
			id := bob.send("SAYS after it")
			bob.wait("the message behind it", func() bool { return bob.has(id, "turn_done") })
			bob.idle()
			bob.asksForTool()
			bob.stop()
		})
	}
}

// asksForTool has bob ask for a permission, which is given.
func (bob *team) asksForTool() {
	bob.t.Helper()
	id := bob.send("DOTOOL")
	if q := bob.asks(); q.Kind != "permission" {
		bob.t.Errorf("it asks %+v", q)
	}
	bob.do("approve", "bob", "--as", "lead")
	bob.wait("the file", bob.isMade)
	bob.wait("the turn", func() bool { return bob.has(id, "turn_done") })
	bob.idle()
}

// Dialogs of the newest Claude Code that are drawn otherwise than before.
func TestNewestDialogs(t *testing.T) {
	t.Run("trust", func(t *testing.T) {
		bob := newVersion(t, "claude", true, "--untrusted").in(t)
		bob.runTrust()
		if q := bob.asks(); !strings.Contains(q.Prompt, "Quick safety check") {
			t.Errorf("it asks %+v", q)
		}
		if out, code := bob.try("approve", "bob", "--as", "lead"); code == 0 {
			t.Errorf("trust was approved: %s", out)
		}
		bob.chooseBelow("Yes")
		bob.idle()
		bob.says("Trusted.")
		bob.stop()
	})
	t.Run("plan", func(t *testing.T) { // No and Yes without numbers, No selected
		bob := newVersion(t, "claude", true).in(t)
		bob.args = []string{"--permission-mode", "plan"}
		bob.run()
		bob.asksForTool()
		bob.stop()
	})
}

// A menu that a person opened holds mail, and is answered at the terminal only.
func TestMenus(t *testing.T) {
	for _, v := range versions[:2] {
		t.Run(nameOf(v.program, v.isNewest), func(t *testing.T) {
			bob := newVersion(t, v.program, v.isNewest).in(t)
			bob.run()
			for _, menu := range []struct{ command, title string }{
				{"/model", "Select model"}, {"/theme", "Theme"}, {"/config", "Settings"}, {"/permissions", "Permissions"},
			} {
				bob.do("type", "bob", menu.command, "--enter")
				bob.wait(menu.command, func() bool { return bob.state() == "blocked" })
				if q := bob.asks(); q.Kind != "prompt" || !strings.HasPrefix(q.Prompt, menu.title) {
					t.Errorf("%s: it asks %+v", menu.command, q)
				}
				id := bob.send("SAYS after " + menu.title)
				for _, args := range [][]string{{"approve", "bob"}, {"approve", "bob", "1"}, {"reject", "bob"}} {
					if out, code := bob.try(append(args, "--as", "lead")...); code == 0 || !strings.Contains(out, "atm attach bob") {
						t.Errorf("%s, %s: exit %d\n%s", menu.command, args, code, out)
					}
				}
				if bob.state() != "blocked" || bob.has(id, "read") {
					t.Errorf("%s: it is %s, and the message: %s", menu.command, bob.state(), bob.do("trace", id))
				}
				bob.wait("the menu to close", func() bool { // one takes the first key to leave its search
					bob.do("type", "bob", "--raw", `\e`)
					time.Sleep(time.Second)
					return bob.state() != "blocked"
				})
				bob.wait("the message", func() bool { return bob.has(id, "turn_done") })
				bob.idle()
			}
			bob.stop()
		})
	}
}

// A usage limit holds mail until it is over, here with the next turn.
func TestUsageLimit(t *testing.T) {
	for _, v := range versions[:4] {
		t.Run(nameOf(v.program, v.isNewest), func(t *testing.T) {
			bob := newVersion(t, v.program, v.isNewest).in(t)
			if v.program == "claude" { // a subscriber
				bob.changeRun("ANTHROPIC_API_KEY=fakefakefakefakefake", "CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-fakefakefakefakefake")
			}
			bob.run()
			bob.send("DOLIMIT")
			bob.wait("the limit", func() bool {
				if bob.state() == "blocked" { // it asks what to do
					bob.do("approve", "bob", "1", "--as", "lead")
				}
				return bob.state() == "limited"
			})
			id := bob.send("SAYS after the limit")
			time.Sleep(3 * time.Second)
			if bob.has(id, "read") || bob.state() != "limited" {
				t.Errorf("it is %s, and the message: %s", bob.state(), bob.do("trace", id))
			}
			bob.do("type", "bob", "hello", "--enter")
			bob.wait("the message", func() bool { return bob.has(id, "turn_done") })
			bob.idle()
			bob.stop()
		})
	}
}

// Two agents that are Codex, with one HOME, each run their commands under their own name, and one outlives the other.
func TestTwoCodex(t *testing.T) {
	for _, isNewest := range []bool{false, true} {
		t.Run(nameOf("codex", isNewest), func(t *testing.T) {
			s := newTeam(t, map[string]string{"bob": "codex"}, []string{"lead", "carl"}).in(t)
			if isNewest {
				s.useNewest()
			}
			said := filepath.Join(s.kit.dir, "work", "who")
			for _, agent := range []string{"bob", "carl"} {
				s.do(append([]string{"run", agent, "--detach", "--driver", "codex", "--"}, s.command()...)...)
			}
			for _, agent := range []string{"bob", "carl"} {
				s.do("wait", "--idle", agent, "--timeout", "60s")
				s.do("send", agent, "DORUN echo $ATM_AGENT >>who", "--as", "lead")
				s.do("wait", "--blocked", agent, "--timeout", "60s")
				s.do("approve", agent, "--as", "lead")
				s.wait(agent+" to run it", func() bool {
					names, _ := os.ReadFile(said)
					return strings.Contains(string(names), agent)
				})
				s.do("wait", "--idle", agent, "--timeout", "60s")
			}
			if names, _ := os.ReadFile(said); string(names) != "bob\ncarl\n" {
				t.Errorf("it was run by %q", names)
			}
			if left := s.leftovers(); strings.Contains(left, "app-server") {
				t.Errorf("they share a server:\n%s", left)
			}
			s.do("stop", "bob")
			says := func(what string) {
				s.do("send", "carl", "SAYS "+what, "--as", "lead")
				s.wait("carl's answer", func() bool { return strings.Contains(s.do("history", "carl", "--limit", "1"), "< "+what) })
			}
			says("I am here.")
			s.do("restart", "carl")
			s.do("wait", "--idle", "carl", "--timeout", "60s")
			says("I was restarted.")
			s.do("stop", "carl")
			if left := s.leftovers(); left != "" {
				t.Errorf("after atm stop:\n%s", left)
			}
		})
	}
}

// What the newest versions declare of their state counts: their work, what they ask, and at once that a person ended it.
func TestDeclared(t *testing.T) {
	for _, program := range []string{"claude", "codex", "pi"} {
		t.Run(program, func(t *testing.T) {
			bob := newVersion(t, program, true).in(t)
			if program == "claude" {
				bob.args = []string{"--permission-mode", "default"}
			}
			bob.run()
			rests := func(state string) func() bool {
				return func() bool {
					var m struct{ State, Source string }
					bob.get(&m, "status", "bob")
					return m.State == state && m.Source == "declared"
				}
			}
			bob.wait("idle, as it declares", rests("idle"))
			bob.asksForTool()
			bob.do("type", "bob", "DOSLOW", "--enter")
			bob.wait("work, as it declares", rests("busy"))
			bob.do("type", "bob", "--raw", `\e`)
			bob.wait("idle, as it declares, after Escape", rests("idle"))
			bob.stop()
		})
	}
}

// Two people's Codex in one HOME share a server, which has the environment of the first: each still acts under its own
// name, once its person has said which it is, and an agent that atm runs beside them does not touch it.
func TestTwoCodexByHand(t *testing.T) {
	for _, isNewest := range []bool{false, true} {
		t.Run(nameOf("codex", isNewest), func(t *testing.T) {
			s := newByHand(t, "codex", isNewest)
			profile := "PATH=" + filepath.Join(s.kit.dir, "bin") + ":$PATH\n" // of the login shell that runs commands
			if err := os.WriteFile(filepath.Join(s.home, ".bash_profile"), []byte(profile), 0o600); err != nil {
				t.Fatal(err)
			}
			s.do("team", "add", "dora")
			sends := func(w *window, word string) {
				w.says("DORUN atm send lead " + word)
				w.waitsFor("idle")
				s.wait(word+" from "+w.agent, func() bool { return strings.Contains(s.do("search", word, "to:lead"), w.agent+" to lead") })
			}
			isOf := func(w *window) {
				w.keys("!")
				for _, key := range "atm primer " + w.agent {
					w.keys(string(key))
				}
				time.Sleep(driver.SubmitDelay(20))
				w.enter()
				w.waitsForText("the rest is in atm --help")
				w.waitsFor("idle")
			}
			bob := s.open("bob")
			sends(bob, "first")
			carl := s.open("carl")
			s.gotOnce(bob, s.send("note beside carl"), "note beside carl")
			bob.clear()
			bob.says("hello")
			bob.waitsForText("atm primer carl")
			bob.waitsFor("idle")
			if s.hasEvent("carl", "turn_started") {
				t.Error("bob's new conversation counts as carl's")
			}
			isOf(bob)
			isOf(carl)
			s.gotOnce(bob, s.send("note in the new one"), "note in the new one")
			sends(carl, "second")
			sends(bob, "third")
			s.do(append([]string{"run", "dora", "--detach", "--driver", "codex", "--"}, s.command()...)...)
			s.do("wait", "--idle", "dora", "--timeout", "60s")
			s.do("stop", "dora")
			bob.leave()
			sends(carl, "fourth")
			isOf(s.open("bob"))
			id := s.send("note before the first prompt")
			s.wait("the message", func() bool { return s.gets("note before the first prompt") == 1 && s.has(id, "read") })
		})
	}
}
