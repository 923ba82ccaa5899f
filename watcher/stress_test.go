package watcher

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/testtree"
	"github.com/agentteammail/atm/wire"
)

func init() {
	// deliver: so many messages into bob's mailbox, from another process.
	children["deliver"] = func() {
		s, err := openStoreIn(os.Getenv("ATM_WATCHER_BOX"))
		if err != nil {
			panic(err)
		}
		n, _ := strconv.Atoi(os.Getenv("ATM_WATCHER_N"))
		var ids strings.Builder
		for range n {
			p := &maildir.Post{Message: message("alice", "m"), To: []*maildir.Box{s.Box("bob")}}
			maildir.Deliver(context.Background(), p)
			if err := p.Outcomes[0].Err; err != nil {
				panic(err)
			}
			fmt.Fprintln(&ids, p.Message.ID)
		}
		os.Stdout.WriteString(ids.String())
	}
}

func TestManySendersAndASlowConsumer(t *testing.T) {
	t.Parallel()
	const senders, each = 3, 2000
	dir := testtree.Memory(t)
	bob := openStore(t, dir, "bob").Box("bob")
	w := watch(t, Options{Messages: true}, bob)
	sent := make(chan string, senders)
	for range senders {
		go func() {
			c := exec.Command(os.Args[0])
			c.Env = append(os.Environ(), "ATM_WATCHER_TEST=deliver", "ATM_WATCHER_BOX="+dir, fmt.Sprint("ATM_WATCHER_N=", each))
			c.Stderr = os.Stderr
			out, err := c.Output()
			if err != nil {
				t.Error(err)
			}
			sent <- string(out)
		}()
	}
	count := map[wire.ID]int{}
	for i := range senders * each {
		count[next(t, w).Message.ID]++
		if i%10 == 0 {
			time.Sleep(2 * time.Millisecond) // slower than the senders
		}
	}
	for range senders {
		for _, id := range strings.Fields(<-sent) {
			if count[wire.ID(id)] != 1 {
				t.Fatalf("%s came %d times", id, count[wire.ID(id)])
			}
		}
	}
	nothing(t, w, bob)
}

// unwatch has the kernel let go of a mailbox unheard.
func unwatch(w *Watcher) {
	for _, path := range w.sources[0].paths {
		w.dirs.fs.Remove(path)
	}
}

func TestLostEvents(t *testing.T) {
	_, bob := bobs(t)
	w := watch(t, Options{Messages: true, Events: true}, bob)
	unwatch(w)
	for _, body := range []string{"one", "two", "three"} {
		deliver(t, bob, body)
	}
	w.dirs.fs.Errors <- fsnotify.ErrEventOverflow
	expect(t, w, "one", "two", "three")
	deliver(t, bob, "four") // and is watched again
	expect(t, w, "four")
	appendEvent(t, bob, "turn_idle")
	expect(t, w, "turn_idle 1")
	nothing(t, w, bob)
}
