//go:build unix

package outlet

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// job is the job control of a Screen: one goroutine for signals and one for
// keys, which close ends and waits for.
type job struct {
	signals chan os.Signal
	wake    *os.File      // closed: the keys are over
	was     *unix.Termios // of the keyboard; nil: it is as it was
	wg      sync.WaitGroup
}

func (j *job) open(s *Screen) {
	j.signals = make(chan os.Signal, 4)
	signal.Notify(j.signals, syscall.SIGTSTP, syscall.SIGCONT, syscall.SIGWINCH)
	j.wg.Add(1)
	go func() {
		defer j.wg.Done()
		for sig := range j.signals {
			s.mu.Lock()
			if sig == syscall.SIGTSTP {
				s.leave()
				// Caught, it does not stop us. This does, all threads but at no
				// known moment: nothing is painted until we are told to go on.
				unix.Kill(os.Getpid(), unix.SIGSTOP)
				for sig != syscall.SIGCONT && sig != nil {
					sig = <-j.signals
				}
			}
			if s.last != "" {
				s.show()
			}
			s.mu.Unlock()
		}
	}()
	if s.In == nil {
		return
	}
	woken, wake, err := os.Pipe()
	if err != nil {
		return
	}
	j.wake = wake
	j.wg.Add(1)
	go func() {
		defer j.wg.Done()
		defer woken.Close()
		j.keys(s, woken)
	}()
}

// keys reads what is typed while the screen is ours, and looks for a q in it.
func (j *job) keys(s *Screen, woken *os.File) {
	in := int(s.In.Fd())
	buf := make([]byte, 64)
	for {
		fds := []unix.PollFd{{Fd: int32(woken.Fd()), Events: unix.POLLIN}, {Fd: int32(in), Events: unix.POLLIN}}
		_, err := unix.Poll(fds, -1)
		if err == unix.EINTR {
			continue
		}
		if err != nil || fds[0].Revents != 0 || fds[1].Revents&unix.POLLIN == 0 {
			return
		}
		s.mu.Lock()
		ours := s.shown && j.foreground(s)
		n := 0
		if ours {
			n, err = unix.Read(in, buf)
		}
		s.mu.Unlock()
		switch {
		case !ours: // somebody else's keys: to read them would stop us
			fds = fds[:1]
			unix.Poll(fds, 500)
			if fds[0].Revents != 0 {
				return
			}
		case n <= 0 && err != unix.EINTR:
			return
		}
		for _, c := range buf[:max(0, n)] {
			if c == 'q' || c == 'Q' {
				close(s.quit)
				return
			}
		}
	}
}

func (j *job) close(s *Screen) {
	signal.Stop(j.signals)
	close(j.signals)
	if j.wake != nil {
		j.wake.Close()
	}
	j.wg.Wait()
}

// foreground reports whether the terminal is ours to write to.
func (j *job) foreground(s *Screen) bool {
	group, err := unix.IoctlGetInt(int(s.Out.Fd()), unix.TIOCGPGRP)
	if err != nil {
		return true // no job control there
	}
	// The kernel writes 32 bits, which are the upper ones on some machines.
	return group == unix.Getpgrp() || group>>32 == unix.Getpgrp()
}

// hush has keys come one by one and not be echoed; signals stay.
func (j *job) hush(s *Screen) {
	if s.In == nil || j.was != nil {
		return
	}
	was, err := unix.IoctlGetTermios(int(s.In.Fd()), getTermios)
	if err != nil {
		return
	}
	quiet := *was
	quiet.Lflag &^= unix.ECHO | unix.ICANON
	quiet.Cc[unix.VMIN], quiet.Cc[unix.VTIME] = 1, 0
	if unix.IoctlSetTermios(int(s.In.Fd()), setTermios, &quiet) == nil {
		j.was = was
	}
}

func (j *job) restore(s *Screen) {
	if j.was != nil && j.foreground(s) {
		unix.IoctlSetTermios(int(s.In.Fd()), setTermios, j.was)
	}
	j.was = nil
}
