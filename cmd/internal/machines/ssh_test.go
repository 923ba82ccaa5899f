//go:build linux

package machines

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ssh is what a person who may log in to build has: the command runs there. The relays go on when it is killed, as sshd
// does.
const ssh = `#!/bin/sh
for command; do :; done
cd /
mkfifo "$PIPES/in.$$" "$PIPES/out.$$"
exec 3<&0
cat <&3 >"$PIPES/in.$$" &
env HOME=%[1]s TMPDIR=%[1]s XDG_CONFIG_HOME=%[1]s/config XDG_STATE_HOME=%[1]s/state ATM_ROOT=%[1]s/root \
	sh -c "cd; echo \$\$ >$PIPES/pid; $command" <"$PIPES/in.$$" >"$PIPES/out.$$" &
exec cat "$PIPES/out.$$"
`

// Two hosts send to each other over ssh. The bridges of both are killed, the connection is, and disks are full.
func TestSSH(t *testing.T) {
	w := newWorld(t)
	dir, messages := w.dir, 60
	if w.isLong {
		messages = 1000
	}
	w.hosts = newHosts(t, dir, nil, team, "laptop", "build")
	laptop, build := w.hosts[0], w.hosts[1]
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "ssh"), fmt.Appendf(nil, ssh, build.dir), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { awaitUnused(t, dir) })
	laptop.bridge = start(t, "bridge laptop", filepath.Join(dir, "bridge.log"), func() *exec.Cmd {
		cmd := laptop.command("atm-more", "bridge", "--ssh", "build", "--dir", ".")
		cmd.Env = append(cmd.Env, "PIPES="+dir, "PATH="+bin+":"+os.Getenv("PATH"))
		return cmd
	})
	w.run(messages/4, func(r *rand.Rand) {
		for !w.over.Load() {
			time.Sleep(time.Duration(r.Int64N(int64(time.Second))))
			switch kind := r.IntN(8); {
			case kind < 3:
				w.add("bridges killed")
				laptop.bridge.kill(syscall.SIGKILL, 100*time.Millisecond)
			case kind < 6:
				w.add("bridges there killed")
				w.killThere(dir)
			case kind < 7:
				w.add("bridges stopped")
				laptop.bridge.kill(syscall.SIGTERM, 100*time.Millisecond)
			default:
				if h := w.hosts[r.IntN(2)]; h.mounted {
					w.add("disks full")
					if err := h.fill(time.Duration(r.Int64N(int64(2 * time.Second)))); err != nil {
						t.Error(err)
					}
				}
			}
		}
	})
}

// killThere kills the bridge that ssh has started last.
func (w *world) killThere(dir string) {
	text, _ := os.ReadFile(filepath.Join(dir, "pid"))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	about, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if pid > 0 && strings.Contains(string(about), "--stdio") {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// awaitUnused waits until no process works in a directory: the bridge there ends a moment after the one here.
func awaitUnused(t *testing.T, dir string) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		all, _ := filepath.Glob("/proc/[0-9]*/cwd")
		isUsed := false
		for _, link := range all {
			at, _ := os.Readlink(link)
			isUsed = isUsed || strings.HasPrefix(at, dir)
		}
		if !isUsed {
			return
		}
	}
	t.Error("a process goes on")
}
