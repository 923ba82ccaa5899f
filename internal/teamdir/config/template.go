package config

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"text/template"

	"github.com/agentteammail/atm/wire"
)

//go:embed template.toml
var templateText string

// Sample returns a team.toml that starts these members, each with its command, or with claude, and mentions every other key in a
// comment. It has no mistakes, even with all its keys uncommented.
func Sample(agents, people []wire.Name, commands map[wire.Name][]string) string {
	data := struct {
		Agents, People []wire.Name
		Off            string // "#" if the members are only examples
		Lead, Approver wire.Name
		Shown          wire.Name // the agent whose section has every key
		Command        func(wire.Name) string
	}{Agents: agents, People: people, Command: func(n wire.Name) string {
		if len(commands[n]) == 0 {
			return ""
		}
		var list strings.Builder // a list of texts is the same in TOML as in JSON
		to := json.NewEncoder(&list)
		to.SetEscapeHTML(false)
		_ = to.Encode(commands[n]) // cannot fail
		return strings.TrimSpace(list.String())
	}}
	if len(agents)+len(people) == 0 {
		data.Agents, data.People, data.Off = []wire.Name{"alice", "bob"}, []wire.Name{"me"}, "#"
	}
	if len(data.Agents) > 0 {
		data.Lead, data.Shown = data.Agents[0], data.Agents[min(1, len(data.Agents)-1)]
	}
	data.Approver = slices.Concat(data.People, data.Agents)[0]
	var b strings.Builder
	template.Must(template.New("team.toml").Parse(templateText)).Execute(&b, data)
	return b.String()
}
