package fakeagent

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestKeys(t *testing.T) {
	for in, want := range map[string][]keystroke{
		"hé\r":                                  {{"text", "hé"}, {name: "enter"}},
		"a\x7f\t\n\x03\x15":                     {{"text", "a"}, {name: "backspace"}, {name: "tab"}, {name: "newline"}, {name: "ctrl-c"}, {name: "ctrl-u"}},
		"\x1b[200~a\r\nb\rc\x1b[201~\r":         {{"paste", "a\nb\nc"}, {name: "enter"}},
		"\x1b[200~\x1b[20\x1b[201~":             {{"paste", "\x1b[20"}},
		"\x1b[200~a\x1b[201~b\x1b[201~":         {{"paste", "a"}, {"text", "b"}, {name: "other"}},
		"\x1b[A\x1bOB\x1b[1;5C":                 {{name: "up"}, {name: "down"}, {name: "right"}},
		"\x1b[?62;22c\x1b[3;4R\x1b[I":           {{"reply", "\x1b[?62;22c"}, {"reply", "\x1b[3;4R"}, {"reply", "\x1b[I"}},
		"\x1b]11;rgb:0/0/0\x07x\x1b]10;?\x1b\\": {{"reply", "\x1b]11;rgb:0/0/0\x07"}, {"text", "x"}, {"reply", "\x1b]10;?\x1b\\"}},
		"\x1bP1+r\x1b\\\x1b_Gok\x1b\\":          {{"reply", "\x1bP1+r\x1b\\"}, {"reply", "\x1b_Gok\x1b\\"}},
		"\x1b[27u\x1b[13u\x1b\r\x1bx":           {{name: "esc"}, {name: "enter"}, {name: "newline"}, {name: "alt"}},
		"\x1b\x1b[B":                            {{name: "esc"}, {name: "down"}},
		"\xff\xfeok":                            {{"text", "\uFFFDok"}},
	} {
		var k keys
		got := k.feed([]byte(in))
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(keystroke{})); diff != "" {
			t.Errorf("%q: %s", in, diff)
		}
		if k.half() {
			t.Errorf("%q is half", in)
		}
	}
}

func TestKeysHalf(t *testing.T) {
	var k keys
	if got := k.feed([]byte("\x1b")); got != nil || !k.half() {
		t.Errorf("%v", got)
	}
	if got := k.settle(); len(got) != 1 || got[0].name != "esc" || k.half() {
		t.Errorf("%v", got)
	}
	k.feed([]byte("\x1b[2"))
	if got := k.settle(); len(got) != 2 || got[1].text != "[2" {
		t.Errorf("%v", got)
	}
}

// Bytes cut anywhere mean the same.
func TestKeysCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.SampledFrom([]string{"a", "wörld", "世", "\r", "\n", "\x1b[A", "\x1b[200~", "\x1b[201~", "\x1b]11;x\x07", "\x1b[?1;2c", "\x1b\\", "\x7f"})).Draw(t, "parts")
		all := strings.Join(parts, "")
		join := func(ks []keystroke) string {
			var b strings.Builder
			for _, k := range ks {
				if k.name == "text" { // how text is cut up is free
					b.WriteString(k.text)
				} else {
					b.WriteString("<" + k.name + ":" + k.text + ">")
				}
			}
			return b.String()
		}
		var whole, cut keys
		want := join(whole.feed([]byte(all)))
		var got []keystroke
		for i := 0; i < len(all); {
			n := min(rapid.IntRange(1, 5).Draw(t, "n"), len(all)-i)
			got = append(got, cut.feed([]byte(all[i:i+n]))...)
			i += n
		}
		if join(got) != want {
			t.Fatalf("%q: %q, cut up %q", all, want, join(got))
		}
	})
}

func TestDraft(t *testing.T) {
	var d draft
	d.typed("one\ntwo")
	d.pasted("a\nb", "[Pasted]")
	d.typed("x")
	if d.text() != "one\ntwoa\nbx" || d.shown() != "one\ntwo[Pasted]x" || !d.placeholder() {
		t.Errorf("%q is shown as %q", d.text(), d.shown())
	}
	d.backspace()
	d.backspace()
	if d.shown() != "one\ntwo" {
		t.Errorf("%q", d.shown())
	}
	for _, want := range []string{"one\n", "one", "", ""} {
		if d.cutLine(); d.shown() != want {
			t.Errorf("%q, not %q", d.shown(), want)
		}
	}
	if !d.empty() {
		t.Error("not empty")
	}
	d.typed("é")
	d.backspace()
	d.backspace()
	if !d.empty() {
		t.Error("not empty")
	}
}

func TestSteps(t *testing.T) {
	sec := time.Second
	for text, want := range map[string][]step{
		"hello":                      nil,
		"THINK 2 STREAM 1.5s":        {{word: "THINK", lasting: 2 * sec}, {word: "STREAM", lasting: 1500 * time.Millisecond}},
		"[atm from bob] THINK 20ms.": {{word: "THINK", lasting: 20 * time.Millisecond}},
		"RETHINK 2 think":            nil,
		"CONFIRM":                    {{word: "CONFIRM"}},
		"CONFIRM go test ./... TOOL 1s\nthe rest": {{word: "CONFIRM", arg: "go test ./..."}, {word: "TOOL", lasting: sec}},
		"CONFIRM touch x\nthe rest":               {{word: "CONFIRM", arg: "touch x"}},
		"CONFIRM [echo EXIT 2] EXIT 3":            {{word: "CONFIRM", arg: "echo EXIT 2"}, {word: "EXIT", amount: 3}},
		"TOOL 1s [npm test] ERROR":                {{word: "TOOL", lasting: sec, arg: "npm test"}, {word: "ERROR"}},
		"LEAVE-ORPHAN 1s tty CRASH TERM":          {{word: "LEAVE-ORPHAN", lasting: sec, arg: "tty"}, {word: "CRASH", arg: "TERM"}},
		"CRASH now":                               {{word: "CRASH"}},
		"FLOOD 0.5 ECHO":                          {{word: "FLOOD", amount: .5}, {word: "ECHO", arg: "FLOOD 0.5 ECHO"}},
	} {
		if diff := cmp.Diff(want, steps(text), cmp.AllowUnexported(step{})); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, one := range []struct {
		text  string
		width int
		want  []string
	}{
		{"", 5, []string{""}},
		{"one two three", 7, []string{"one two", "three"}},
		{"onetwothree", 4, []string{"onet", "woth", "ree"}},
		{"世界世界", 5, []string{"世界", "世界"}},
		{"a\n\nb", 5, []string{"a", "", "b"}},
		{"世", 1, []string{"世"}},
	} {
		if diff := cmp.Diff(one.want, wrap(one.text, one.width)); diff != "" {
			t.Errorf("%q: %s", one.text, diff)
		}
	}
}

func TestOptions(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	o := Options{Profile: "codex", Swallow: -1, Trust: true, Drop: 3, Junk: "a b", Trap: "HUP,TERM"}
	back, err := parse("test", o.Args(), none)
	if err != nil {
		t.Fatal(err)
	}
	want := o
	if err := want.check(); err != nil {
		t.Fatal(err)
	}
	if back != want {
		t.Errorf("%v came back as %+v", o.Args(), back)
	}
	if args := (Options{}).Args(); args != nil {
		t.Errorf("nothing is %q", args)
	}

	env := func(key string) (string, bool) {
		v, ok := map[string]string{"FAKEAGENT_IGNORE_CR": "2", "FAKEAGENT_PROFILE": "gemini"}[key]
		return v, ok
	}
	if o, err := parse("codex", []string{"--profile=opencode"}, env); err != nil || o.IgnoreCR != 2 || o.Profile != "opencode" {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err := parse("codex", nil, none); err != nil || o.Profile != "codex" {
		t.Errorf("by its name: %+v, %v", o, err)
	}
	for _, args := range []string{"--profile=emacs", "--paste=maybe", "--busy=no", "--trap=FOO", "stray", "--ctrl-c=x"} {
		if _, err := parse("test", []string{args}, none); err == nil {
			t.Errorf("%s is no mistake", args)
		}
	}
}
