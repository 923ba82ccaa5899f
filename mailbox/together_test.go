package mailbox

import (
	"errors"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/atomicfile"
)

// Who comes while a sync goes on is not served by that one, but shares the next
// with all who came meanwhile; an error is everybody's who waited for it.
func TestSyncTogether(t *testing.T) {
	t.Parallel()
	begun, goOn := make(chan int), make(chan error)
	n := 0
	path := t.TempDir()
	open := func() *atomicfile.Dir {
		d, err := atomicfile.Open(path, func(op atomicfile.Op, _ string) error {
			if op != atomicfile.OpSyncDir {
				return nil
			}
			n++ // one sync at a time
			begun <- n
			return <-goOn
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		return d
	}
	id, ok := open().Identity()
	if !ok {
		t.Skip("directories have no identity here")
	}
	var all sync.WaitGroup
	call := func() *error {
		d, err := open(), new(error)
		all.Go(func() { *err = syncTogether(d) })
		return err
	}
	// waiting is how many calls there are that have not returned.
	waiting := func(want int) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
			syncing.Lock()
			got := 0
			if s := syncing.dirs[id]; s != nil {
				got = s.users
			}
			syncing.Unlock()
			if got == want {
				return
			}
		}
		t.Fatalf("%d calls never came", want)
	}
	first := call()
	<-begun
	var second []*error
	for range 3 {
		second = append(second, call())
	}
	waiting(4)
	goOn <- nil
	if i := <-begun; i != 2 {
		t.Errorf("sync %d", i)
	}
	waiting(3)      // the first has returned
	third := call() // while the second goes on
	waiting(4)
	goOn <- syscall.EIO
	if i := <-begun; i != 3 {
		t.Errorf("sync %d", i)
	}
	goOn <- nil
	all.Wait()
	if *first != nil || *third != nil {
		t.Error(*first, *third)
	}
	for _, err := range second {
		if !errors.Is(*err, syscall.EIO) {
			t.Error(*err)
		}
	}
	if n != 3 {
		t.Errorf("%d syncs", n)
	}
}
