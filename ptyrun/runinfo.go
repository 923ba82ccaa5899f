package ptyrun

import (
	"os"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/ptyrun/runinfo"
)

// openRunDir makes and opens an agent's run directory.
func openRunDir(box *mailbox.Box) (*durable.Root, error) {
	team, name := box.Store().Dir(), string(box.Agent())+"/run"
	if err := team.Mkdir(name); err != nil {
		return nil, err
	}
	return team.Sub(name)
}

// writeRunInfo writes run.json.
func (r *runner) writeRunInfo() error {
	info := runinfo.Info{Run: r.Run, Runner: os.Getpid(), Started: r.Now().UTC(), Command: r.Command, Inject: string(r.Inject)}
	if r.prog != nil {
		info.PID = r.prog.child.PID()
	}
	return info.Write(r.dir)
}
