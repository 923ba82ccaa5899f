//go:build unix

package main

import (
	"os"
	"os/exec"
	"syscall"
)

// startGuard starts a guard.
func startGuard() (*guard, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	c := exec.Command(exe, os.Args[1:]...)
	c.Env, c.ExtraFiles = guardEnv(3), []*os.File{r}
	detached(c) // what ends a terminal's processes leaves it alone
	if err := c.Start(); err != nil {
		w.Close()
		return nil, err
	}
	g := &guard{pipe: w, ended: make(chan struct{}), c: c}
	go func() {
		defer close(g.ended)
		c.Wait()
	}()
	return g, nil
}

// tellAll sends a signal to a command and what it started.
func tellAll(c *exec.Cmd, s os.Signal) {
	if n, ok := s.(syscall.Signal); ok {
		syscall.Kill(-c.Process.Pid, n)
	}
}
