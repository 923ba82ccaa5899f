//go:build !unix

package main

import (
	"context"
	"errors"
	"os"

	"github.com/agentteammail/atm/internal/control"
)

// A console is this terminal while it shows an agent's, which are not run in
// terminals on this system.
type console struct {
	typed chan []byte
	sizes chan control.Size
}

var (
	errSuspended = errors.New("suspended")
	errHungUp    = errors.New("the terminal was closed")
	errAsked     = errors.New("asked to end")
)

func openConsole(*os.File, *os.File) (*console, error) { return nil, control.ErrUnsupported }

func (*console) enter(context.Context) (context.Context, error) { return nil, control.ErrUnsupported }

func (*console) leave() {}

func (*console) close() {}

func (*console) pause() {}

func (*console) Write([]byte) (int, error) { return 0, control.ErrUnsupported }

func (*console) size() control.Size { return control.Size{} }
