//go:build !linux && !darwin && !freebsd

package child

import (
	"context"
	"fmt"
	"io"
	"syscall"
	"time"
)

// Child is a program on a terminal of its own, which this system cannot have:
// Start returns ErrUnsupported.
type Child struct{ done chan struct{} }

func Start(c Command) (*Child, error) { return nil, fmt.Errorf("run a program: %w", ErrUnsupported) }

func (c *Child) Read([]byte) (int, error)                              { return 0, io.EOF }
func (c *Child) Write([]byte, time.Duration) (int, error)              { return 0, ErrUnsupported }
func (c *Child) Resize(cols, rows int) error                           { return ErrUnsupported }
func (c *Child) Jiggle() error                                         { return ErrUnsupported }
func (c *Child) PID() int                                              { return 0 }
func (c *Child) Started() time.Time                                    { return time.Time{} }
func (c *Child) Process() Process                                      { return Process{} }
func (c *Child) Foreground() (pgid int, name string)                   { return 0, "" }
func (c *Child) Done() <-chan struct{}                                 { return c.done }
func (c *Child) Exit() Exit                                            { return Exit{} }
func (c *Child) Signal(syscall.Signal) error                           { return ErrUnsupported }
func (c *Child) Stop(context.Context, func(), time.Duration) (_ Ended) { return }
func (c *Child) Close() error                                          { return nil }

// Leftovers finds nothing: nothing can have been started.
func Leftovers(mark string) ([]Process, error) { return nil, nil }

// Marked finds nothing: an environment cannot be seen here.
func Marked(name, value string) ([]Process, error) { return nil, nil }

// End has nothing to end.
func End(ps []Process, grace time.Duration) error { return nil }

// Subreaper returns ErrUnsupported.
func Subreaper() error { return ErrUnsupported }
