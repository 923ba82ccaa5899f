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
// holds a lock, but for those of waitWith: docs/format.md names them, and init is of no team.

var waitWith = []string{"runner", "asks", "worktrees", "bridge", "link", "init"}

var holders sync.Map // by *Lock: the goroutine that took it

func (l *Lock) noteHeld() { holders.Store(l, goroutine()) }

func (l *Lock) noteFree() { holders.Delete(l) }

// Waits says that this goroutine is about to wait for more than the file system: a socket, another program, git.
func Waits(what string) {
	me := goroutine()
	holders.Range(func(l, by any) bool {
		name := l.(*Lock).name
		kind := name[strings.LastIndexByte(name, '.')+1:]
		if by == me && !slices.Contains(waitWith, kind) {
			panic(fmt.Sprintf("%s while the lock %s is held", what, name))
		}
		return true
	})
}

// goroutine names the goroutine that calls it.
func goroutine() string {
	var stack [64]byte
	first, _, _ := bytes.Cut(stack[:runtime.Stack(stack[:], false)], []byte(" ["))
	return string(first)
}
