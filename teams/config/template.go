package config

import (
	_ "embed"
	"slices"
	"strings"
	"text/template"

	"github.com/agentteammail/atm/wire"
)

// Sample is what a team.toml to start from speaks of.
type Sample struct {
	Agents    []wire.Name
	People    []wire.Name
	Worktrees bool // members can have git worktrees here
}

//go:embed template.toml
var templateText string

// Text is a team.toml that starts these members and names every other key in a comment. It has no mistakes as it
// stands, nor with the # before its keys taken away.
func (s Sample) Text() string {
	data := struct {
		Sample
		Off            string // "#": the members are only examples
		Lead, Approver wire.Name
		Shown          wire.Name // the agent whose section shows every key
	}{Sample: s}
	if len(s.Agents)+len(s.People) == 0 {
		data.Agents, data.People, data.Off = []wire.Name{"alice", "bob"}, []wire.Name{"me"}, "#"
	}
	if agents := data.Agents; len(agents) > 0 {
		data.Lead, data.Shown = agents[0], agents[min(1, len(agents)-1)]
	}
	data.Approver = slices.Concat(data.People, data.Agents)[0]
	var b strings.Builder
	template.Must(template.New("team.toml").Parse(templateText)).Execute(&b, data)
	return b.String()
}
