package app

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"

	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/wire"
)

// PaneWord is the argument with which Runner types mail into a pane of tmux, for a PaneSpec on its stdin.
const PaneWord = "pane"

// A PaneSpec says whose mail.
type PaneSpec struct {
	Root  string    `json:"root"`
	Team  wire.Name `json:"team"`
	Agent wire.Name `json:"agent"`
}

// TypeInPane starts a process that types a member's unread mail into its program's pane as soon as that can be done. It ends
// when there is no more, or the program has ended, and at once if there is one already.
func TypeInPane(t *teamdir.Team, name wire.Name) error {
	program, err := Companion(Runner)
	if err != nil {
		return err
	}
	in, out, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	err = json.NewEncoder(out).Encode(PaneSpec{t.Root().Path, t.Name, name}) // it fits, so nobody has to read it yet
	if err = cmp.Or(err, out.Close()); err != nil {
		return err
	}
	c := exec.Command(program, PaneWord)
	c.Dir, c.Env, c.Stdin = "/", OwnEnvironment(), in
	Detach(c)
	if err := c.Start(); err != nil {
		return err
	}
	go c.Wait()
	return nil
}
