package ptyrun

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/runinfo"
	"github.com/agentteammail/atm/internal/testagent"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/internal/run"
	"github.com/agentteammail/atm/ptyrun/process"
)

// codex has the fake agent run as Codex, by a script of that name. It serves as its server, too, unless serve is another
// command.
func (r *rig) codex(serve string) *rig {
	r.t.Helper()
	r.fake(testagent.Options{Profile: "codex"})
	script := filepath.Join(r.t.TempDir(), "codex")
	text := fmt.Sprintf("#!/bin/sh\ncase $1 in app-server) echo $$ >>%[1]s.servers; %[2]s ;; *) echo \"$*\" >>%[1]s.args ;; esac\nexec %[3]s \"$@\"\n", r.log, serve, r.opt.Command[0])
	must(r.t, os.WriteFile(script, []byte(text), 0o700))
	r.opt.Command, r.opt.Env = []string{script}, append(r.opt.Env, "ATM_AGENT=bob")
	return r
}

// lines returns the lines of a file beside the fake agent's log.
func (r *rig) lines(name string) []string {
	data, err := os.ReadFile(r.log + "." + name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.t.Fatal(err)
	}
	return strings.FieldsFunc(string(data), func(c rune) bool { return c == '\n' })
}

// killServer kills the newest server.
func (r *rig) killServer() {
	r.t.Helper()
	pids := r.lines("servers")
	var pid int
	fmt.Sscan(pids[len(pids)-1], &pid)
	server, err := os.FindProcess(pid)
	must(r.t, errors.Join(err, server.Kill()))
}

// A program gets a server of its own, with the agent's environment, which ends with it. A restarted one gets another, and
// one that loses its server gets it back.
func TestOwnServer(t *testing.T) {
	t.Parallel()
	r := newRig(t).codex("").run().idle()
	connected := func(n int) {
		t.Helper()
		r.wait("the connection", func() bool { return len(r.fakes(testagent.Connected)) >= n })
	}
	connected(1)
	info, err := runinfo.Read(r.bob.Store().Dir(), "bob")
	must(t, err)
	if dir, err := os.Stat(info.ServerDir); err != nil || dir.Mode().Perm() != 0o700 {
		t.Errorf("its directory: %v, %v", dir, err)
	}
	r.killServer()
	connected(2)
	r.wait("the server's end to be told of", r.has("stream_error"))
	r.wait("a message to be read", r.read(r.send("hello")))
	c := r.client()
	if _, err := c.Restart(t.Context(), control.RestartRequest{}); err != nil {
		t.Fatal(err)
	}
	connected(3)
	r.wait("the next message to be read", r.read(r.send("hello again")))
	for _, said := range r.fakes(testagent.Connected) {
		if said != "ATM_AGENT=bob" {
			t.Errorf("its server says %s", said)
		}
	}
	for _, args := range r.lines("args") {
		if !strings.HasPrefix(args, "--remote unix://"+info.ServerDir+"/") {
			t.Errorf("it was started with %s", args)
		}
	}
	if _, err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-r.done
	if left, err := process.Leftovers(r.opt.Run); len(left) > 0 || err != nil || len(r.exit.Ended) > 0 {
		t.Errorf("left are %v (%v), ended were %v", left, err, r.exit.Ended)
	}
	if _, err := os.Stat(info.ServerDir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its directory: %v", err)
	}
}

// Without a server that works the program is started as it is, with the flag that has it share none.
func TestNoOwnServer(t *testing.T) {
	for want, c := range map[string]struct {
		serve  string
		within time.Duration
	}{
		"it exited with 3: I cannot do that": {"echo I cannot do that >&2; exit 3", time.Minute},
		"it does not listen after":           {"exec sleep 1000", time.Second},
	} {
		t.Run(want, func(t *testing.T) {
			r, timing := newRig(t).codex(c.serve), quick
			timing.Serving = c.within
			r.opt.timing = &timing
			r.run().idle()
			r.wait("a message to be read", r.read(r.send("hello")))
			if args := r.lines("args"); len(args) != 1 || args[0] != "--no-daemon" {
				t.Errorf("it was started with %q", args)
			}
			all, _ := r.bob.Log().Newest(1 << 20)
			var said string
			for i := range all {
				said += all[i].Text("error_summary")
			}
			if !strings.Contains(said, "it runs without a server of its own: "+want) {
				t.Errorf("it says %q", said)
			}
		})
	}
}

// A server that ends too often is not started again for ever.
func TestServerLoop(t *testing.T) {
	t.Parallel()
	r := newRig(t).codex("").run().idle()
	for n := range run.LoopAfter {
		r.wait("the connection", func() bool { return len(r.fakes(testagent.Connected)) > n })
		r.killServer()
	}
	r.wait("the end of that", func() bool {
		all, _ := r.bob.Log().Newest(1 << 20)
		for i := range all {
			if strings.Contains(all[i].Text("error_summary"), "only a restart") {
				return true
			}
		}
		return false
	})
	if n := len(r.lines("servers")); n != run.LoopAfter {
		t.Errorf("%d servers were started", n)
	}
}

// What a killed runner leaves of a server ends with the next start, and its directory goes.
func TestServerOfKilledRunner(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	dir, err := os.MkdirTemp("", "atm-server-")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "sock"), nil, 0o600))
	store := r.bob.Store().Dir()
	must(t, store.Mkdir("bob/run"))
	must(t, store.Replace("bob/run/"+runinfo.File, fmt.Appendf(nil, `{"run":"x","server_dir":%q}`, dir), false))
	r.codex("").run().idle()
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its directory: %v", err)
	}
}
