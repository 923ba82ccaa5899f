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

	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/testround"
	"github.com/agentteammail/atm/wire"
)

// TestMain is also the process that TestStress kills.
func TestMain(m *testing.M) {
	dir := os.Getenv("ATM_TEST_CLAUDE_SYNC")
	if dir == "" {
		os.Exit(m.Run())
	}
	staleAfter = 3 * time.Second
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.WriteFile(filepath.Join(dir, "began"), nil, 0o644) // an interrupt ends it well from now on
	t := &testing.T{}
	team := openTeam(t, filepath.Join(dir, "root"))
	s := newSync(t, team, filepath.Join(dir, "theirs"), 5*time.Second, func(tr Transfer) { fmt.Println(tr) })
	s.Run(ctx, func(err error) { fmt.Println("failed:", err) })
}

// claude changes an inbox as Claude Code does: lock, read, change, rename. It returns what it has changed.
func claude(t *testing.T, file string, change func([]map[string]any) []map[string]any) (before []map[string]any) {
	for {
		held, err := lock(context.Background(), file, time.Minute)
		must(t, err)
		data, err := os.ReadFile(file)
		must(t, err)
		var list []map[string]any
		must(t, json.Unmarshal(data, &list))
		data, err = json.MarshalIndent(change(list), "", "  ")
		must(t, err)
		temp := file + ".tmp." + fmt.Sprint(rand.Uint32())
		must(t, os.WriteFile(temp, data, 0o644))
		done := held.isHeld(staleAfter / 2) // so that it is held long enough for what follows
		if done {
			must(t, os.Rename(temp, file))
			must(t, os.Remove(file+".lock"))
			return list
		}
		os.Remove(temp) // the test was suspended and lost its lock
	}
}

// Both sides write while the sync is killed repeatedly: nothing is lost, and every repeat is marked.
func TestStress(t *testing.T) {
	duration := testround.Lasts(t, 2*time.Second)
	staleAfter = 3 * time.Second
	defer func() { staleAfter = 10 * time.Second }()
	dir := t.TempDir()
	theirs := filepath.Join(dir, "theirs")
	must(t, os.MkdirAll(filepath.Join(theirs, inboxDir), 0o755))
	must(t, os.WriteFile(filepath.Join(theirs, configFile), []byte(recorded), 0o644))
	team := openTeam(t, filepath.Join(dir, "root"), "bob", "carol")
	for _, name := range []string{"bob", "carol", "team-lead", "Rev_1"} {
		must(t, os.WriteFile(filepath.Join(theirs, inboxDir, name+".json"), []byte("[]"), 0o644))
	}
	first := newSync(t, team, theirs, 0, func(Transfer) {})
	must(t, first.Pass(context.Background())) // makes the mailboxes of Claude's members
	begin := func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "ATM_TEST_CLAUDE_SYNC="+dir)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		must(t, cmd.Start())
		return cmd
	}

	var writers, readers sync.WaitGroup
	writing, writeNoMore := context.WithCancel(context.Background())
	reading, readNoMore := context.WithCancel(context.Background())
	again := func(ctx context.Context) bool {
		time.Sleep(time.Duration(testround.Rand.Int64N(int64(40 * time.Millisecond))))
		return ctx.Err() == nil
	}
	var mu sync.Mutex
	sent, got := map[string]int{}, map[string][]string{} // the number of messages to each, and the texts that each has read
	write := func(to string, one func(text string)) {
		writers.Go(func() {
			for again(writing) {
				mu.Lock()
				text := fmt.Sprint(sent[to])
				sent[to]++
				mu.Unlock()
				one(text)
			}
		})
	}
	for _, to := range []string{"bob", "carol"} {
		write(to, func(text string) {
			claude(t, filepath.Join(theirs, inboxDir, to+".json"), func(list []map[string]any) []map[string]any {
				return append(list, map[string]any{"from": "Rev_1", "text": text, "timestamp": time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), "msgV": 1, "msg_id": to + text})
			})
		})
	}
	for _, to := range []string{"team-lead", "Rev_1"} {
		write(to, func(text string) { send(t, team, wire.Message{Body: text}, "bob", validName(to)) })
		readers.Go(func() {
			for again(reading) {
				read := claude(t, filepath.Join(theirs, inboxDir, to+".json"), func([]map[string]any) []map[string]any { return []map[string]any{} })
				mu.Lock()
				for _, e := range read {
					got[to] = append(got[to], e["text"].(string))
				}
				mu.Unlock()
			}
		})
	}
	kills := 0
	for end := time.Now().Add(duration); time.Now().Before(end); kills++ {
		cmd := begin()
		time.Sleep(30*time.Millisecond + time.Duration(testround.Rand.Int64N(int64(200*time.Millisecond))))
		must(t, cmd.Process.Kill())
		cmd.Wait()
	}
	writeNoMore()
	writers.Wait()
	began := filepath.Join(dir, "began")
	must(t, os.RemoveAll(began))
	cmd := begin()
	left := ""
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		left = ""
		if _, err := os.Stat(began); err != nil {
			left = "it has not begun; "
		}
		for _, name := range []string{"bob", "carol", "team-lead", "Rev_1"} {
			data, _ := os.ReadFile(filepath.Join(theirs, inboxDir, name+".json"))
			unread, err := team.Box(validName(name)).UnreadIDs()
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
	readNoMore()
	readers.Wait()

	repeats := 0
	for to, n := range sent {
		if len(got[to]) == 0 {
			batch, err := inbox.Peek(context.Background(), team.Box(wire.Name(to)), inbox.ReadOptions{})
			must(t, err)
			for _, it := range batch.Items {
				got[to] = append(got[to], it.Body)
			}
		}
		unmarked, all := map[string]int{}, map[string]bool{}
		for _, text := range got[to] {
			header, plain, isEntry := strings.Cut(text, "\n") // of ours there
			if !isEntry {
				plain = text
			}
			isMarked := strings.Contains(header, "may be a repeat")
			if all[plain] = true; !isMarked {
				unmarked[plain]++
			}
			if unmarked[plain] > 1 {
				t.Errorf("%s got %s twice, without a mark", to, plain)
			}
		}
		if len(all) != n {
			t.Errorf("%s got %d of %d", to, len(all), n)
		}
		repeats += len(got[to]) - n
	}
	t.Logf("%d kills, sent %v, %d repeats", kills, sent, repeats)
}
