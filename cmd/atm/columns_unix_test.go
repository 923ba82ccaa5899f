//go:build linux || darwin

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// In a narrow terminal text wraps at words, and what counts or is copied is there as a whole: numbers, ids, states,
// commands and URLs.
func TestColumns(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.env = append(s.env, "ATM_AGENT=bob", "TERM=xterm-256color")
	const long, url = "integration-tests-for-the-parser-runner", "https://example.org/pull/1234/files#diff-0123456789abcdef0123456789abcdef0123456789abcdef"
	words := strings.Repeat("Several words of a text in one long line. ", 70)
	s.atm(0, "team", "add", long, "carol", "dave")
	file := filepath.Join(t.TempDir(), "a long name of a file that a machine made at night, 2026-11-27.log")
	must(t, os.WriteFile(file, []byte("x"), 0o600))
	for range 12 {
		s.atm(0, "send", long, "Run the tests.", "--ack", "--as", "alice")
	}
	s.atm(0, "read", "--limit", "3", "--as", long)
	s.atm(0, "send", "bob,carol,dave", "Which of the two branches shall be merged?", "--as", "alice")
	s.atm(0, "read", "--as", "carol")
	s.atm(0, "send", "bob", words, "--as", long, "--due", "1m", "--ack")
	attached := s.atm(0, "send", "bob", "See "+url+" and 解析器的合并冲突已经解决了，请在合并之前查看一下差异，然后告诉爱丽丝。", "--attach", file, "--ack", "--as", "alice")
	id := strings.Fields(attached)[1]
	s.atm(0, "event", "turn_started", "turn_id=t1", "--as", "carol")
	s.atm(0, "event", "confirm_required", "turn_id=t1", "tool=Bash", "input=git push --force-with-lease origin HEAD:refs/heads/a-long-name && make", "--as", "carol")

	for _, width := range []int{120, 80, 60} {
		has := func(command, pattern string) {
			t.Helper()
			rows := strings.Join(s.rows(width, strings.Fields(command)...), "\n")
			if !regexp.MustCompile(`(?m)` + pattern).MatchString(rows) {
				t.Errorf("atm %s in %d columns has no %s:\n%s", command, width, pattern, rows)
			}
		}
		// A long name takes no room from short ones, and no number is cut.
		has("team", `^alice +unknown`)
		has("team", `^integration-t.*… +unknown .*9 unread, 3 to ack$`)
		has("team", `^5 members: 1 blocked, 4 unknown$`)
		has("watch --no-follow", `^[0-9:]{8}  carol +asks: Bash: git`)
		has("ls", `^[0-9a-f]{6}  alice +([0-9]+s ago|now) +Which of the`)
		has("ls", `^[0-9a-f]{6}  integration.*wants ack, due in [0-9]+s`)
		has("ls --sent --as alice", `^[0-9a-f]{6}  bob,carol.* +([0-9]+s ago|now) +2 unread, 1 read  Which`)
		has("ls --sent --as alice", `^[0-9a-f]{6}  integration.*  (read|unread) +Run`)
		has("", `^3 unread: atm read$`)
		// Text wraps at words; a URL is whole.
		has("show "+id, `\(atm\s+show\s+`+id+`\s+--save\s+DIR\)`)
		has("pending", `^    wants to run: git push --force-with-lease origin\s+HEAD:refs/heads/a-long-name\s+&&\s+make$`)
		has("pending", `atm\s+run\s+carol\s+--\s+CMD$`)
		for _, row := range s.rows(width, "read", "--peek", "--full", "--from", long) {
			if strings.HasPrefix(row, "  ") && !regexp.MustCompile(`(Several|words|of|a|text|in|one|long|line\.)$`).MatchString(row) {
				t.Errorf("%d columns: %q", width, row)
			}
		}
		for _, verb := range []string{"show", "thread"} {
			rows := s.rows(width, verb, id)
			if !strings.Contains(strings.Join(rows, ""), url) || slices.Contains(rows, "") {
				t.Errorf("the URL is broken in %d columns:\n%s", width, strings.Join(rows, "\n"))
			}
		}
	}
}
