package screen

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// feeds are what programs write, about as much of each.
func feeds(size int) map[string][]byte {
	repeat := func(s string) []byte { return []byte(strings.Repeat(s, 1+size/len(s))) }
	var log, colour bytes.Buffer
	for i := 0; log.Len() < size; i++ {
		fmt.Fprintf(&log, "2026-11-20T14:54:%02d.%03dZ INFO worker %d: delivered message %d to the mailbox of bob\r\n", i%60, i%1000, i%8, i)
	}
	for i := 0; colour.Len() < size; i++ {
		fmt.Fprintf(&colour, "\x1b[0m\x1b[01;34mdir%d\x1b[0m  \x1b[38;5;%dmfile%d.go\x1b[0m  \x1b[38;2;%d;20;30;1mx\x1b[m plain\r\n", i, i%256, i, i%256)
	}
	return map[string][]byte{
		"log":    log.Bytes(),
		"yes":    repeat("y\r\n"),
		"colour": colour.Bytes(),
		"cjk":    repeat("端末の画面に書かれた文字は、二つの桁を占める。\r\n"),
		"boxes":  repeat("│ ╭──────────╮ ▐▛███▜▌ ⠋ ● ─────── │\r\n"),
		"emoji":  repeat("done 👩‍🔬 and 👍🏽 e\u0301te\u0301 ✳️ 🇩🇪\r\n"),
		"frames": repeat("\x1b[?2026h\x1b[12A\x1b[2K\x1b[1G\x1b[38;5;174m✻ Wrangling… \x1b[2m(7s · esc to interrupt)\x1b[22m\x1b[39m\x1b[12B\x1b[?2026l\x1b]0;⠂ Claude Code\a"),
	}
}

func BenchmarkWrite(b *testing.B) {
	for name, data := range feeds(1 << 20) {
		b.Run(name, func(b *testing.B) {
			s := New(100, 30, 2000)
			s.Write(data)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				for rest := data; len(rest) > 0; {
					n := min(len(rest), 32<<10)
					s.Write(rest[:n])
					rest = rest[n:]
				}
				s.Notes()
			}
		})
	}
}

// BenchmarkCaptures is what the agents of the captures write.
func BenchmarkCaptures(b *testing.B) {
	all := captures(b)
	size := 0
	for _, data := range all {
		size += len(data)
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	s := New(100, 30, 2000)
	for b.Loop() {
		for _, data := range all {
			s.Write(data)
			s.Notes()
			s.Replies()
		}
	}
}

func BenchmarkLines(b *testing.B) {
	s := New(100, 30, 0)
	s.Write(captures(b)["claude-idle"])
	b.ReportAllocs()
	for b.Loop() {
		s.Lines()
	}
}

func BenchmarkRow(b *testing.B) {
	s := New(100, 30, 0)
	s.Write(captures(b)["claude-idle"])
	b.ReportAllocs()
	for b.Loop() {
		for y := range 30 {
			s.Row(y)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		New(100, 30, 2000)
	}
}
