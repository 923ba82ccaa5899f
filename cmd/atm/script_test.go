package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/agentteammail/atm/cmd/internal/testteam"
	"github.com/agentteammail/atm/internal/testprogram"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// speak sends lines to a Unix socket, and prints all that comes back.
func speak(socket string, lines []string) {
	if target, err := os.Readlink(socket); err == nil {
		socket = target
	}
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	if err == nil {
		_, err = conn.Write([]byte(strings.Join(lines, "\n") + "\n"))
	}
	if err == nil {
		conn.CloseWrite() // it answers what it has got, and closes
		_, err = io.Copy(os.Stdout, conn)
	}
	if err != nil {
		fmt.Println(err)
	}
}

func TestMain(m *testing.M) {
	if socket := os.Getenv("ATM_SOCKET"); socket != "" {
		speak(socket, os.Args[1:])
		return
	}
	if session := os.Getenv("ATM_CLAUDE"); session != "" {
		if err := beClaude(session, os.Args[1:]); err != nil {
			panic(err)
		}
		return
	}
	// The programs wait more than they compute.
	flag.Parse()
	flag.Set("test.parallel", "12")
	testteam.Main(m)
}

// TestScripts runs the manual: testdata/script/*/*.txtar. A script's name is that of its file, whatever its folder.
func TestScripts(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob(filepath.Join("..", "..", "testdata", "script", "*", "*.txtar"))
	must(t, err)
	testscript.Run(t, testscript.Params{
		Files:               scripts,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, ".home")
			env.Setenv("HOME", home)
			env.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
			env.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
			env.Setenv("GIT_CONFIG_SYSTEM", os.DevNull)
			env.Setenv("TZ", "UTC")
			self, err := os.Executable()
			if err != nil {
				return err
			}
			env.Setenv("SPEAK", self)
			// The race detector would sleep a second at the end of each process.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			env.Setenv("PATH", testprogram.Racing+string(os.PathListSeparator)+env.Getenv("PATH"))
			return os.Mkdir(home, 0o700)
		},
		Condition: func(name string) (bool, error) {
			if name != "namespaces" {
				return false, fmt.Errorf("unknown condition %s", name)
			}
			return exec.Command("unshare", "-pf", "--mount-proc", "true").Run() == nil, nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"keep":       keep,
			"exit":       exitCode,
			"line":       line,
			"lines":      count("lines", func(out string) int { return strings.Count(out, "\n") }),
			"bytes":      count("bytes", func(out string) int { return len(out) }),
			"eventually": eventually,
			"nats":       natsServer,
		},
	})
}

// keep NAME REGEXP sets an environment variable to the regexp's first group in the last command's stdout.
func keep(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: keep NAME REGEXP")
	}
	m := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if m == nil {
		ts.Fatalf("%s is not in stdout", args[1])
	}
	ts.Setenv(args[0], m[len(m)-1])
}

// exit CODE COMMAND… runs a command that must end with that exit code.
func exitCode(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: exit CODE COMMAND…")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := "0"
	if err != nil {
		code = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if (code == args[0]) == neg {
		ts.Fatalf("%v: exit %s, not %s", args[1:], code, args[0])
	}
}

// line NAME JSON sends a line of a batch as a member; with ! in front, it must fail.
func line(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: line NAME JSON")
	}
	err := ts.Exec("sh", "-c", `printf '%s\n' "$1" | atm send --batch --as "$0"`, args[0], args[1])
	if (err == nil) == neg {
		ts.Fatalf("%v: %v", args, err)
	}
}

// count is a command that compares the number of something in the last stdout with its argument; with a leading "-"
// that is the maximum.
func count(what string, n func(stdout string) int) func(ts *testscript.TestScript, neg bool, args []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		limit, most := strings.CutPrefix(args[0], "-")
		want, err := strconv.Atoi(limit)
		got := n(ts.ReadFile("stdout"))
		if isSo := got == want || most && got <= want; err != nil || isSo == neg {
			ts.Fatalf("stdout has %d %s, not %s", got, what, args[0])
		}
	}
}

// eventually COMMAND… repeats a command until it succeeds, for three minutes at most.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if !within(3*time.Minute, func() bool { return ts.Exec(args[0], args[1:]...) == nil }) {
		ts.Fatalf("%v never succeeded", args)
	}
}

// within polls a condition, and reports whether it held in time. Asking takes a third of the time at most: what it waits
// for needs the processor.
func within(limit time.Duration, isSo func() bool) bool {
	for end := time.Now().Add(limit); ; {
		asked := time.Now()
		if isSo() {
			return true
		}
		if asked.After(end) {
			return false
		}
		time.Sleep(5*time.Millisecond + 2*time.Since(asked))
	}
}

// nats starts a nats-server for the script, and sets NATS to its URL.
func natsServer(ts *testscript.TestScript, neg bool, args []string) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: ts.MkAbs(".nats"), NoSigs: true, NoLog: true})
	ts.Check(err)
	s.Start()
	ts.Defer(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		ts.Fatalf("the server does not start")
	}
	ts.Setenv("NATS", s.ClientURL())
}
