//go:build linux

package realagents

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// make bench-push prints how long a message takes into an idle program that its person started, from the start of atm send
// to the model's request, beside the program's own way in; and what of atm's runs while IDLE windows are idle for half a
// minute.
func TestMeasurePush(t *testing.T) {
	if os.Getenv("ATM_REAL_MEASURE") == "" {
		t.Skip("prints figures: make bench-push")
	}
	for _, v := range byHandVersions {
		t.Run(nameOf(v.program, v.isNewest), func(t *testing.T) {
			s := newByHand(t, v.program, v.isNewest)
			if !s.canGet("idle") {
				t.Skip("it has no way to get mail while it is idle")
			}
			bob := s.talks("bob")
			t.Logf("atm send: %s", s.measure(bob, "ours", func(text string) { s.send(text) }))
			if own := s.ownWay(); own != nil {
				t.Logf("its own way: %s", s.measure(bob, "own", own))
			}
			idle, _ := strconv.Atoi(cmp.Or(os.Getenv("IDLE"), "3"))
			for range idle - 1 {
				s.talks("bob")
			}
			before, _ := s.ownProcesses()
			time.Sleep(30 * time.Second) // is what is measured
			after, names := s.ownProcesses()
			t.Logf("%d idle windows: %d processes of atm's %q, which have used %s of processor in 30 s", idle, len(names), names, after-before)
		})
	}
}

// measure gives nine texts to an idle program, and returns the median, least and largest time until the model has each.
func (s *byHand) measure(w *window, word string, give func(text string)) string {
	s.t.Helper()
	var took []time.Duration
	for i := range 9 {
		w.waitsFor("idle")
		text, start := fmt.Sprintf("%s number %d", word, i), time.Now()
		give(text)
		for s.gets(text) == 0 {
			if time.Sleep(2 * time.Millisecond); time.Since(start) > time.Minute {
				s.t.Fatalf("the model did not get %q", text)
			}
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return fmt.Sprintf("median %s (%s to %s)", took[4].Round(time.Millisecond), took[0].Round(time.Millisecond), took[8].Round(time.Millisecond))
}

// ownWay is what the program itself has to be told something from outside; nil: nothing that is on without more.
func (s *byHand) ownWay() func(text string) {
	if s.program == "codex" {
		return func(text string) {
			if _, mistakes, err := s.headless("bob", "queue", "--thread", s.session(), "--message", text); err != nil {
				s.t.Fatalf("codex queue: %v %s", err, mistakes)
			}
		}
	}
	var socket string
	files, _ := filepath.Glob(filepath.Join(s.kit.dir, "home", ".claude", "sessions", "*.json"))
	for _, file := range files {
		var session struct{ MessagingSocketPath string }
		data, _ := os.ReadFile(file)
		if json.Unmarshal(data, &session) == nil && session.MessagingSocketPath != "" {
			socket = session.MessagingSocketPath
		}
	}
	if socket == "" {
		return nil
	}
	return func(text string) {
		line, _ := json.Marshal(map[string]any{
			"type": "user", "msgV": 1, "msg_id": fmt.Sprintf("00000000-0000-4000-8000-%012d", time.Now().UnixNano()%1e12),
			"message": map[string]string{"role": "user", "content": "<cross-session-message from=\"test\" from-name=\"test\">\n" + text + "\n</cross-session-message>"},
		})
		conn, err := net.Dial("unix", socket)
		if err != nil {
			s.t.Fatal(err)
		}
		conn.Write(append(line, '\n'))
		conn.Close()
	}
}

// session is the id of bob's conversation, by what his hooks noted.
func (s *byHand) session() (id string) {
	files, _ := filepath.Glob(filepath.Join(s.dir, ".atm", "main", "bob", "run", "programs", "*.json"))
	for _, file := range files {
		var p struct{ Session string }
		data, _ := os.ReadFile(file)
		if json.Unmarshal(data, &p) == nil {
			id = p.Session
		}
	}
	return id
}

// ownProcesses returns what of atm's runs in the kit, and how much processor that has used.
func (s *byHand) ownProcesses() (used time.Duration, names []string) {
	for line := range strings.Lines(s.leftovers()) {
		pid, command, _ := strings.Cut(strings.TrimSpace(line), " ")
		name := filepath.Base(strings.Fields(command + " ?")[0])
		data, err := os.ReadFile("/proc/" + pid + "/stat")
		_, rest, _ := strings.Cut(string(data), ") ")
		if f := strings.Fields(rest); err == nil && len(f) > 12 && (name == "atm" || strings.HasPrefix(name, "atm-")) {
			user, _ := strconv.Atoi(f[11])
			system, _ := strconv.Atoi(f[12])
			used += time.Duration(user+system) * 10 * time.Millisecond // a tick is a hundredth of a second
			names = append(names, name)
		}
	}
	return used, names
}
