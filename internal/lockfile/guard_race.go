//go:build race

package lockfile

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// Only tests are built with the race detector. In them a goroutine panics that waits for more than the file system while it
// holds a lock, but for those of waitWith: docs/format.md names them, and init is of no team. So does one that reads a log or
// a mailbox while it holds the lock team.

var waitWith = []string{"runner", "pane", "asks", "worktrees", "bridge", "link", "init"}

var holders sync.Map // by *Lock: the goroutine that took it

func (l *Lock) noteHeld() { holders.Store(l, goroutine()) }

func (l *Lock) noteFree() { holders.Delete(l) }

// Waits says that this goroutine is about to wait for more than the file system: a socket, another program, git.
func Waits(what string) {
	mayHold(what, func(kind string) bool { return slices.Contains(waitWith, kind) })
}

// Reads says that this goroutine is about to read what grows: a log, a mailbox. While it holds the lock team all members of a
// team would wait for that. What changes a session, or answers on its channel, looks once more, at what has come since its look
// before.
func Reads(what string) {
	if !isIn("/session.") && !isIn("/teamdir/input.") && !isIn("/aswire.") {
		mayHold(what, func(kind string) bool { return kind != "team" })
	}
}

// mayHold panics if this goroutine holds a lock of another kind.
func mayHold(what string, isRight func(kind string) bool) {
	me := goroutine()
	holders.Range(func(l, by any) bool {
		name := l.(*Lock).name
		if by == me && !isRight(name[strings.LastIndexByte(name, '.')+1:]) {
			panic(fmt.Sprintf("%s while the lock %s is held", what, name))
		}
		return true
	})
}

// isIn reports whether a function whose name has a text has called this one.
func isIn(text string) bool {
	var callers [64]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(0, callers[:])])
	for f, more := frames.Next(); ; f, more = frames.Next() {
		if strings.Contains(f.Function, text) {
			return true
		}
		if !more {
			return false
		}
	}
}

// goroutine names the goroutine that calls it.
func goroutine() string {
	var stack [64]byte
	first, _, _ := bytes.Cut(stack[:runtime.Stack(stack[:], false)], []byte(" ["))
	return string(first)
}
