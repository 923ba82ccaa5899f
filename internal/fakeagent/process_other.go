//go:build !unix

package fakeagent

import (
	"errors"
	"os"
	"time"
)

var errNoTerminal = errors.New("running agents is not supported here: there is no PTY")

const orphanEnv = "FAKEAGENT_ORPHAN"

func openTerminal() (restore func(), cols, rows int, err error) {
	return nil, 0, 0, errNoTerminal
}

func signalNamed(string) os.Signal { return os.Interrupt }

func (a *agent) listen() (stop func()) { return func() {} }

func (a *agent) hungUp() { a.leave(leaving{code: 1}) }

func (a *agent) end(restore func()) (int, error) {
	restore()
	return a.going.code, nil
}

func (a *agent) leaveOrphan(time.Duration, bool) {}

func linger(string) int { return 2 }

func runShell(Options, journal) (int, error) { return 2, errNoTerminal }
