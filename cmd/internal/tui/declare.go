package tui

import (
	"maps"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/reducer"
)

// What the terminal around the program is told of the team, if it reads OSC 7501: a record a member, whose id is the
// member's name. Nothing in it is a program's own text.

var declaredStates = map[reducer.Word]ansi.ProgramState{
	reducer.WordBlocked: ansi.ProgramStateBlocked, reducer.WordBusy: ansi.ProgramStateWorking,
	reducer.WordIdle: ansi.ProgramStateIdle, reducer.WordError: ansi.ProgramStateError,
}

// statusOf returns the sequence that tells of each member; of others there is nothing to tell.
func statusOf(members []presence.Member) map[string]string {
	all := map[string]string{}
	for _, m := range members {
		s := ansi.ProgramStatus{State: declaredStates[m.State], ID: string(m.Name), App: "atm", Title: string(m.Name)}
		if w := m.WaitingOn; w != nil && w.Kind == reducer.Permission {
			s.Kind = ansi.ProgramStatusKindPermission
		} else if w != nil {
			s.Kind = ansi.ProgramStatusKindQuestion
		}
		if sequence := ansi.SetProgramStatus(s); sequence != "" { // else its name is no id: bob@build
			all[s.ID] = sequence
		}
	}
	return all
}

// declare tells the terminal what has changed.
func (m *model) declare() tea.Cmd {
	var b strings.Builder
	status := statusOf(m.snapshot.Members)
	for _, id := range slices.Sorted(maps.Keys(m.declared)) {
		if status[id] == "" {
			b.WriteString(ansi.ClearProgramStatusID(id))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(status)) {
		if status[id] != m.declared[id] {
			b.WriteString(status[id])
		}
	}
	m.declared = status
	if b.Len() == 0 {
		return nil
	}
	return tea.Raw(b.String())
}
