package app

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/wire"
)

// SharingWarning tells a program that begins a session under a member's name that another one has the name, and what to
// type; "": none has it. isOwn says that the member's runner has started this program.
func SharingWarning(t *teamdir.Team, name wire.Name, own programs.Program, isOwn bool) string {
	others := slices.DeleteFunc(programs.Of(t, name), func(p programs.Program) bool { return p.PID == own.PID })
	isRunning, _ := t.Running(name)
	again := fmt.Sprintf("ATM_AGENT=NAME %s (atm team shows the names, atm team add NAME adds one)", cmp.Or(own.Tool, "CMD"))
	switch {
	case isRunning && !isOwn:
		return fmt.Sprintf("atm runs %s already, and gives it the mail. This program gets none, and its hooks do nothing. "+
			"To see that one: atm attach %[1]s. To start this one under a name of its own: %s", name, again)
	case isRunning && len(others) > 0:
		return fmt.Sprintf("%s was started as %s, too. It gets no mail, and its hooks do nothing. To start it under a name of its own: %s",
			others[0], name, again)
	case len(others) > 0:
		return fmt.Sprintf("%s was started as %s, too. Each message reaches only one of the two. To start one under a name of its own: %s",
			others[0], name, again)
	}
	return ""
}
