//go:build linux

package machines

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A host is a machine: a disk with a root, a user's configuration and state, and a bridge.
type host struct {
	name    string
	members []string
	dir     string // its disk
	mounted bool   // the disk is its own, and so can be full
	*network
	bridge *program

	full atomic.Bool // fill is at it
}

// newHosts makes hosts with a key each, which trust each other, and starts their bridges.
func newHosts(t testing.TB, dir string, servers []string, team map[string][]string, names ...string) (all []*host) {
	for _, name := range names {
		h := &host{name: name, members: team[name], dir: filepath.Join(dir, name)}
		if err := os.Mkdir(h.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		h.mount(t)
		h.must(t, append([]string{"init"}, h.members...)...)
		all = append(all, h)
	}
	for _, h := range all {
		trust := strings.Fields(h.must(t, "bridge", "keygen", "--host", h.name))
		for _, other := range all {
			if other != h {
				other.must(t, "bridge", "trust", h.name, trust[len(trust)-1])
			}
		}
	}
	for _, h := range all {
		var urls []string
		h.network, urls = newNetwork(t, servers)
		config := fmt.Sprintf("[bridge]\nhost = %q\nnats = %q\nreplicas = %d\n", h.name, "nats://"+strings.Join(urls, ",nats://"), len(servers))
		if err := os.WriteFile(filepath.Join(h.team(), "team.toml"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// startBridge starts the bridge, which lives until the test is over.
func (h *host) startBridge(t testing.TB, dir string) {
	h.bridge = start(t, "bridge "+h.name, filepath.Join(dir, "bridge-"+h.name+".log"), func() *exec.Cmd { return h.command("atm-more", "bridge") })
}

// mount gives the host a disk of its own, where that is possible.
func (h *host) mount(t testing.TB) {
	if os.Geteuid() != 0 || exec.Command("mount", "-t", "tmpfs", "-o", "size=600m,mode=0700", "tmpfs", h.dir).Run() != nil {
		return
	}
	h.mounted = true
	t.Cleanup(func() {
		for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) { // a process that was told to end may be busy
			out, err := exec.Command("umount", h.dir).CombinedOutput()
			if err == nil {
				return
			}
			if time.Now().After(end) {
				t.Errorf("umount: %v: %s", err, out)
				exec.Command("umount", "-l", h.dir).Run()
				return
			}
		}
	})
}

// fill leaves not a byte on the disk, for a time.
func (h *host) fill(d time.Duration) error {
	defer h.full.Store(false)
	f, err := os.Create(filepath.Join(h.dir, "filler"))
	if err != nil {
		return err
	}
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	time.Sleep(d)
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

func (h *host) root() string { return filepath.Join(h.dir, "root") }
func (h *host) team() string { return filepath.Join(h.root(), "main") }

// outbox are the files that wait for their way to other hosts.
func (h *host) outbox() []string {
	all, _ := filepath.Glob(filepath.Join(h.team(), ".bridge/*/[nc][eu][wr]/*"))
	return all
}

func (h *host) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, slices.Insert(slices.Clone(args), 1, "--root", h.root())...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + h.dir, "TMPDIR=" + h.dir,
		"XDG_CONFIG_HOME=" + filepath.Join(h.dir, "config"), "XDG_STATE_HOME=" + filepath.Join(h.dir, "state")}
	cmd.Dir = h.dir
	cmd.WaitDelay = time.Second
	return cmd
}

// A result is what is left of a process. The code of one that was killed is -1.
type result struct {
	args     []string
	out, err string
	code     int
}

func (r result) String() string {
	return fmt.Sprintf("atm %s: exit %d: %s%s", clip(strings.Join(r.args, " ")), r.code, clip(r.out), clip(r.err))
}

func clip(s string) string {
	if s = strings.TrimSpace(s); len(s) > 300 {
		return s[:150] + " […] " + s[len(s)-150:]
	}
	return s
}

// atm runs a command to its end, or kills it after a time that is not 0.
func (h *host) atm(kill time.Duration, stdin string, args ...string) result {
	cmd := h.command("atm", args...)
	var out, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &stderr
	if err := cmd.Start(); err != nil {
		return result{args: args, err: err.Error(), code: 1}
	}
	if kill == 0 {
		kill = time.Minute // nothing may hang
	}
	timer := time.AfterFunc(kill, func() { cmd.Process.Signal(syscall.SIGKILL) })
	defer timer.Stop()
	cmd.Wait()
	return result{args: args, out: out.String(), err: stderr.String(), code: cmd.ProcessState.ExitCode()}
}

func (h *host) must(t testing.TB, args ...string) string {
	t.Helper()
	r := h.atm(0, "", args...)
	if r.code != 0 {
		t.Fatal(r)
	}
	return r.out
}
