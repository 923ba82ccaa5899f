package screen

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// filtered returns what a filter sends of a text in pieces of a size.
func filtered(t *testing.T, in string, size int) string {
	t.Helper()
	var f OutputFilter
	var out []byte
	for p := range slices.Chunk([]byte(in), size) {
		out = append(out, f.Filter(p)...)
		if len(f.partial) > maxReport+10 {
			t.Fatalf("%d bytes are kept", len(f.partial))
		}
	}
	return string(out)
}

func TestOutputFilter(t *testing.T) {
	in := "a\x1b]7501;new=1:app=x:state=idle\x1b\\b\x1b]2;✳ title\x1b\\c\x1b]7501;?\x1b\\d\x1b[1me\x1b]7501;state=\x1b[2mf\x1b]7501;x\x18g" +
		"\x1b]7501;state=idle:more=" + strings.Repeat("a", 5000) + "\a\x1b]750h\a\x1b"
	const want = "ab\x1b]2;✳ title\x1b\\cd\x1b[1me\x1b[2mfg"
	for size := 1; size <= len(in); size++ {
		if got := filtered(t, in, size); got != want {
			t.Fatalf("in pieces of %d: %q", size, got)
		}
	}
}

// A person's terminal is sent what draws, and nothing that acts on it or that it answers.
func TestWhatATerminalIsSent(t *testing.T) {
	t.Parallel()
	for _, sent := range []string{
		"text é 端末 ✳ \u00c0\u00a0\r\n\t\b\a\x0e\x0f", "\x1b[m\x1b[38:2::1:2:3;1;4:3m\x1b[38;5;1m", "\x1b[5;7H\x1b[2J\x1b[K\x1b[3;9r\x1b[2L\x1b[P\x1b[4@\x1b[9b\x1b[?2K",
		"\x1b7\x1b8\x1bM\x1bD\x1bE\x1bc\x1b=\x1b>\x1b#8\x1b(0\x1b)B", "\x1b[?25l\x1b[?25h\x1b[?1049h\x1b[?2026h\x1b[?2026l\x1b[4h\x1b[?1;2004h\x1b[!p", "\x1b[2 q\x1b[>1u\x1b[<u\x1b[=5;1u\x1b[>4;2m",
		"\x1b]0;✳ a\a\x1b]2;b\x1b\\\x1b]8;id=1;https://a.b/?c\x1b\\link\x1b]8;;\x1b\\\x1b]133;A\a\x1b]9;4;1;50\a",
	} {
		for _, size := range []int{1, 3, 1000} {
			if got := filtered(t, sent, size); got != sent {
				t.Errorf("in pieces of %d: %q for %q", size, got, sent)
			}
		}
	}
	for about, c := range map[string][2]string{ // the program's, and what is sent of it
		"the clipboard":               {"a\x1b]52;c;cm0gLXJm\ab\x1b]52;c;?\x1b\\c", "abc"},
		"fonts and palette":           {"a\x1b]50;x\ab\x1b]4;1;red\ac\x1b]11;?\a\x1b]104\a", "abc"},
		"notifications":               {"a\x1b]9;Click here\ab\x1b]777;notify;a;b\a\x1b]99;;x\x1b\\", "ab"},
		"files":                       {"a\x1b]1337;File=inline=1:AAAA\a\x1b]7;file://x/y\ab", "ab"},
		"graphics":                    {"a\x1b_Gt=t,f=100;L3RtcC94\x1b\\b\x1bPq#0~~\x1b\\c", "abc"},
		"for a terminal around":       {"a\x1bPtmux;\x1b\x1b]52;c;eA==\a\x1b\\b", "ab"},
		"requests":                    {"a\x1bP+q544e\x1b\\\x1bP$qm\x1b\\b\x1b^x\x1b\\c\x1bXy\x1b\\d", "abcd"},
		"window operations":           {"a\x1b[8;10;10tb\x1b[22;2t\x1b[23t\x1b[21t\x1b[3;0;0tc\x1b[>2t", "abc"},
		"printing":                    {"a\x1b[5ib\x1b[?5i\x1b[i", "ab"},
		"queries":                     {"a\x1b[c\x1b[>c\x1b[=c\x1b[6n\x1b[?996n\x1b[?2026$p\x1b[>q\x1b[?u\x1b[x\x1bZ\x05b", "ab"},
		"modes that stay":             {"a\x1b[?3h\x1b[?40h\x1b[?2048hb\x1b[20h\x1b[?69hc", "abc"},
		"one mode of several":         {"\x1b[?2048;2004;3h\x1b[?25;2027l", "\x1b[?2004h\x1b[?25l"},
		"encodings":                   {"a\x1b%@b\x1b Gc\x1b%Gd\x1b[61\"p", "abcd"},
		"tabs":                        {"a\x1b[3gb\x1bH", "ab"},
		"columns and lines of a page": {"a\x1b[132$|b\x1b[10*|", "ab"},
		"8-bit controls":              {"a\u009b8;9;9tb\u009d52;c;eA==\u009cc\u0090q", "a8;9;9tb52;c;eA==cq"},
		"and in a title":              {"\x1b]2;a\u009c\u009b9tb\n\a", "\x1b]2;a9tb\a"},
		"a control in a sequence":     {"a\x1b[8;\n9;9tb\x1b[8\x1b[1mc", "a\n9;9tb\x1b[1mc"},
		"a string that is cancelled":  {"a\x1b]52;c;eA==\x18b\x1b]2;x\x1b[1mc", "ab\x1b[1mc"},
		"a string of a megabyte":      {"a\x1b]2;" + strings.Repeat("x", 1<<20) + "\ab\x1bP" + strings.Repeat("\a", 1<<20) + "\x1b\\c", "abc"},
		"a status of a megabyte":      {"a\x1b]7501;state=idle:msg=" + strings.Repeat("x", 1<<20) + "\ab", "ab"},
		"a sequence without an end":   {"a\x1b[" + strings.Repeat("1;", 1<<10), "a" + strings.Repeat("1;", 1<<10)},
		"wrong parameters":            {"a\x1b[4?h\x1b[1?2mb\x1b[ 4 qc\x1b\x1b[1md", "abc\x1b[1md"},
	} {
		for _, size := range []int{1, 3, 1000, 3 << 20} {
			if size < 1000 && len(c[0]) > 1<<16 {
				continue
			}
			got := filtered(t, c[0], size)
			if strings.HasPrefix(about, "a sequence without") {
				got, c[1] = strings.TrimLeft(got, "a1;"), ""
			}
			if got != c[1] {
				t.Errorf("%s, in pieces of %d: %.100q", about, size, got)
			}
		}
	}
}

// A viewer that joins after a flood is sent no 8-bit control of it.
func TestRepaintOfControls(t *testing.T) {
	s := New(40, 10, 50)
	s.Write([]byte(strings.Repeat("y\r\n", 1000) + "a\u009b8;9;9tb \u0090\u0085"))
	if got := s.Repaint(0); bytes.ContainsAny(got, "\u0085\u0090\u009b") {
		t.Errorf("%q", got)
	}
}

// A viewer sees what the program's screen shows, if it gets the filtered output of a real program.
func TestFilteredCaptures(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../testdata/screens/*-answer.bin")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		whole, viewer := New(100, 30, 500), New(100, 30, 500)
		whole.Write(data)
		var f OutputFilter
		for p := range slices.Chunk(data, 1000) {
			viewer.Write(f.Filter(p))
		}
		same(t, file, stateOf(whole), stateOf(viewer))
	}
}

// However output is split, the same is sent of it, all of which would be sent again.
func FuzzFilter(f *testing.F) {
	f.Add("a\x1b[8;1\n;5t\x1b]52;c;x\x1b]2;é\u009c\x1b\\\x1b_\a\x1b\x1b[?25;3hb\x05\xc2", 3)
	f.Add("\xc2\x05\x9a", 3)
	f.Add("\x1bP\x1b]8;;x\a\x1b[>4;2m\x1b(0\x1b#8\x1b%G\xc2\xc2\x9b", 2)
	f.Fuzz(func(t *testing.T, in string, size int) {
		whole := filtered(t, in, len(in)+1)
		if got := filtered(t, in, max(1, size)); got != whole {
			t.Fatalf("%q and %q", got, whole)
		}
		if again := filtered(t, whole, len(whole)+1); again != whole {
			t.Fatalf("%q becomes %q", whole, again)
		}
	})
}
