package ptyrun

import (
	"testing"
	"time"
)

// What a person types is told from what a terminal says, in whatever pieces it
// comes; and a key that looks like the beginning of an answer swallows none of
// those behind it.
func TestWhoTyped(t *testing.T) {
	now := time.Now()
	type piece struct {
		in     string
		after  time.Duration
		out    string
		person bool
	}
	for name, pieces := range map[string][]piece{
		"keys":              {{"ab\r", 0, "ab\r", true}},
		"escape":            {{"\x1b", 0, "", false}, {"", time.Second, "\x1b", true}},
		"escape, then keys": {{"\x1b", 0, "", false}, {"a", time.Second, "\x1ba", true}},
		"torn after ESC":    {{"\x1b", 0, "", false}, {"[?62;22c", 10 * time.Millisecond, "", false}},
		"torn in its end":   {{"\x1b]11;rgb:0/0/0\x1b", 0, "", false}, {"\\", 10 * time.Millisecond, "", false}},
		"old mouse, torn":   {{"\x1b[M !", 0, "", false}, {"!", 10 * time.Millisecond, "\x1b[M !!", false}},
		"arrow":             {{"\x1b[A", 0, "\x1b[A", true}},
		"focus":             {{"\x1b[I", 0, "\x1b[I", false}},
		"mouse":             {{"\x1b[<0;3;4M", 0, "\x1b[<0;3;4M", false}},
		"old mouse":         {{"\x1b[M !!", 0, "\x1b[M !!", false}},
		"attributes":        {{"\x1b[?62;22c", 0, "", false}},
		"answer in pieces":  {{"\x1b[?6", 0, "", false}, {"2;22c", 10 * time.Millisecond, "", false}},
		"colour":            {{"\x1b]11;rgb:0/0/0\x1b\\x", 0, "x", true}},
		"Alt-P, then words": {{"\x1bP", 0, "", false}, {"hello", time.Second, "\x1bPhello", true}},
		"Alt-[, then words": {{"\x1b[", 0, "", false}, {"A", time.Second, "\x1b[A", true}},
		"paste":             {{"\x1b[200~x\x1b[201~", 0, "\x1b[200~x\x1b[201~", true}},
	} {
		var u userInput
		at := now
		for _, p := range pieces {
			at = at.Add(p.after)
			if out, person := u.filter([]byte(p.in), at); string(out) != p.out || person != p.person {
				t.Errorf("%s: of %q comes %q, %v", name, p.in, out, person)
			}
		}
	}
}

// What a terminal reports by itself does not count as a person's typing, however long a text takes to go in.
func TestReportIsNoPerson(t *testing.T) {
	r := &runner{Options: Options{Now: time.Now}, prog: &program{input: make(chan write, 2)}}
	typing := &typing{began: time.Now().Add(-maxHold)}
	r.mail.typing = typing
	if r.passKeys([]byte("\x1b[I"), false); typing.isMixed || len(r.prog.input) != 1 {
		t.Error("a report of focus is mixed with the text")
	}
	if r.passKeys([]byte("x"), true); !typing.isMixed {
		t.Error("a person's key is not")
	}
}
