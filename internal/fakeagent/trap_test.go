//go:build unix

package fakeagent

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/ptyrun/screen"
)

// What becomes of text and Return in one write differs from each to each.
func TestReturnWithText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a long line of it ", 60)
	for _, one := range []struct {
		about, profile, keys string
		submits              bool
		shows                string
	}{
		{"short text", "claude", "hello\r", true, "❯ hello"},
		{"a kilobyte", "claude", long + "\r", false, "[Pasted text #1 +1 lines]"},
		{"text", "codex", "hello\r", false, "› hello"},
		{"text", "gemini", "hello\r", false, " > hello"},
		{"text", "opencode", "hello\r", true, "┃  hello"},
		{"paste", "claude", "\x1b[200~hello\x1b[201~\r", true, "❯ hello"},
		{"paste", "codex", "\x1b[200~hello\x1b[201~\r", true, "› hello"},
		{"three lines", "claude", "p1\np2\np3\r", true, "  p3"},
	} {
		t.Run(one.profile+" "+one.about, func(t *testing.T) {
			t.Parallel()
			r := start(t, Options{Profile: one.profile})
			r.logged(Ready)
			r.logged(Reply) // the text is to come alone
			r.keys(one.keys)
			r.sees(one.shows)
			if one.submits {
				r.sees(pong)
			} else {
				if one.profile != "claude" {
					r.logged(Swallowed)
				}
				// A Return by itself, later, sends it.
				sent := time.Now()
				r.until("50 ms later", func(*screen.Screen) bool { return time.Since(sent) > 60*time.Millisecond })
				r.keys("\r")
				r.sees(pong)
			}
			if n := len(r.logged(Submitted).Of(Submitted)); n != 1 {
				t.Errorf("%d submits", n)
			}
		})
	}
}

func TestPlaceholders(t *testing.T) {
	t.Parallel()
	lines := "line1" + strings.Repeat("\nline", 12)
	for _, one := range []struct {
		o           Options
		text, shows string
	}{
		{Options{}, lines, "[Pasted text #1 +12 lines]"},
		{Options{Profile: "codex"}, lines, "› line1"},
		{Options{Profile: "codex"}, strings.Repeat("x", 1149), "[Pasted Content 1149 chars]"},
		{Options{Profile: "opencode"}, lines, "[Pasted ~13 lines]"},
		{Options{Profile: "gemini"}, lines, " > line1"},
		{Options{PlaceholderLines: -1, PlaceholderChars: -1}, lines, "❯\u00a0line1"},
		{Options{PlaceholderChars: 10}, "elevenchars", "[Pasted text #1]"},
	} {
		t.Run(fmt.Sprint(one.o.Args(), len(one.text)), func(t *testing.T) {
			t.Parallel()
			r := start(t, one.o)
			r.logged(Ready)
			r.keys("\x1b[200~" + one.text + "\x1b[201~")
			r.sees(one.shows)
			r.keys("\r")
			es := r.logged(Submitted)
			if got := es.Texts(Submitted)[0]; got != one.text {
				t.Errorf("submitted %q", got)
			}
		})
	}
}

func TestInputIsLost(t *testing.T) {
	t.Parallel()
	t.Run("returns are ignored", func(t *testing.T) {
		t.Parallel()
		r := start(t, Options{IgnoreCR: 2})
		r.logged(Ready)
		r.say("hello")
		for n := 1; n <= 2; n++ {
			r.logs("ignored", func(es Entries) bool { return len(es.Of(Ignored)) == n })
			r.keys("\r")
		}
		if es := r.logged(Submitted); len(es.Of(Submitted)) != 1 {
			t.Error(es.Of(Submitted))
		}
	})
	t.Run("characters vanish", func(t *testing.T) {
		t.Parallel()
		r := start(t, Options{Drop: 3})
		r.logged(Ready)
		r.keys("wörld")
		r.sees("❯\u00a0ld")
		if got := r.logged(Dropped).Texts(Dropped); !cmp.Equal(got, []string{"wör"}) {
			t.Errorf("%q", got)
		}
	})
	t.Run("deaf", func(t *testing.T) {
		t.Parallel()
		r := startIn(t, Options{Deaf: 5, DeafFor: time.Second}, 100, 30, true)
		r.logged(Ready)
		r.keys("hello, you")
		r.logged(Deaf)
		r.sees("❯\u00a0hello")
		if got := string(r.logged(Input).Received()); got != "hello" {
			t.Errorf("it read %q", got)
		}
		r.sees("❯\u00a0hello, you")
	})
	t.Run("early", func(t *testing.T) {
		t.Parallel()
		r := startIn(t, Options{StartDelay: time.Second, LoseEarly: true}, 100, 30, true)
		r.logged(Started)
		r.keys("too early\r")
		es := r.logged(Ready)
		if got := string(es.Received()); !strings.HasPrefix(got, "too early") || es.Has(Typed) {
			t.Errorf("received %q, typed %q", got, es.Texts(Typed))
		}
		r.sees("? for shortcuts")
	})
	t.Run("paste marks off, then on", func(t *testing.T) {
		t.Parallel()
		r := start(t, Options{Paste: "late", PasteAfter: time.Second})
		r.sees("? for shortcuts")
		if r.modes().Paste {
			t.Error("on at once")
		}
		r.until("2004", func(s *screen.Screen) bool { return s.Modes().Paste })
	})
	t.Run("junk", func(t *testing.T) {
		t.Parallel()
		r := start(t, Options{Profile: "gemini", Junk: "62;22c"})
		r.sees(" > 62;22c")
		r.misses("Type your message")
	})
}

func TestWaitsForReplies(t *testing.T) {
	t.Parallel()
	for _, name := range agents {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startIn(t, Options{Profile: name, AwaitReplies: time.Minute}, 100, 30, true)
			r.until("a query", func(*screen.Screen) bool { return bytes.Contains(r.raw, []byte("\x1b[c")) })
			if es := r.logged(Started); es.Has(Ready) {
				t.Fatal("ready without answers")
			}
			r.keys("\x1b[?62;22c\x1b[1;1R\x1b]11;rgb:0000/0000/0000\x1b\\")
			r.sees(looks[name].idle)
			if es := r.logged(Ready); es.Has(Typed) {
				t.Errorf("answers in the draft: %q", es.Texts(Typed))
			}
		})
	}
	t.Run("asks nothing", func(t *testing.T) {
		t.Parallel()
		for _, name := range agents {
			hello := withoutQueries(profileNamed(name).hello)
			s := screen.New(80, 24, 0)
			s.Write([]byte(hello))
			if got := s.Replies(); got != nil {
				t.Errorf("%s: %q answers %q", name, got, hello)
			}
		}
	})
}

func TestTrust(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		name, shows, yes, no string
		code                 int
	}{
		{"claude", "❯ 1. Yes, I trust this folder", "\r", "\x1b", 1},
		{"codex", "› 1. Trust and continue", "\r", "2", 0},
		{"gemini", "● 1. Trust folder (proj)", "\r", "3\r", 1},
	} {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			r := start(t, Options{Profile: one.name, Trust: true})
			r.sees(one.shows)
			r.keys("hello")
			r.logs("keys", func(es Entries) bool { return len(es.Of(DialogKey)) == 5 })
			r.keys(one.yes)
			r.sees(looks[one.name].idle)
			es := r.logged(Ready)
			if es.Has(Submitted) || es.Has(Typed) {
				t.Error("the dialog's keys went on to the prompt")
			}
			if es.Has(Restarted) != (one.name == "gemini") {
				t.Error("started anew?", es.Has(Restarted))
			}
			r.say("hello")
			r.sees(pong)
		})
		t.Run(one.name+" not", func(t *testing.T) {
			t.Parallel()
			r := start(t, Options{Profile: one.name, Trust: true})
			r.sees(one.shows)
			r.keys(one.no)
			if code := r.ends(); code != one.code {
				t.Errorf("exit code %d", code)
			}
		})
	}
	t.Run("late", func(t *testing.T) {
		t.Parallel()
		r := start(t, Options{Profile: "codex", TrustLate: time.Second})
		r.sees("Ask Codex to do anything")
		r.sees("Trust this folder?")
		r.misses("Ask Codex")
		r.keys("early\r") // this accepts it
		r.sees("Ask Codex to do anything")
		es := r.logged(Answered)
		if es.Has(Submitted) || es.Of(Answered)[0].Option != "trust" {
			t.Errorf("%+v", es.Of(Answered))
		}
	})
}

func TestDialogTraps(t *testing.T) {
	t.Parallel()
	t.Run("eats keys", func(t *testing.T) {
		t.Parallel()
		r := start(t, Options{DialogEats: 1})
		r.logged(Ready)
		r.say("CONFIRM it")
		r.state("confirming")
		r.keys("1")
		r.logged(DialogKey)
		r.sees("Do you want to proceed?")
		r.keys("1")
		r.logged(Answered)
	})
	t.Run("vanishes", func(t *testing.T) {
		t.Parallel()
		r := start(t, Options{DialogVanish: 100 * time.Millisecond})
		r.logged(Ready)
		r.say("CONFIRM it")
		r.logged(DialogGone)
		r.state("idle")
		r.keys("1")
		r.sees("❯\u00a01")
		if es := r.logged(Typed); es.Has(Answered) {
			t.Error(es.Of(Answered))
		}
	})
	t.Run("becomes another", func(t *testing.T) {
		t.Parallel()
		r := start(t, Options{DialogChange: 100 * time.Millisecond})
		r.logged(Ready)
		r.say("CONFIRM it")
		r.sees("rm -rf proj")
		r.keys("3")
		if got := r.logged(Answered).Of(Answered)[0]; got.Text != "rm -rf proj" || got.Option != "no" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("vanishes at the key", func(t *testing.T) {
		t.Parallel()
		r := start(t, Options{DialogFlip: "vanish"})
		r.logged(Ready)
		r.say("CONFIRM it THINK 60s")
		r.state("confirming")
		r.keys("1")
		r.sees("❯\u00a01")
		if es := r.logged(DialogGone); es.Has(Answered) {
			t.Error(es.Of(Answered))
		}
	})
	t.Run("changes at the key", func(t *testing.T) {
		t.Parallel()
		r := start(t, Options{DialogFlip: "change"})
		r.logged(Ready)
		r.say("CONFIRM it")
		r.state("confirming")
		r.keys("1")
		if got := r.logged(Answered).Of(Answered)[0]; got.Text != "rm -rf proj" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("title lies", func(t *testing.T) {
		t.Parallel()
		r := start(t, Options{Profile: "gemini", TitleLies: true})
		r.logged(Ready)
		r.say("CONFIRM it")
		r.sees("Allow execution of [Shell]?")
		r.titled("Ready (proj)")
	})
}

// However its writes are cut, the screen is the same in the end.
func TestSplit(t *testing.T) {
	t.Parallel()
	for _, name := range agents {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, Options{Profile: name, Split: 7, Tick: time.Minute})
			whole := start(t, Options{Profile: name, Tick: time.Minute})
			for _, one := range []*rig{r, whole} {
				one.logged(Ready)
				one.say("ECHO wörld 世界")
				one.sees("[[ECHO wörld 世界]]", looks[name].done)
				one.sees(looks[name].idle)
				one.misses(looks[name].busy)
				one.titled(looks[name].idleTitle)
			}
			same := func(s string) string { // but for the directory and the time it took
				lines := strings.Split(s, "\n")
				for i, l := range lines {
					if strings.Contains(l, "/proj") || strings.Contains(l, " Fake · ") {
						lines[i] = ""
					}
				}
				return strings.Join(lines, "\n")
			}
			if diff := cmp.Diff(same(whole.show()), same(r.show())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestResize(t *testing.T) {
	t.Parallel()
	for _, name := range agents {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, Options{Profile: name})
			r.logged(Ready)
			r.say("hello")
			r.sees(pong)
			r.state("idle")
			r.mu.Lock()
			r.screen.Resize(72, 22)
			r.mu.Unlock()
			if err := pty.Setsize(r.file, &pty.Winsize{Cols: 72, Rows: 22}); err != nil {
				t.Fatal(err)
			}
			if got := r.logged(Resized).Texts(Resized)[0]; got != "72x22" {
				t.Error(got)
			}
			r.sees(pong)
			if name == "claude" {
				r.until("a rule as wide", func(s *screen.Screen) bool {
					return strings.Contains(strings.Join(s.Lines(), "\n"), "\n"+strings.Repeat("─", 72)+"\n")
				})
			}
		})
	}
}

func TestSignals(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		profile string
		sig     syscall.Signal
		code    int
	}{
		{"claude", syscall.SIGHUP, 129},
		{"claude", syscall.SIGTERM, 143},
		{"codex", syscall.SIGHUP, 128 + 1},
		{"codex", syscall.SIGTERM, 128 + 15},
	} {
		t.Run(one.profile+" "+one.sig.String(), func(t *testing.T) {
			t.Parallel()
			r := start(t, Options{Profile: one.profile})
			r.logged(Ready)
			r.cmd.Process.Signal(one.sig)
			if code := r.ends(); code != one.code {
				t.Errorf("exit code %d", code)
			}
		})
	}
	t.Run("trapped", func(t *testing.T) {
		t.Parallel()
		r := start(t, Options{Trap: "HUP,TERM"})
		r.logged(Ready)
		r.cmd.Process.Signal(syscall.SIGTERM)
		r.logs("TERM", func(es Entries) bool { return len(es.Of(Signalled)) == 1 })
		r.say("hello")
		r.sees(pong)
		r.file.Close()
		r.cmd.Process.Signal(syscall.SIGHUP)
		r.logs("HUP", func(es Entries) bool { return len(es.Of(Signalled)) >= 2 })
		if err := r.cmd.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("it is gone: %v", err)
		}
	})
}

// What is left behind is in a session of its own, and only KILL ends it.
func TestOrphan(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	r.logged(Ready)
	r.say("LEAVE-ORPHAN 20s tty EXIT 0")
	r.ends()
	pid := r.logged(Orphaned).Of(Orphaned)[0].Code
	if pid <= 1 {
		t.Fatalf("orphan %d", pid)
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM, 0} {
		if err := p.Signal(sig); err != nil {
			t.Errorf("%v: %v", sig, err)
		}
	}
	if sid, err := syscall.Getpgid(pid); err != nil || sid != pid {
		t.Errorf("group %d of %d: %v", sid, pid, err)
	}
	select {
	case <-r.gone:
		t.Error("the terminal is at its end, though a process holds it")
	default:
	}
	p.Kill()
	<-r.gone
}

func TestRestart(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	r.logged(Ready)
	r.say("RESTART")
	r.logged(Restarted)
	es := r.logs("ready again", func(es Entries) bool { return len(es.Of(Ready)) == 2 })
	if a, b := es.Of(Ready)[0].PID, es.Of(Ready)[1].PID; a != b || a != r.cmd.Process.Pid {
		t.Errorf("processes %d and %d", a, b)
	}
	r.say("ECHO again")
	r.sees("[[ECHO again]]")
}

func TestHooks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	seen := filepath.Join(dir, "seen")
	// At the first Stop it keeps the turn going.
	hook := fmt.Sprintf(`cat >%[1]s/in; cat %[1]s/in >>%[2]s
		if grep -q '"hook_event_name":"Stop"' %[1]s/in && grep -q '"stop_hook_active":false' %[1]s/in; then
			echo '{"decision":"block","reason":"ECHO mail"}'
		elif grep -q '"prompt":"forbidden"' %[1]s/in; then
			echo no >&2; exit 2
		fi`, dir, seen)
	r := start(t, Options{Hook: hook})
	r.logged(Ready)
	r.say("CONFIRM it")
	r.state("confirming")
	r.keys("1")
	r.sees("[[ECHO mail]]")
	es := r.logged(TurnOver)
	var kinds []string
	for _, e := range es.Of(HookRan) {
		kinds = append(kinds, e.Kind)
	}
	want := []string{"SessionStart", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "Notification", "PostToolUse", "Stop", "Stop"}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"CONFIRM it"}, es.Texts(Submitted)); diff != "" {
		t.Error(diff)
	}
	r.say("forbidden")
	r.sees("blocked by hook: no")
	in, err := os.ReadFile(seen)
	if err != nil || !bytes.Contains(in, []byte(`"command":"it"`)) {
		t.Errorf("hooks got %s (%v)", in, err)
	}
}
