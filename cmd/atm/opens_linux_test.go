package main

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What only counts opens no message, however many there are; what shows some opens those.
func TestOpensWhatIsShown(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	send := s.command("send", "--batch", "--as", "alice")
	send.Stdin = strings.NewReader(strings.Repeat(`{"to":"bob","body":"hi","requires_ack":true}`+"\n", 40))
	must(t, send.Run())
	s.atm(0, "read", "--as", "bob", "--limit", "5")
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	must(t, err)
	defer syscall.Close(fd)
	for _, dir := range []string{"new", "cur", "done"} {
		_, err := syscall.InotifyAddWatch(fd, filepath.Join(s.team, "bob", "inbox", dir), syscall.IN_OPEN)
		must(t, err)
	}
	// opened returns the messages of bob's that were opened since the last call.
	opened := func() map[string]bool {
		files, buf := map[string]bool{}, make([]byte, 1<<16)
		for {
			n, err := syscall.Read(fd, buf)
			if errors.Is(err, syscall.EAGAIN) {
				return files
			}
			must(t, err)
			for at := 0; at < n; {
				name := at + syscall.SizeofInotifyEvent
				at = name + int(binary.NativeEndian.Uint32(buf[at+12:]))
				if file := strings.TrimRight(string(buf[name:at]), "\x00"); strings.HasSuffix(file, ".json") {
					files[file] = true
				}
			}
		}
	}
	opened()
	for _, dir := range []string{"new", "cur", "done"} { // what changed just now is looked at again
		old := time.Now().Add(-time.Hour)
		must(t, os.Chtimes(filepath.Join(s.team, "bob", "inbox", dir), old, old))
	}
	for _, c := range []struct {
		args  string
		stdin string
		want  int
	}{
		{"ls --count", "", 0},
		{"status bob --json", "", 0},
		{"", "", 40},    // any may be one whose answer is late, and the look notes of which that is so
		{"team", "", 5}, // those that are owed: of fewer than 16 nothing is noted
		{"team --json", "", 5},
		{"status", "", 5},
		{"ls --limit 4", "", 4},
		{"hook claude", `{"hook_event_name":"UserPromptSubmit","session_id":"s","prompt":"hi"}`, 20},
	} {
		cmd := s.command(strings.Fields(c.args)...)
		cmd.Env, cmd.Stdin = append(cmd.Env, "ATM_AGENT=bob"), strings.NewReader(c.stdin)
		out, _ := cmd.CombinedOutput()
		if got := opened(); len(got) != c.want {
			t.Errorf("atm %s opens %d messages, not %d:\n%s", c.args, len(got), c.want, out)
		}
	}
}
