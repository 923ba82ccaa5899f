//go:build unix

package session

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

// process is a tb whose failures end this process.
type process struct{}

func (process) Fatal(args ...any) {
	fmt.Println(append([]any{"error"}, args...)...)
	os.Exit(1)
}

// With ATM_TEST_TEAM set, the test binary begins and ends sessions of that team until it is killed, and prints what it has
// done.
func TestMain(m *testing.M) {
	team := os.Getenv("ATM_TEST_TEAM")
	if team == "" {
		os.Exit(m.Run())
	}
	st := openTeam(process{}, team)
	for {
		s := begin(process{}, st)
		fmt.Println("begun", s.SessionID)
		for range 3 {
			draft := wire.UUID(wire.NewID())
			_, err := st.Change(ctx, s.SessionID, func(s *Session) error { s.AddDraft(draft, now()); return nil })
			must(process{}, err)
			fmt.Println("draft", s.SessionID, draft)
		}
		move(process{}, st, s.SessionID, Completed)
		fmt.Println("ended", s.SessionID)
	}
}

// Processes that change sessions are killed at random: every file is always whole, everything that was reported as done is
// there, and what is over is in the archive once somebody changes a session.
func TestKilled(t *testing.T) {
	st := testTeam(t)
	begin(t, st) // for whoever looks
	var mu sync.Mutex
	var done []string
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for round := range 5 {
				c := exec.Command(os.Args[0])
				c.Env = append(os.Environ(), "ATM_TEST_TEAM="+st.mail.Dir().Path(), "GORACE=atexit_sleep_ms=0")
				out, err := c.StdoutPipe()
				if err != nil || c.Start() != nil {
					t.Error("a process cannot be started")
					return
				}
				in := bufio.NewScanner(out)
				for n := 0; in.Scan(); n++ {
					if n == 0 {
						time.AfterFunc(time.Duration((round+1)*(20+rand.IntN(80)))*time.Millisecond, func() { c.Process.Kill() })
					}
					mu.Lock()
					done = append(done, in.Text())
					mu.Unlock()
				}
				c.Wait()
			}
		})
	}
	isOver := make(chan bool)
	go func() { wg.Wait(); close(isOver) }()
	for looking := true; looking; {
		if list, bad, err := st.List(); len(list) == 0 || len(bad) > 0 || err != nil {
			t.Fatalf("looked at meanwhile: %v, %v, %v", list, bad, err)
		}
		select {
		case <-isOver:
			looking = false
		case <-time.After(time.Millisecond):
		}
	}
	move(t, st, begin(t, st).SessionID, Aborted) // archives what a killed process has left
	beside, _, err := st.list(sessionsDir)
	must(t, err)
	for _, s := range beside {
		if !s.State.Alive() {
			t.Errorf("%s is %s, and not archived", s.SessionID, s.State)
		}
	}
	drafts := map[wire.UUID][]string{}
	for _, line := range done {
		words := strings.Fields(line)
		if words[0] == "error" {
			t.Fatal(line)
		}
		s, err := st.Get(wire.UUID(words[1]))
		must(t, err)
		switch words[0] {
		case "ended":
			if s.State != Completed {
				t.Errorf("%s is %s", s.SessionID, s.State)
			}
		case "draft":
			drafts[s.SessionID] = append(drafts[s.SessionID], words[2])
			if i := len(drafts[s.SessionID]) - 1; len(s.DraftIDs) <= i || string(s.DraftIDs[i]) != words[2] {
				t.Errorf("%s is not in %v", words[2], s.DraftIDs)
			}
		}
	}
	if len(drafts) == 0 {
		t.Error("nothing was done at all")
	}
}
