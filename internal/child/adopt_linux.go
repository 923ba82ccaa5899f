package child

import (
	"fmt"
	"os"
	"os/signal"
	"sync"

	"golang.org/x/sys/unix"
)

var adopting sync.Once

// Subreaper makes this process the parent of every descendant that loses its own
// (PR_SET_CHILD_SUBREAPER), so that a program cannot shed what it started by
// forking twice, and starts the goroutine that reaps them when they end. A runner
// calls it once before its first Start; both last for the process's life.
//
// Only processes that came by adoption are reaped: they are in another session
// than ours and were not started here. A child that other code starts in a
// session of its own must be started here too.
func Subreaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the parent of orphaned descendants: %w", err)
	}
	adopting.Do(func() {
		ended := make(chan os.Signal, 1)
		signal.Notify(ended, unix.SIGCHLD)
		go func() {
			for range ended {
				reapAdopted()
			}
		}()
	})
	return nil
}

// reapAdopted reaps the adopted processes that have ended.
func reapAdopted() {
	kin.Lock()
	defer kin.Unlock()
	self, session := os.Getpid(), ownSession()
	adopted := func(e entry) bool {
		return e.ppid == self && e.sid != session && kin.of[e.pid] == nil
	}
	// The kernel names one that has ended. As long as it is one to reap this
	// saves the census; wait4(-1) itself would take other code's children.
	for {
		var info siginfo
		if err := waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT); err != nil || info.pid == 0 {
			return
		}
		if e, ok := look(int(info.pid)); !ok || !adopted(e) || !reap(e.pid) {
			break
		}
	}
	all, err := census()
	if err != nil {
		return
	}
	for _, e := range all {
		if e.zombie && adopted(e) {
			reap(e.pid)
		}
	}
}

func reap(pid int) bool {
	got, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
	return err == nil && got == pid
}
