//go:build linux || darwin || freebsd

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/creack/pty"

	"github.com/agentteammail/atm/internal/driver"
	"github.com/agentteammail/atm/ptyrun"
	"github.com/agentteammail/atm/wire"
)

// terminals are the cases of the runner.
func (b *bench) terminals() []*Case {
	const bare = "a bare PTY read loop"
	return []*Case{
		{Name: fmt.Sprintf("`cat` of a log of %s through the runner", megabytes(b.Flood)), Against: bare, Goal: Goal{Speed: 0.9}, Rounds: 5, Open: openCat},
		{Name: fmt.Sprintf("`yes`, %s, through the runner", megabytes(b.Flood/15)), Against: bare, Goal: Goal{Speed: 0.9}, Rounds: 5, Open: openYes},
		{Name: "from `atm send` to the first byte typed into an idle agent", Against: "25 ms, a constant", Goal: Goal{Time: 1}, Open: openTyped},
		{Name: fmt.Sprintf("CPU time of %d idle runners", b.Runners), Against: "1 % of a core, a constant", Goal: Goal{Time: 1}, Rounds: 3, Open: openIdle},
	}
}

func megabytes(n int) string {
	return strconv.FormatFloat(float64(n)/(1<<20), 'g', 3, 64) + " MiB"
}

func openCat(b *bench) (cell, error) {
	log := filepath.Join(b.ground.path, "flood.log")
	if err := os.WriteFile(log, logLines(b.Flood), 0o600); err != nil {
		return nil, err
	}
	return b.flood("cat", "cat", log)
}

func openYes(b *bench) (cell, error) {
	// (The kernel takes fifty times as long for lines as short as that.)
	return b.flood("yes", "sh", "-c", fmt.Sprintf("yes | head -c %d; echo %s", b.Flood/30*2, lastLine))
}

// lastLine ends what floods a terminal.
const lastLine = "the-last-line"

// logLines are about n bytes of what programs log: some of it coloured, some
// wide, some longer than a row.
func logLines(n int) []byte {
	var out bytes.Buffer
	for i := 0; out.Len() < n; i++ {
		at := fmt.Sprintf("2026-11-20T14:%02d:%02d.%03dZ", i/60000%60, i/1000%60, i%1000)
		switch {
		case i%20 < 3:
			fmt.Fprintf(&out, "\x1b[2m%s\x1b[0m \x1b[32mINFO\x1b[0m \x1b[1;34mworker-%d\x1b[0m delivered \x1b[38;5;%dm%d\x1b[0m messages\n", at, i%8, i%256, i)
		case i%20 == 3:
			fmt.Fprintf(&out, "%s 情報 作業者%d: 端末の画面に書かれた文字は二つの桁を占める、%d通 ✓\n", at, i%8, i)
		case i%20 == 4:
			fmt.Fprintf(&out, "│ %s │ ⠋ naïve café %d │ done 👩‍🔬 👍🏽 🇩🇪 │\n", at, i)
		case i%20 == 5:
			fmt.Fprintf(&out, "%s DEBUG worker %d: %s\n", at, i%8, strings.Repeat(fmt.Sprintf("field%d=%d ", i%10, i), 16))
		default:
			fmt.Fprintf(&out, "%s INFO worker %d: delivered message %d to the mailbox of bob\n", at, i%8, i)
		}
	}
	out.WriteString(lastLine + "\n")
	return out.Bytes()
}

// flood compares a program's time in the terminal of a runner with that in a
// bare one. Each run is a process of its own: a runner adopts what loses its
// parent.
func (b *bench) flood(name string, argv ...string) (cell, error) {
	root, err := b.newRoot("flood", 0, wire.Name(name))
	if err == nil {
		err = root.close()
	}
	if err != nil {
		return nil, err
	}
	side := func(place string) single {
		return func() (time.Duration, error) {
			out, err := b.role(terminalMark+"="+place, append([]string{root.path, name}, argv...)...)
			if err != nil {
				return 0, err
			}
			return time.ParseDuration(strings.TrimSpace(out))
		}
	}
	return b.singles(side(inRunner), side(inBare)), nil
}

// role runs this program with a mark in its environment, and returns what it
// printed.
func (b *bench) role(mark string, args ...string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(b.ctx, self, args...)
	cmd.Env = append(os.Environ(), mark)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("this program with %s: %w", mark, err)
	}
	return string(out), err
}

const (
	terminalMark = "ATM_BENCH_TERMINAL" // in the environment: be a terminal, of one of two kinds
	inRunner     = "runner"
	inBare       = "bare"
)

// terminal runs a program in a terminal and prints how long it took from its
// start until it had ended and everything was taken.
func terminal(kind string, args []string) error {
	run := bareTerminal
	if kind == inRunner {
		run = func(argv []string) (time.Duration, error) { return runnerTerminal(args[0], wire.Name(args[1]), argv) }
	}
	took, err := run(args[2:])
	if err == nil {
		fmt.Println(took)
	}
	return err
}

const cols, rows = 120, 30

// bareTerminal is the least that can be done with a program's output: to read
// it.
func bareTerminal(argv []string) (time.Duration, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	master, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: cols, Rows: rows})
	if err != nil {
		return 0, err
	}
	defer master.Close()
	began := time.Now()
	last, p := []byte(nil), make([]byte, 64<<10)
	for err == nil {
		var n int
		if n, err = master.Read(p); n > 0 {
			last = append(last, p[max(0, n-len(lastLine)-2):n]...)
			last = last[max(0, len(last)-len(lastLine)-2):]
		}
	}
	if err := cmd.Wait(); err != nil {
		return 0, err
	}
	took := time.Since(began)
	if !strings.HasSuffix(string(last), lastLine+"\r\n") {
		return 0, fmt.Errorf("the terminal ended with %q", last)
	}
	return took, nil
}

// runnerTerminal is the runner, with its screen and its recording, as `atm run`
// has it.
func runnerTerminal(path string, name wire.Name, argv []string) (time.Duration, error) {
	root, err := openRoot(path)
	if err != nil {
		return 0, err
	}
	defer root.close()
	state, err := root.State(name)
	if err != nil {
		return 0, err
	}
	plain, _ := driver.Named("plain")
	run := string(wire.NewID())
	var began time.Time
	exit, err := ptyrun.Run(context.Background(), ptyrun.Options{
		Box: root.Box(name), State: *state, Run: run, Command: argv, Env: append(os.Environ(), "ATM_RUN="+run),
		Driver: plain, Auto: true, Inject: ptyrun.Body, Cols: cols, Rows: rows, Restart: ptyrun.Never,
		Started: func(int) { began = time.Now() },
	})
	took := time.Since(began)
	if err == nil && (exit.Code != 0 || len(exit.Tail) == 0 || exit.Tail[len(exit.Tail)-1] != lastLine) {
		err = fmt.Errorf("%s ended with %d and %q", argv[0], exit.Code, exit.Tail)
	}
	return took, err
}

// played reports whether this process was one that a case needs, and has done
// its part.
func played() bool {
	var err error
	if kind := os.Getenv(terminalMark); kind != "" {
		err = terminal(kind, os.Args[1:])
	} else if pipe := os.Getenv(promptMark); pipe != "" {
		err = prompt(pipe)
	} else {
		return false
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	return true
}
