package main

import (
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/term"
)

// progress shows a counter on stderr while something long goes on, on a
// terminal and only after half a second. stop takes it away again.
func (e *env) progress(what string, n *atomic.Int64) (stop func()) {
	if e.Quiet() || !term.IsTerminal(int(e.Stderr.Fd())) {
		return func() {}
	}
	done, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		wait := time.NewTimer(500 * time.Millisecond)
		defer wait.Stop()
		for shown := false; ; shown = true {
			select {
			case <-done:
				if shown {
					fmt.Fprint(e.Stderr, "\r\x1b[K")
				}
				return
			case <-wait.C:
				fmt.Fprintf(e.Stderr, "\r%d %s", n.Load(), what)
				wait.Reset(200 * time.Millisecond)
			}
		}
	}()
	return func() { close(done); <-gone }
}
