//go:build unix

package session

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// The test binary, executed again with ATM_TEST_ROLE set, is a process that
// does one thing to a session until it is killed. It prints what is done.
func TestMain(m *testing.M) {
	role := os.Getenv("ATM_TEST_ROLE")
	if role == "" {
		os.Exit(m.Run())
	}
	st := openTeam(process{}, os.Args[1])
	id := wire.UUID(os.Args[2])
	fmt.Println("ready")
	switch role {
	case "say":
		for i := 0; ; i++ {
			word := fmt.Sprintf("%s-%d", os.Args[3], i)
			_, err := st.Change(ctx, id, func(s *Session) error { s.AddMessage(SenderHuman, word, now()); return nil })
			process{}.check(err)
			fmt.Println(word)
		}
	case "run":
		for {
			_, err := st.Attach(ctx, "bob", AttachOptions{Begin: true})
			process{}.check(err)
			process{}.check(st.Detach(ctx, "bob", rand.IntN(4) == 0, "bob has left"))
			fmt.Println("ran")
		}
	case "take":
		c, err := st.Channel(id)
		process{}.check(err)
		for {
			_, err := c.Handle(ctx, time.Minute, func(in Input) error {
				_, err := fmt.Println(in.Text) // used, and on record
				return err
			})
			if err == wire.ErrChannelClosed {
				os.Exit(0)
			}
			process{}.check(err)
		}
	}
	os.Exit(1)
}

// process is a tb that ends this process.
type process struct{}

func (process) Helper() {}
func (process) Fatal(args ...any) {
	fmt.Println(append([]any{"error"}, args...)...)
	os.Exit(1)
}
func (p process) Fatalf(f string, args ...any) { p.Fatal(fmt.Sprintf(f, args...)) }
func (p process) check(err error) {
	if err != nil {
		p.Fatal(err)
	}
}

// runRole runs this binary in a role until it ends or is killed, a while after it
// was ready (0: never), and returns its lines.
func runRole(t *testing.T, role string, kill time.Duration, args ...string) []string {
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), "ATM_TEST_ROLE="+role, "GORACE=atexit_sleep_ms=0")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Error(err)
		return nil
	}
	if err := c.Start(); err != nil {
		t.Error(err)
		return nil
	}
	var lines []string
	in := bufio.NewScanner(out)
	for in.Scan() {
		if in.Text() == "ready" {
			if kill > 0 {
				time.AfterFunc(kill, func() { c.Process.Kill() })
			}
			continue
		}
		lines = append(lines, in.Text())
		if strings.HasPrefix(in.Text(), "error") {
			t.Errorf("%s: %s", role, in.Text())
		}
	}
	c.Wait()
	return lines
}

// Processes that change one session are killed at any moment: the file is whole
// at every look, and what a process was told is done is there, once, in order.
func TestKilledWhileChanging(t *testing.T) {
	st := testTeam(t, "bob")
	s := begin(t, st, "bob")
	path := st.Mail.Dir().Path()
	stop := make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
			if _, err := st.Get(s.SessionID); err != nil {
				t.Errorf("looked at while it was changed: %v", err)
				return
			}
		}
	})
	var mu sync.Mutex
	var done []string
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			for round := range 4 {
				lines := runRole(t, "say", time.Duration(60+rand.IntN(120))*time.Millisecond, path, string(s.SessionID), fmt.Sprintf("w%d-%d", w, round))
				mu.Lock()
				done = append(done, lines...)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	close(stop)
	looking.Wait()
	got, err := st.Get(s.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	n := map[string]int{}
	last := map[string]int{}
	for _, m := range got.Messages {
		n[m.Content]++
		who, count := m.Content[:strings.LastIndex(m.Content, "-")], 0
		fmt.Sscan(m.Content[strings.LastIndex(m.Content, "-")+1:], &count)
		if before, ok := last[who]; ok && count != before+1 {
			t.Errorf("%s: %d after %d", who, count, before)
		}
		last[who] = count
	}
	for _, word := range done {
		if n[word] != 1 {
			t.Errorf("%s stands there %d times", word, n[word])
		}
	}
	if len(done) == 0 {
		t.Error("nothing was done at all")
	}
	// What the killed have left is swept by gc, once it is old.
	dir := filepath.Join(path, sessionsDir)
	old := filepath.Join(dir, ".left.json.1.tmp")
	if err := os.WriteFile(old, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(old, time.Time{}, time.Now().Add(-48*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Mail.Box("bob").GC(ctx, mailbox.GCOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("what a killed process left is still there")
	}
}

// Processes that take input are killed at any moment: each input is used, and
// twice only if one was killed in between.
func TestKilledWhileHandling(t *testing.T) {
	st := testTeam(t, "bob")
	s := begin(t, st, "bob")
	path := st.Mail.Dir().Path()
	const inputs, kills = 150, 8
	var mu sync.Mutex
	var used []string
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for round := range kills/2 + 1 {
				kill := time.Duration(50+rand.IntN(150)) * time.Millisecond
				if round == kills/2 {
					kill = 0 // to the end
				}
				lines := runRole(t, "take", kill, path, string(s.SessionID))
				mu.Lock()
				used = append(used, lines...)
				mu.Unlock()
			}
		})
	}
	for i := range inputs {
		tell(t, st, "bob", s.SessionID, text(fmt.Sprint("input", i)))
	}
	// The last processes end with the session, after what is in the inbox.
	deadline := time.Now().Add(30 * time.Second)
	for {
		left, err := st.Mail.Box("bob").UnreadIDs()
		if err == nil && len(left) == 0 || time.Now().After(deadline) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	move(t, st, s.SessionID, wire.SessionCompleted)
	wg.Wait()
	n := map[string]int{}
	again := 0
	for _, word := range used {
		if n[word]++; n[word] > 1 {
			again++
		}
	}
	for i := range inputs {
		if n[fmt.Sprint("input", i)] == 0 {
			t.Errorf("input %d was never used", i)
		}
	}
	if again > kills {
		t.Errorf("%d inputs were used again, after %d kills", again, kills)
	}
}

// A runner is killed at any moment, again and again: never is there more than
// one session of its own that is alive, and what the last one has let go of
// rests or is over.
func TestKilledWhileRunning(t *testing.T) {
	st := testTeam(t, "bob")
	for range 8 {
		runRole(t, "run", time.Duration(40+rand.IntN(80))*time.Millisecond, st.Mail.Dir().Path(), string(NoGoal))
		alive := 0
		list, bad, err := st.List()
		if err != nil || len(bad) > 0 {
			t.Fatal(bad, err)
		}
		for _, s := range list {
			if s.State.Alive() {
				alive++
			}
		}
		if alive > 1 || len(list) == 0 {
			t.Fatalf("%d of %d sessions are alive", alive, len(list))
		}
	}
	if _, err := st.Attach(ctx, "bob", AttachOptions{Begin: true}); err != nil {
		t.Fatal(err)
	}
	if err := st.Detach(ctx, "bob", false, "bob was stopped"); err != nil {
		t.Fatal(err)
	}
	list, _, _ := st.List()
	for _, s := range list {
		if s.State == wire.SessionActive {
			t.Errorf("%s goes on", s.SessionID)
		}
	}
}
