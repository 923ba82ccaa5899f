//go:build unix

package doctor

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/runinfo"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
)

// A runner of another version, to which this atm cannot talk, is named with its version and the way to end it.
func TestRunnerOfAnotherProtocol(t *testing.T) {
	r, team := newTeam(t)
	if err := team.Store.Create(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	hold, err := claim.HoldRunner(t.Context(), team.Store, "bob")
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Release()
	run := filepath.Join(team.Box("bob").Path(), "run")
	if err := os.MkdirAll(run, 0o700); err != nil {
		t.Fatal(err)
	}
	info := fmt.Sprintf(`{"run":"r","dir":%q,"version":"9.1","runner":%d,"command":["claude"]}`, run, os.Getpid())
	if err := os.WriteFile(filepath.Join(run, runinfo.File), []byte(info), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(run) // the path may be too long for a socket
	l, err := net.Listen("unix", "control.sock")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprintln(conn, `{"ok":true,"result":999}`)
			defer conn.Close()
		}
	}()
	checks := Examine(t.Context(), r, rootdir.Place{UID: os.Getuid()}, "1.2", false)
	c := find(checks, "runner.protocol")
	want := "bob@main: its runner is of atm 9.1, to which this one, 1.2, cannot talk: end it and its agent, then atm run bob -- claude"
	if c.Message != want || c.Fix != fmt.Sprint("kill ", os.Getpid()) {
		t.Errorf("%+v", checks)
	}
}
