package screen

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAnswers(t *testing.T) {
	for feed, want := range map[string]string{
		"\x1b[c\x1b[0c\x1bZ":             "\x1b[?62;22c\x1b[?62;22c\x1b[?62;22c",
		"\x1b[>c":                        "\x1b[>1;10;0c",
		"\x1b[?c\x1b[=c\x1b[1c":          "",
		"\x1b[5n":                        "\x1b[0n",
		"ab\r\nc\x1b[6n":                 "\x1b[2;2R",
		"\x1b[?6n":                       "\x1b[?1;1R",
		"\x1b[2;3r\x1b[?6h\x1b[6n":       "\x1b[1;1R",
		"0123456789\x1b[6n":              "\x1b[1;10R",
		"\x1b]10;?\a":                    "\x1b]10;rgb:d0d0/d0d0/d0d0\a",
		"\x1b]11;?\x1b\\":                "\x1b]11;rgb:0000/0000/0000\x1b\\",
		"\x1b]10;?;?\a":                  "\x1b]10;rgb:d0d0/d0d0/d0d0\a\x1b]11;rgb:0000/0000/0000\a",
		"\x1b]10;#ffffff\a":              "",
		"\x1b]4;1;?;244;?\a":             "\x1b]4;1;rgb:cdcd/0000/0000\a\x1b]4;244;rgb:8080/8080/8080\a",
		"\x1b]4;21;rgb:1/2/3;300;?\a":    "",
		"\x1b]4;21;?\a":                  "\x1b]4;21;rgb:0000/0000/ffff\a",
		"\x1b[?2004h\x1b[?2004$p":        "\x1b[?2004;1$y",
		"\x1b[?2026$p":                   "\x1b[?2026;2$y",
		"\x1b[?2027$p":                   "\x1b[?2027;3$y",
		"\x1b[?7$p\x1b[?25$p\x1b[?6$p":   "\x1b[?7;1$y\x1b[?25;1$y\x1b[?6;2$y",
		"\x1b[?1049h\x1b[?1049$p":        "\x1b[?1049;1$y",
		"\x1b[?1002h\x1b[?1002;1000$p":   "\x1b[?1002;1$y",
		"\x1b[?1006h\x1b[?1006$p":        "\x1b[?1006;1$y",
		"\x1b[?9999$p":                   "\x1b[?9999;0$y",
		"\x1b[4h\x1b[4$p\x1b[20$p":       "\x1b[4;1$y\x1b[20;2$y",
		"\x1b[18t":                       "\x1b[8;4;10t",
		"\x1b[21t\x1b[14t\x1b[>q\x1b[?u": "",
		"\x1bP+q544e\x1b\\":              "",
		"\x1bP$qm\x1b\\":                 "",
	} {
		s := New(10, 4, 0)
		s.Write([]byte(feed))
		if got := string(s.Replies()); got != want {
			t.Errorf("%q: got %q, want %q", feed, got, want)
		}
		if s.Replies() != nil {
			t.Errorf("%q: answered twice", feed)
		}
	}
}

func TestAnswersAreBounded(t *testing.T) {
	s := New(10, 4, 0)
	s.Write([]byte(strings.Repeat("\x1b[c", 100000)))
	got := string(s.Replies())
	if len(got) > maxReplies || strings.ReplaceAll(got, "\x1b[?62;22c", "") != "" {
		t.Errorf("%d bytes, torn or too many", len(got))
	}
}

func TestNotes(t *testing.T) {
	long := strings.Repeat("é", 1000)
	for feed, want := range map[string][]Note{
		"x":                                         nil,
		"a\ab\a\a":                                  {{Kind: Bell}},
		"\x1b]9;done\a":                             {{Notify, "done"}},
		"\x1b]9;4;1;50\a\x1b]9;9;/tmp\a":            nil,
		"\x1b]777;notify;build;it; works\a":         {{Notify, "build: it; works"}},
		"\x1b]777;notify;build\a":                   {{Notify, "build"}},
		"\x1b]777;precmd\a":                         nil,
		"\x1b]99;;hello\x1b\\":                      {{Notify, "hello"}},
		"\x1b]99;i=1:d=0;he\a\x1b]99;i=1;llo\a":     {{Notify, "hello"}},
		"\x1b]99;i=1:d=0;t\a\x1b]99;i=1:p=body;b\a": {{Notify, "t: b"}},
		"\x1b]99;i=1:d=0;t\a\x1b]99;i=2;u\a":        {{Notify, "u"}},
		"\x1b]99;e=1;aGk=\a":                        {{Notify, "hi"}},
		"\x1b]99;e=1;!!\a":                          nil,
		"\x1b]99;i=x:p=?;\a":                        nil,
		"\x1b]133;A\a$ \x1b]133;D;1\a":              {{Mark, "A"}, {Mark, "D;1"}},
		"\x1b]0;one\a\a\x1b]2;two\a\x1b]2;two\a":    {{Kind: Bell}, {Title, "two"}},
		"\x1b]1;icon\a":                             nil,
		"\x1b]9;a\x1b[mb":                           nil,
		"\x1b]9;\xff\xc2\x85x\a":                    {{Notify, "\ufffdx"}},
		"\x1b]9;" + long + "\a":                     {{Notify, strings.Repeat("é", maxNoteText/2)}},
	} {
		s := New(10, 4, 0)
		s.Write([]byte(feed))
		if d := cmp.Diff(want, s.Notes()); d != "" {
			t.Errorf("%q (-want +got):\n%s", feed, d)
		}
	}
	s := New(10, 4, 0)
	for i := range 1000 {
		fmt.Fprintf(s, "\x1b]9;note %d\a\x1b]0;title %d\a", i, i)
	}
	notes := s.Notes()
	if len(notes) != maxNotes || notes[len(notes)-1] != (Note{Title, "title 999"}) || notes[len(notes)-2] != (Note{Notify, "note 999"}) {
		t.Errorf("%d notes, the last two %v", len(notes), notes[len(notes)-2:])
	}
}

func TestTitle(t *testing.T) {
	for feed, want := range map[string]string{
		"\x1b]0;✳ Claude Code\a":                   "✳ Claude Code",
		"\x1b]2;a; b;c\x1b\\":                      "a; b;c",
		"\x1b]0;a\a\x1b]0;\a":                      "",
		"\x1b]0;a\nb\tc\a":                         "abc",
		"\x1b]0;bad \xe2\x9c\a":                    "bad \ufffd",
		"\x1b]0;a\a\x1b]1;icon\a":                  "a",
		"\x1b]0;a\a\x1b[22;0t\x1b]0;b\a\x1b[23;0t": "a",
		"\x1b]0;a\a\x1b[23t":                       "a",
		"\x1b]0;a\a\x1bc":                          "a",
		"\x1b]0;a":                                 "",
	} {
		s := New(10, 4, 0)
		s.Write([]byte(feed))
		if got := s.Title(); got != want {
			t.Errorf("%q: got %q, want %q", feed, got, want)
		}
	}
}

func TestModes(t *testing.T) {
	for feed, want := range map[string]Modes{
		"":                                        {},
		"\x1b[?2004;1004;25l\x1b[?2004;1004h":     {Paste: true, Focus: true, CursorHidden: true},
		"\x1b[?1049h":                             {Alt: true},
		"\x1b[?1049h\x1b[?1049l":                  {},
		"\x1b[?1000;1002;1003;1006h":              {Mouse: 1003, MouseEncoding: 1006},
		"\x1b[?1000;1006h\x1b[?1006l\x1b[?1003l":  {},
		"\x1b[?1h\x1b=\x1b[?2026h":                {AppCursor: true, AppKeypad: true, Sync: true},
		"\x1b[?66h\x1b>":                          {},
		"\x1b[?7l\x1b[?6;5h\x1b[4;20h":            {AutoWrapOff: true, Origin: true, Reversed: true, Insert: true, NewLine: true},
		"\x1b[?7l\x1b[?6h\x1b[4h\x1b[?25l\x1b[!p": {},
		"\x1b[>7u\x1b[>1u":                        {Keyboard: 1},
		"\x1b[>7u\x1b[>1u\x1b[<u":                 {Keyboard: 7},
		"\x1b[>7u\x1b[<9u":                        {},
		"\x1b[>7u\x1b[?1049h":                     {Alt: true},
		"\x1b[=5u\x1b[=2;2u\x1b[=1;3u":            {Keyboard: 6},
		"\x1b[>4;2m\x1b[5 q":                      {OtherKeys: 2, CursorStyle: 5},
		"\x1b[>4;2m\x1b[>4m":                      {},
		"\x1b[>4;2m\x1b[?2004h\x1bc":              {},
	} {
		s := New(10, 4, 0)
		s.Write([]byte(feed))
		if d := cmp.Diff(want, s.Modes()); d != "" {
			t.Errorf("%q (-want +got):\n%s", feed, d)
		}
	}
}
