//go:build !unix

package testagent

import (
	"errors"
	"time"
)

func openTerminal() (restore func(), cols, rows int, err error) {
	return nil, 0, 0, errors.New("there is no terminal for agents on this system")
}

func (a *agent) handleSignals() {}

func killSelf() {}

func (a *agent) leaveOrphan(time.Duration) {}

func runOrphan(time.Duration) {}
