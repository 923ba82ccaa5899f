package doctor

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/internal/teamdir/config"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/wire"
)

// A member that is retired after the members were listed is no problem.
func TestRetiredMeanwhile(t *testing.T) {
	root := teamtest.NewRoot(t, notices.Tell)
	team := teamtest.NewTeam(t, root)
	d := &doctor{ctx: t.Context(), root: root}
	box := team.Box("bob")
	h, err := keep.Examine(box, false)
	d.checkMailbox(box, h, err)
	if len(d.checks) > 0 {
		t.Error(d.checks)
	}
}

// What doctor and atm team do grows with the members, and team.toml is not read for each of them.
func TestCostOfMembers(t *testing.T) {
	count := func(members int) (operations, configs int) {
		var all, reads atomic.Int64
		fault := func(op, name string) error {
			all.Add(1)
			if op == "open" && filepath.Base(name) == config.File {
				reads.Add(1)
			}
			return nil
		}
		root := teamtest.NewFaultyRoot(t, notices.Tell, fault)
		team := teamtest.NewTeam(t, root)
		text := ""
		for i := range members {
			name := wire.Name(fmt.Sprint("m", i))
			text += fmt.Sprintf("[members.%s]\nrole = \"x\"\n", name)
			teamtest.Must(t, team.Store.Create(t.Context(), name))
		}
		_, _, err := team.WriteConfig(text)
		teamtest.Must(t, err)
		all.Store(0)
		Examine(t.Context(), root, rootdir.Place{Dir: root.Path}, "1", false)
		_, err = presence.Members(t.Context(), team)
		teamtest.Must(t, err)
		return int(all.Load()), int(reads.Load())
	}
	few, readsOfFew := count(10)
	many, readsOfMany := count(80)
	if many > 9*few || readsOfMany != readsOfFew {
		t.Errorf("10 members: %d operations, %d of team.toml; 80 members: %d, %d", few, readsOfFew, many, readsOfMany)
	}
}
