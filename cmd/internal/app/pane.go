package app

import (
	"cmp"
	"encoding/json"
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
	spec, _ := json.Marshal(PaneSpec{t.Root().Path, t.Name, name})
	c := exec.Command(program, PaneWord)
	c.Dir, c.Env = "/", OwnEnvironment()
	Detach(c)
	in, err := c.StdinPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return err
	}
	go c.Wait()
	_, err = in.Write(spec) // it fits into the pipe, so this process may end before it is read
	return cmp.Or(err, in.Close())
}
