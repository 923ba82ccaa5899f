// Package testprogram builds the programs that tests start, and takes the place of a runner that hangs.
package testprogram

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/gofrs/flock"
)

// Beside are the programs beside atm, and atm, for Main.
const Beside = "./cmd/atm..."

// Main builds programs, puts them first on PATH, runs the tests of a package, and ends the process: see Build.
func Main(m *testing.M, more ...string) {
	if err := Build(more...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// Build builds atm, what stands for an agent, and the programs of more packages, and puts them on PATH in this order. They
// lie in bin/test, where all packages share them: what is there already and made of the same source is not built again.
// The first ones never have the race detector, with which each start takes four times as long; the others have it if the
// test has it.
func Build(more ...string) error {
	top, err := top()
	if err != nil {
		return err
	}
	lock := flock.New(filepath.Join(top, "bin", "test", ".lock"))
	if err := errors.Join(os.MkdirAll(filepath.Dir(lock.Path()), 0o755), lock.Lock()); err != nil {
		return err
	}
	defer lock.Unlock()
	plain := []string{"./cmd/atm", "./internal/testagent/cmd/fakeagent", "github.com/coder/acp-go-sdk/example/agent"}
	if err := build(top, "plain", false, plain); err != nil {
		return err
	}
	kind := "other"
	if isRacing() {
		kind = "race"
	}
	if len(more) > 0 {
		if err := build(top, kind, isRacing(), more); err != nil {
			return err
		}
	}
	if err := lookAtSource(top, append(plain, more...)); err != nil {
		return err
	}
	Racing = filepath.Join(top, "bin", "test", kind)
	dirs := []string{filepath.Join(top, "bin", "test", "plain"), Racing, os.Getenv("PATH")}
	return os.Setenv("PATH", strings.Join(dirs, string(os.PathListSeparator)))
}

// Racing is where Build has put the programs that have the race detector if the test has it, atm among them.
var Racing string

// isRacing reports whether this program has the race detector.
func isRacing() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// top finds the directory of the module, in or above this one.
func top() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		above := filepath.Dir(dir)
		if above == dir {
			return "", errors.New("no go.mod in or above the working directory")
		}
		dir = above
	}
	return "", err
}

var flags = []string{"-trimpath", "-buildvcs=false", "-tags=urfave_cli_no_docs", "-ldflags=-w"} // as the Makefile has them

func build(top, dir string, isRacing bool, packages []string) error {
	args, cgo := append([]string{"build", "-o", filepath.Join(top, "bin", "test", dir) + string(filepath.Separator)}, flags...), "0"
	if isRacing { // the race detector needs cgo
		args, cgo = append(args, "-race"), "1"
	}
	cmd := exec.Command("go", append(args, packages...)...)
	cmd.Dir, cmd.Env = top, append(os.Environ(), "CGO_ENABLED="+cgo)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %v: %v\n%s", packages, err, out)
	}
	return nil
}

// lookAtSource looks at the files that programs are made of: go test notes that, and does not take a result from its cache
// once one has changed.
func lookAtSource(top string, packages []string) error {
	const files = `{{if .Module}}{{if .Module.Main}}{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}}
{{end}}{{range .EmbedFiles}}{{$dir}}/{{.}}
{{end}}{{end}}{{end}}`
	cmd := exec.Command("go", append(append([]string{"list", "-deps", "-f", files}, flags...), packages...)...)
	cmd.Dir = top
	out, err := cmd.Output()
	for file := range bytes.Lines(out) {
		if _, e := os.Stat(strings.TrimSpace(string(file))); err == nil && len(bytes.TrimSpace(file)) > 0 {
			err = e
		}
	}
	return err
}

// Hang makes the socket of a runner that does not answer, in its agent's run directory. asked is called when a question
// begins and ends; nil: nobody wants to know.
func Hang(t *testing.T, run string, asked func(bool)) {
	t.Helper()
	if err := os.MkdirAll(run, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(run) // the path may be too long for a socket
	l, err := net.Listen("unix", "control.sock")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if asked == nil {
		asked = func(bool) {}
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			asked(true)
			go func() {
				io.Copy(io.Discard, conn)
				asked(false)
			}()
		}
	}()
}
