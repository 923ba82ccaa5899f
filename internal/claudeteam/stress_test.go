package claudeteam

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// TestMain is also the process that TestStress kills.
func TestMain(m *testing.M) {
	dir := os.Getenv("ATM_TEST_CLAUDE_SYNC")
	if dir == "" {
		os.Exit(m.Run())
	}
	staleAfter = time.Second
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	t := &testing.T{}
	team := openTeam(t, filepath.Join(dir, "root"))
	team.LockTimeout = 5 * time.Second
	s := &Sync{Team: team, Dir: filepath.Join(dir, "theirs"), Report: func(tr Transfer) { fmt.Println(tr) }}
	s.Run(ctx, func(err error) { fmt.Println("failed:", err) })
}

// claude does what Claude Code does with an inbox: it takes the lock, reads, changes, and renames.
func claude(t *testing.T, file string, change func([]map[string]any) []map[string]any) {
	for {
		isHeld, err := lock(context.Background(), file, time.Minute)
		must(t, err)
		data, err := os.ReadFile(file)
		must(t, err)
		var list []map[string]any
		must(t, json.Unmarshal(data, &list))
		data, err = json.MarshalIndent(change(list), "", "  ")
		must(t, err)
		temp := file + ".tmp." + fmt.Sprint(rand.Uint32())
		must(t, os.WriteFile(temp, data, 0o644))
		done := isHeld(staleAfter)
		if done {
			must(t, os.Rename(temp, file))
			must(t, os.Remove(file+".lock"))
			return
		}
		os.Remove(temp) // this test was not run for a second: its own writer may lose nothing
	}
}

// Both sides write while the sync is killed again and again: nothing is lost, and nothing is doubled without a
// mark.
func TestStress(t *testing.T) {
	duration := 2 * time.Second
	if d, err := time.ParseDuration(os.Getenv("ATM_STRESS")); err == nil {
		duration = d
	} else if testing.Short() {
		t.Skip("takes half a minute")
	}
	staleAfter = time.Second
	defer func() { staleAfter = 10 * time.Second }()
	dir := t.TempDir()
	theirs := filepath.Join(dir, "theirs")
	must(t, os.MkdirAll(filepath.Join(theirs, inboxes), 0o755))
	must(t, os.WriteFile(filepath.Join(theirs, configFile), []byte(recorded), 0o644))
	team := openTeam(t, filepath.Join(dir, "root"), "bob", "carol", "team-lead", "rev_1")
	for _, name := range []string{"bob", "carol", "team-lead", "Rev_1"} {
		must(t, os.WriteFile(filepath.Join(theirs, inboxes, name+".json"), []byte("[]"), 0o644))
	}
	begin := func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "ATM_TEST_CLAUDE_SYNC="+dir)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		must(t, cmd.Start())
		return cmd
	}

	var writers, readers sync.WaitGroup
	stop, ended := make(chan bool), make(chan bool)
	until := func(c chan bool) bool {
		select {
		case <-c:
			return true
		case <-time.After(rand.N(40 * time.Millisecond)):
			return false
		}
	}
	sent := map[string]int{} // what each writer has sent
	var mu sync.Mutex
	for _, to := range []string{"bob", "carol"} {
		writers.Go(func() {
			n := 0
			for ; !until(stop); n++ {
				claude(t, filepath.Join(theirs, inboxes, to+".json"), func(list []map[string]any) []map[string]any {
					return append(list, map[string]any{"from": "Rev_1", "text": fmt.Sprint(n), "timestamp": time.Now().UTC().Format(milliseconds), "type": "message", "read": false, "msgV": 1, "msg_id": fmt.Sprint(to, n)})
				})
			}
			mu.Lock()
			defer mu.Unlock()
			sent[to] = n
		})
	}
	got := map[string][]string{} // the texts that each of theirs has read
	for _, to := range []string{"team-lead", "Rev_1"} {
		writers.Go(func() {
			n := 0
			for ; !until(stop); n++ {
				send(t, team, wire.Message{Body: fmt.Sprint(n)}, "bob", nameHere(to))
			}
			mu.Lock()
			defer mu.Unlock()
			sent[to] = n
		})
		readers.Go(func() {
			for !until(ended) {
				claude(t, filepath.Join(theirs, inboxes, to+".json"), func(list []map[string]any) []map[string]any {
					mu.Lock()
					defer mu.Unlock()
					for _, e := range list {
						got[to] = append(got[to], e["text"].(string))
					}
					return []map[string]any{}
				})
			}
		})
	}
	kills := 0
	for end := time.Now().Add(duration); time.Now().Before(end); kills++ {
		cmd := begin()
		time.Sleep(30*time.Millisecond + rand.N(200*time.Millisecond))
		must(t, cmd.Process.Kill())
		cmd.Wait()
	}
	close(stop)
	writers.Wait()
	cmd := begin()
	left := ""
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		left = ""
		for _, name := range []string{"bob", "carol", "team-lead", "Rev_1"} {
			data, _ := os.ReadFile(filepath.Join(theirs, inboxes, name+".json"))
			unread, err := team.Box(nameHere(name)).UnreadIDs()
			must(t, err)
			if string(data) != "[]" || len(unread) > 0 && sent[name] > 0 && strings.Contains("team-lead Rev_1", name) {
				left += fmt.Sprintf("%s: %d bytes, %d unread; ", name, len(data), len(unread))
			}
		}
		if left == "" {
			break
		}
	}
	if left != "" {
		t.Errorf("never carried over: %s", left)
	}
	must(t, cmd.Process.Signal(syscall.SIGINT))
	must(t, cmd.Wait())
	close(ended)
	readers.Wait()

	repeats := 0
	for to, n := range sent {
		texts := got[to]
		if len(texts) == 0 {
			batch, err := team.Box(wire.Name(to)).Peek(context.Background(), mailbox.ReadOptions{})
			must(t, err)
			for _, it := range batch.Items {
				texts = append(texts, it.Body)
			}
		}
		times, marked := map[string]int{}, map[string]int{}
		for _, text := range texts {
			plain, isMarked := strings.CutPrefix(text, "(may be a repeat)\n")
			times[plain]++
			if isMarked {
				marked[plain]++
			}
		}
		for i := range n {
			text := fmt.Sprint(i)
			if times[text] == 0 {
				t.Errorf("%s never got %s", to, text)
			}
			if times[text]-marked[text] > 1 {
				t.Errorf("%s got %s %d times, %d marked", to, text, times[text], marked[text])
			}
			repeats += max(0, times[text]-1)
		}
		if len(times) != n {
			t.Errorf("%s got %d of %d", to, len(times), n)
		}
	}
	t.Logf("%d kills, sent %v, %d repeats", kills, sent, repeats)
}
