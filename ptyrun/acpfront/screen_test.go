//go:build linux || darwin

package acpfront

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/agentteammail/atm/ptyrun"
	"github.com/agentteammail/atm/ptyrun/driver"
	emulator "github.com/agentteammail/atm/ptyrun/screen"
	"github.com/agentteammail/atm/reducer"
)

// drawn returns what the driver reads on the screen of a front.
func drawn(t *testing.T, f *front, cols, rows int) (driver.Look, driver.Reading) {
	t.Helper()
	s := emulator.New(cols, rows, 100)
	f.screen.out = s
	f.drawSized(cols, rows)
	d, _ := driver.Named("acp")
	look := driver.LookAt(s)
	return look, d.Read(look, driver.Reading{})
}

func frontOf(r *request) *front { return &front{session: "s1", request: r} }

// The driver reads a request exactly as it was written, at any width, or not at all.
func TestDialogIsRead(t *testing.T) {
	options := []acp.PermissionOption{{Name: "Always", Kind: "allow_always"}, {Name: "Yes (reject_once)", Kind: "allow_once"}, {Name: "No", Kind: "reject_once"}}
	for _, input := range []string{
		"git push", strings.Repeat("a b ", 200), "日本語 \x1b[31m\n1. Yes\n❯ 1. x", `"`, `\`, "  lead", "trail  ", "a\u202eb", strings.Repeat("\a", 16<<10), strings.Repeat("x", 99000),
	} {
		for _, cols := range []int{40, 80, 120} {
			prompt := map[int]string{40: "? permission\n \n\n  ❯ 1. Allow (allow_once)", 80: "", 120: "? permission\n  ❯ 1. Allow (allow_once)"}[cols]
			f := frontOf(&request{kind: "permission", tool: "execute", alias: "Bash", isCommand: cols == 80, input: input, prompt: prompt, options: options})
			f.screen.print(says, strings.Repeat("what it said ", 40)+"\n? permission\n  execute|Bash \"rm\"\n❯ 1. a (allow_once)\n  2. b")
			_, r := drawn(t, f, cols, 40)
			d := r.Dialog
			if d == nil || d.Kind != "permission" || r.Prompt || len(d.Options) != 3 {
				t.Fatalf("%.20q at %d: %+v", input, cols, d)
			}
			if d.Tool != "" && (d.Tool != "execute" || d.Alias != "Bash" || d.IsCommand != (cols == 80) || d.Input != input) || d.Tool == "" && len(input) <= maxRaw {
				t.Errorf("%.20q at %d: %s %s %.40q", input, cols, d.Tool, d.Alias, d.Input)
			}
			allow, _ := d.Allowing()
			deny, _ := d.Denying()
			if allow.Keys != "2" || !strings.HasPrefix(allow.Label, "Yes (reje") || deny.Keys != "3" || d.Options[0].Kind != "allow_always" {
				t.Errorf("at %d: %+v", cols, d.Options)
			}
		}
	}
}

// Each option has a key, from one option to the maximum.
func TestOptionsHaveKeys(t *testing.T) {
	for _, n := range []int{1, 9, maxOptions} {
		for i := range n {
			r := &request{kind: "question", prompt: "Which?", answer: make(chan int, 1)}
			r.options = slices.Repeat([]acp.PermissionOption{{Name: "Take it"}}, n)
			f := frontOf(r)
			_, reading := drawn(t, f, 80, 24)
			if d := reading.Dialog; d == nil || len(d.Options) != n {
				t.Fatalf("of %d: %+v", n, d)
			}
			f.press([]string{reading.Dialog.Options[i].Keys})
			if !r.isAnswered || <-r.answer != i {
				t.Errorf("option %d of %d: %+v", i+1, n, reading.Dialog.Options)
			}
		}
	}
}

// Whatever the agent says, the prompt is the front's own.
func FuzzTranscript(f *testing.F) {
	f.Add("hello", "draft", 80)
	f.Add("? permission\n  a| \"x\"\n  ❯ 1. y (allow_once)\n    2. n\n", "", 30)
	f.Add("… working, Ctrl-C ends the turn\n› x\x1b[A\x1b]0;x\a", "two\nlines", 20)
	f.Fuzz(func(t *testing.T, said, draft string, cols int) {
		cols = min(max(cols, 20), 200)
		fr := frontOf(nil)
		fr.draft = ptyrun.Clean(draft)
		for mark := range strings.SplitSeq(says+"|"+note+"|"+user+"|"+tool, "|") {
			fr.screen.print(mark, said)
		}
		look, r := drawn(t, fr, cols, 24)
		if r.Dialog != nil || r.Activity != reducer.Idle || r.Prompt != (strings.TrimSpace(fr.draft) == "") && plain(fr.draft) == fr.draft {
			t.Errorf("%q, %q: %+v\n%s", said, draft, r, strings.Join(look.Lines, "\n"))
		}
		fr.turn = &turn{}
		if _, r := drawn(t, fr, cols, 24); r.Prompt || r.Activity != reducer.Thinking {
			t.Errorf("busy: %+v", r)
		}
	})
}

// The keys are the same wherever the input is split, except after an escape.
func FuzzKeys(f *testing.F) {
	for _, s := range []string{"abc\r", "\x1b[200~two\r\nlines\x1b\x07\x1b[201~\r", "\x1b[A\x1bOPx\x1b[1;5C\x7f", "\x1b\x1b[201~\xc3\xa4\xc3", "\x03\x15\x04\x01", "\x1bä0", "\x1b[200 A0"} {
		f.Add(s, 3)
	}
	f.Fuzz(func(t *testing.T, s string, cut int) {
		var whole, pieces keys
		want := strings.Join(whole.feed([]byte(s)), "|")
		cut = max(1, cut)
		var got []string
		for p := []byte(s); len(p) > 0; {
			n := min(cut, len(p))
			for n < len(p) && p[n-1] == 0x1b {
				n++
			}
			got = append(got, pieces.feed(p[:n])...)
			p = p[n:]
		}
		if strings.Join(got, "|") != want || string(whole.rest) != string(pieces.rest) {
			t.Errorf("%q by %d: %q, not %q", s, cut, got, want)
		}
		if strings.ContainsAny(strings.ReplaceAll(want, "\x1b", ""), "\x00\x01\x02\x05\x07\x1a\u0085") {
			t.Errorf("%q: %q", s, want)
		}
	})
}

func TestKeys(t *testing.T) {
	var k keys
	for in, want := range map[string]string{
		"ab\r": "a|b|\r", "\x1b[200~a\r\nb\x1b[201~\n": "a\nb|\r", "\x1b[A\x1bOH\x1bxé\b": "é|\x7f", "\x01\x02\t": "",
	} {
		if got := strings.Join(k.feed([]byte(in)), "|"); got != want || len(k.rest) > 0 {
			t.Errorf("%q: %q", in, got)
		}
	}
	if got := k.feed([]byte("a\x1b")); len(got) != 2 || got[1] != "\x1b" || len(k.rest) > 0 {
		t.Errorf("a lone escape is no key: %q", got)
	}
}

// Keys edit the draft while nothing is asked. A key that came too early, or means no option, answers nothing.
func TestPress(t *testing.T) {
	f := frontOf(nil)
	for _, c := range [][2]string{{"a|b|ä|\x7f|\x7f", "a"}, {"\x04|c", "ac"}, {"\x15", ""}, {"\r|d|\x1b", ""}} {
		if f.press(strings.Split(c[0], "|")); f.draft != c[1] || f.turn != nil {
			t.Errorf("after %q the draft is %q", c[0], f.draft)
		}
	}
	f.turn = &turn{}
	if f.press([]string{"e", "\r", "\x04"}); f.draft != "e" {
		t.Errorf("in a turn the draft is %q", f.draft)
	}
	r := &request{kind: "question", options: []acp.PermissionOption{{Name: "Yes"}}, answer: make(chan int, 1)}
	f = frontOf(r)
	drawn(t, f, 80, 24)
	f.press([]string{"2", "z", "é", "\r", "x"})
	r.shownAt = time.Now()
	f.press([]string{"1"})
	if r.isAnswered {
		t.Error("a key that was for another request answered it")
	}
	r.shownAt = time.Time{}
	f.press([]string{"1"})
	if !r.isAnswered || f.shown() != nil || f.draft != "" {
		t.Errorf("shown is %+v, the draft is %q", f.shown(), f.draft)
	}
}
