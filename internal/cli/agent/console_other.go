//go:build !unix

package agent

import (
	"context"
	"os"

	"github.com/agentteammail/atm/internal/control"
)

// A console is this terminal while it shows an agent's; agents are not run in
// terminals on this system.
type console struct {
	typed chan []byte
	sizes chan control.Size
	ctx   context.Context
}

func openConsole(context.Context, *os.File, *os.File) (*console, error) {
	return nil, control.ErrUnsupported
}

func (*console) enter() error { return control.ErrUnsupported }

func (*console) leave(bool) {}

func (*console) close() {}

func (*console) Write([]byte) (int, error) { return 0, control.ErrUnsupported }

func (*console) size() control.Size { return control.Size{} }
