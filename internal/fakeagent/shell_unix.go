//go:build unix

package fakeagent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// shell is the plain profile: a shell with line editing as bash has it.
// Bracketed paste is on at the prompt and off while a command runs; a command
// is a process group of its own in the foreground; the terminal edits and
// echoes what is typed meanwhile, and that runs later.
//
// The words of the script are commands too, run by the shell itself. It reads
// the terminal only at its prompt and in CONFIRM, so its log has input only
// from there.
type shell struct {
	o       Options
	log     journal
	out     *painter
	keys    keys
	waiting []keystroke // read, but of a later line
	line    draft
	status  int
	signals chan os.Signal
	raw     func() error
	cooked  func()
}

func runShell(o Options, log journal) (int, error) {
	time.Sleep(o.StartDelay)
	cooked, _, _, err := openTerminal()
	if err != nil {
		return 2, err
	}
	defer func() { cooked() }()
	s := &shell{o: o, log: log, out: &painter{out: os.Stdout, split: o.Split, pause: o.SplitPause}, signals: make(chan os.Signal, 16)}
	s.cooked = func() { cooked() }
	s.raw = func() (err error) {
		cooked, _, _, err = openTerminal()
		return err
	}
	// A shell at its prompt ignores TERM and INT, and takes back the terminal.
	signal.Ignore(syscall.SIGTTOU)
	signal.Notify(s.signals, syscall.SIGINT, syscall.SIGTERM)
	if hasWord(strings.ReplaceAll(o.Trap, ",", " "), "HUP") {
		signal.Ignore(syscall.SIGHUP)
	}
	time.AfterFunc(o.Life, func() { os.Exit(98) })
	if o.Junk != "" {
		s.waiting = []keystroke{{"text", o.Junk}}
	}
	log.add(Entry{Event: Ready})
	for {
		line, ok := s.read()
		if !ok {
			break
		}
		for one := range strings.SplitSeq(line, "\n") {
			if one = strings.TrimSpace(one); one == "" {
				continue
			}
			leave, err := s.command(one)
			if err != nil || leave {
				log.add(Entry{Event: Exited, Code: s.status})
				return s.status, err
			}
		}
	}
	log.add(Entry{Event: Exited, Code: s.status})
	return s.status, nil
}

func (s *shell) pastes() bool { return orElse(s.o.Paste, "on") != "off" }

// prompt shows the prompt and the line so far.
func (s *shell) prompt() {
	mark, end := "", ""
	if s.o.Marks {
		mark, end = fmt.Sprintf("\x1b]133;D;%d\x07\x1b]133;A\x07", s.status), "\x1b]133;B\x07"
	}
	on := ""
	if s.pastes() {
		on = "\x1b[?2004h"
	}
	s.out.raw(mark + on + "$ " + end + strings.ReplaceAll(s.line.text(), "\n", "\r\n"))
}

// read edits a line until Return. False: the terminal is gone, or Ctrl-D.
func (s *shell) read() (string, bool) {
	s.log.add(Entry{Event: State, Text: "idle"})
	s.prompt()
	buf := make([]byte, 4096)
	for {
		for len(s.waiting) > 0 {
			k := s.waiting[0]
			s.waiting = s.waiting[1:]
			switch k.name {
			case "text":
				s.line.typed(k.text)
				s.log.add(Entry{Event: Typed, Text: k.text})
				s.out.raw(k.text)
			case "paste":
				s.line.typed(k.text)
				s.log.add(Entry{Event: Typed, Kind: "paste", Text: k.text})
				s.out.raw(inverse + strings.ReplaceAll(k.text, "\n", "\r\n") + upright)
			case "backspace":
				if !s.line.empty() {
					s.line.backspace()
					s.out.raw("\b \b")
				}
			case "ctrl-u":
				s.line.clear()
				s.out.raw("\r\x1b[K")
				s.prompt()
			case "ctrl-c":
				s.log.add(Entry{Event: Cleared, Text: s.line.text()})
				s.line.clear()
				s.status = 130
				s.out.raw("^C\r\n")
				s.prompt()
			case "ctrl-d":
				if s.line.empty() {
					s.out.raw("\x1b[?2004l\r\nexit\r\n")
					return "", false
				}
			case "reply":
				s.log.add(Entry{Event: Reply, Text: k.text})
			case "enter", "newline":
				line := s.line.text()
				s.line.clear()
				s.out.raw("\r\n")
				if s.pastes() {
					s.out.raw("\x1b[?2004l\r")
				}
				return line, true
			}
		}
		n, err := os.Stdin.Read(buf)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return "", false
		}
		s.log.input(Input, buf[:n])
		s.waiting = append(s.waiting, s.keys.feed(append([]byte(nil), buf[:n]...))...)
	}
}

// command runs one line; leave says that the shell ends.
func (s *shell) command(line string) (leave bool, err error) {
	s.log.add(Entry{Event: Submitted, Kind: "command", Text: line})
	if s.o.Marks {
		s.out.raw("\x1b]133;C\x07")
	}
	s.cooked()
	s.log.add(Entry{Event: State, Text: "tool_running"})
	name, rest, _ := strings.Cut(line, " ")
	switch list := steps(line); {
	case name == "exit":
		s.status, _ = strconv.Atoi(rest)
		return true, nil
	case name == "echo":
		s.status = 0
		s.out.raw(rest + "\r\n")
	case len(list) > 0:
		for _, one := range list {
			if leave, err := s.step(one); leave || err != nil {
				return leave, err
			}
		}
	default:
		s.external(line)
	}
	if s.status == 130 { // the terminal has shown ^C
		s.out.raw("\r\n")
	}
	s.log.add(Entry{Event: TurnOver, Kind: "completed", Text: line, Code: s.status})
	return false, s.raw()
}

// step is a word of the script.
func (s *shell) step(one step) (leave bool, err error) {
	s.status = 0
	switch one.word {
	case "THINK", "TOOL":
		s.wait(one.lasting)
	case "STREAM":
		for range 10 {
			s.out.raw("word ")
			if s.wait(one.lasting / 10); s.status != 0 {
				break
			}
		}
		s.out.raw("\r\n")
	case "ECHO":
		s.out.raw("[[" + one.arg + "]]\r\n")
	case "QUOTE":
		s.out.raw("Do you want to proceed?\r\n❯ 1. Yes\r\n  2. No\r\n")
	case "CONFIRM", "QUESTION", "TRUST":
		s.log.add(Entry{Event: DialogShown, Kind: "question", Text: one.arg})
		s.out.raw("Proceed? [y/N] ")
		s.log.add(Entry{Event: State, Text: "awaiting_input"})
		answer := s.cookedLine()
		s.log.add(Entry{Event: Answered, Kind: "question", Option: answer, Text: one.arg})
	case "ERROR":
		s.wait(one.lasting)
		s.out.raw("sh: it went wrong\r\n")
		s.status = 1
	case "FLOOD":
		line := strings.Repeat("The quick brown fox, 世界 ", 3) + "\r\n"
		piece := strings.Repeat(line, 1+32<<10/len(line))
		for left := int(one.amount * (1 << 20)); left > 0; left -= len(piece) {
			s.out.raw(piece)
		}
	case "LEAVE-ORPHAN":
		pid, err := startOrphan(orElse(one.lasting, time.Minute), one.arg == "tty")
		if err != nil {
			return false, err
		}
		s.log.add(Entry{Event: Orphaned, Code: pid})
	case "RESTART":
		s.log.add(Entry{Event: Restarted})
		_, err := startAnew()
		return true, err
	case "EXIT":
		s.status = int(one.amount)
		return true, nil
	case "CRASH":
		s.log.add(Entry{Event: Exited, Text: orElse(one.arg, "KILL")})
		_, err := dieOf(orElse(one.arg, "KILL"))
		return true, err
	}
	return false, nil
}

// wait is a command that only takes time. Ctrl-C ends it.
func (s *shell) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return
		case sig := <-s.signals:
			s.log.add(Entry{Event: Signalled, Text: nameOf(sig)})
			if sig == syscall.SIGINT {
				s.status = 130
				return
			}
		}
	}
}

// cookedLine reads a line that the terminal edits.
func (s *shell) cookedLine() string {
	var line []byte
	one := make([]byte, 1)
	for {
		n, err := os.Stdin.Read(one)
		if err != nil && !errors.Is(err, io.EOF) || n == 0 {
			return string(line)
		}
		s.log.input(Input, one)
		if one[0] == '\n' {
			return string(line)
		}
		line = append(line, one[0])
	}
}

// external runs a program in the foreground.
func (s *shell) external(line string) {
	argv := strings.Fields(line)
	if strings.ContainsAny(line, "|&;<>()$`\\\"'*?[#~=%{}") {
		argv = []string{"/bin/sh", "-c", line}
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Foreground: true, Ctty: 0}
	if err := cmd.Start(); err != nil {
		s.status = 127
		s.out.raw("sh: " + argv[0] + ": command not found\r\n")
		return
	}
	// Ctrl-C that came before the program had the terminal is for it as well.
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	for running := true; running; {
		select {
		case <-ended:
			running = false
		case sig := <-s.signals:
			s.log.add(Entry{Event: Signalled, Text: nameOf(sig)})
			if sig == syscall.SIGINT {
				_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT)
			}
		}
	}
	// The terminal is the shell's again. It was, where this fails.
	_ = unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, syscall.Getpgrp())
	s.status = exitCode(cmd.ProcessState)
}
