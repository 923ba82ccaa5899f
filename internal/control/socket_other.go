//go:build !linux && !darwin && !freebsd

package control

import (
	"context"
	"os"
)

// listener has no values here: listen makes none.
type listener struct{}

func listen(string) (*listener, error) { return nil, ErrUnsupported }

func (*listener) accept() (*os.File, error) { return nil, ErrUnsupported }

func (*listener) close() error { return nil }

func dial(context.Context, string) (*os.File, Peer, error) { return nil, Peer{}, ErrUnsupported }

func peer(*os.File) (Peer, error) { return Peer{}, ErrUnsupported }

func hungUp(*os.File) bool { return true }

func transient(error) bool { return false }

func reset(error) bool { return false }
