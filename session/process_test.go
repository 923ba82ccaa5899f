//go:build unix

package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

// With ATM_TEST_ROLE set, the test binary does one thing to a session until it is killed, and prints what it has done.
func TestMain(m *testing.M) {
	role := os.Getenv("ATM_TEST_ROLE")
	if role == "" {
		os.Exit(m.Run())
	}
	st, t, id := openTeam(process{}, os.Args[1]), process{}, wire.UUID(os.Args[2])
	fmt.Println("ready")
	switch role {
	case "say":
		for i := 0; ; i++ {
			word := fmt.Sprintf("%s-%d", os.Args[3], i)
			_, err := st.Change(ctx, id, func(s *Session) error { s.LogMessage(SenderHuman, word, now()); return nil })
			must(t, err)
			fmt.Println(word)
		}
	case "take":
		c, err := st.Channel(id)
		must(t, err)
		for {
			_, err := c.Handle(ctx, time.Minute, func(in Input) error {
				_, err := fmt.Println(in.Text) // used, and on record
				return err
			})
			if err == ErrChannelClosed {
				os.Exit(0)
			}
			must(t, err)
		}
	}
	os.Exit(1)
}

// process is a tb whose failures end this process.
type process struct{}

func (process) Fatal(args ...any) {
	fmt.Println(append([]any{"error"}, args...)...)
	os.Exit(1)
}

// runRole runs this binary in a role, kills it some time after it is ready (0: never), and returns its lines.
func runRole(t *testing.T, role string, kill time.Duration, args ...string) []string {
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), "ATM_TEST_ROLE="+role, "GORACE=atexit_sleep_ms=0")
	out, err := c.StdoutPipe()
	if err = errors.Join(err, c.Start()); err != nil {
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

// killed runs this binary in a role in parallel, kills each process at a random moment and starts it again, and returns
// all their lines.
func killed(t *testing.T, processes, rounds int, run func(process, round int, kill time.Duration) []string) (all []string) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for p := range processes {
		wg.Go(func() {
			isDone := false
			for round := 0; !isDone; round++ {
				lines := run(p, round, time.Duration((round+1)*(50+rand.IntN(130)))*time.Millisecond)
				mu.Lock()
				all = append(all, lines...)
				isDone = round+1 >= rounds && (len(all) > 0 || round > 100) // a busy machine is given more time
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(all) == 0 {
		t.Error("nothing was done at all")
	}
	return all
}

// Processes that change one session are killed at random: the file is always whole, and every change that was reported
// as done is there, once and in order.
func TestKilledWhileChanging(t *testing.T) {
	st := testTeam(t)
	s := begin(t, st)
	looking, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for ; looking.Err() == nil; time.Sleep(time.Millisecond) {
			if _, err := st.Get(s.SessionID); err != nil && looking.Err() == nil {
				t.Errorf("looked at while it was changed: %v", err)
			}
		}
	}()
	done := killed(t, 3, 4, func(p, round int, kill time.Duration) []string {
		return runRole(t, "say", kill, st.mail.Dir().Path(), string(s.SessionID), fmt.Sprintf("w%d-%d", p, round))
	})
	stop()
	got, err := st.Get(s.SessionID)
	must(t, err)
	times, last := map[string]int{}, map[string]int{}
	for _, m := range got.Messages {
		times[m.Content]++
		i := strings.LastIndex(m.Content, "-")
		count, _ := strconv.Atoi(m.Content[i+1:])
		if before, ok := last[m.Content[:i]]; ok && count != before+1 {
			t.Errorf("%s after %d", m.Content, before)
		}
		last[m.Content[:i]] = count
	}
	for _, word := range done {
		if times[word] != 1 {
			t.Errorf("%s stands there %d times", word, times[word])
		}
	}
}

// A process that receives input is killed at random: every input is handled, and twice only after a kill.
func TestKilledWhileHandling(t *testing.T) {
	st := testTeam(t)
	s := begin(t, st)
	const inputs, processes, kills = 150, 1, 8
	go func() {
		for i := range inputs {
			tell(t, st, s.SessionID, text(fmt.Sprint("input", i)))
		}
		// The last processes end with the session, after they have handled the inbox.
		for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			if left, err := st.mail.Box("bob").UnreadIDs(); err == nil && len(left) == 0 {
				break
			}
		}
		move(t, st, s.SessionID, Completed)
	}()
	times := map[string]int{}
	for _, word := range killed(t, processes, kills+1, func(_, round int, kill time.Duration) []string {
		if round == kills {
			kill = 0 // to the end
		}
		return runRole(t, "take", kill, st.mail.Dir().Path(), string(s.SessionID))
	}) {
		times[word]++
	}
	again := 0
	for i := range inputs {
		n := times[fmt.Sprint("input", i)]
		if n == 0 {
			t.Errorf("input %d was never used", i)
		}
		again += max(0, n-1)
	}
	if again > processes*kills {
		t.Errorf("%d inputs were used again, after %d kills", again, processes*kills)
	}
}
