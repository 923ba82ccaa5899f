//go:build !linux && !darwin

package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Child cannot be started on this system.
type Child struct {
	Stdin          io.WriteCloser
	Stdout, Stderr io.Reader
}

var errUnsupported = fmt.Errorf("agents run on Linux, on macOS, and in WSL: %w", errors.ErrUnsupported)

func Start(Command) (*Child, error)                   { return nil, errUnsupported }
func LookUp(string, string, []string) (string, error) { return "", errUnsupported }

func (c *Child) Read([]byte) (int, error)                            { return 0, io.EOF }
func (c *Child) Write([]byte, time.Duration) (int, error)            { return 0, errUnsupported }
func (c *Child) Resize(cols, rows int) error                         { return errUnsupported }
func (c *Child) PID() int                                            { return 0 }
func (c *Child) Wake()                                               {}
func (c *Child) Foreground() (pgid int, name string)                 { return 0, "" }
func (c *Child) HidesLines() bool                                    { return false }
func (c *Child) Done() <-chan struct{}                               { return nil }
func (c *Child) Exit() Exit                                          { return Exit{} }
func (c *Child) Stop(context.Context, time.Duration) ([]Info, error) { return nil, nil }

// Helper cannot be started on this system.
type Helper struct{}

func StartHelper(Command, io.Writer) (*Helper, error) { return nil, errUnsupported }

func (h *Helper) Done() <-chan struct{} { return nil }
func (h *Helper) Exit() Exit            { return Exit{} }
func (h *Helper) Kill()                 {}

func Terminal(int, string) (has, isInFront bool) { return false, false }

func Ancestors(pid int) []int                  { return nil }
func (i Info) IsRunning() bool                 { return false }
func Find(pid int) (p Info, ok bool)           { return p, false }
func Program() (p Info, ok bool)               { return p, false }
func Parent() int                              { return 0 }
func Environment(pid int) []string             { return nil }
func Arguments(pid int) []string               { return nil }
func Dir(pid int) string                       { return "" }
func Named(name string) []Info                 { return nil }
func Inherited() [][]string                    { return nil }
func Leftovers(mark string) ([]Info, error)    { return nil, nil }
func EndLeftovers(mark string) ([]Info, error) { return nil, nil }
func Subreaper() error                         { return errUnsupported }
func CheckTable() error                        { return errUnsupported }
