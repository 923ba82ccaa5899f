package app

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/wire"
)

//go:embed primer.txt
var primerText string

// Primer returns the text, under 300 words, that tells an agent how to use atm: that of the scope, who may be unknown. verbs
// are its commands, to bob, with what they do. inHook says that its hooks hand its mail over, whatever is noted of them.
func (s *Scope) Primer(verbs [][2]string, inHook bool) (string, error) {
	var me wire.Name
	by := "" // what hands its mail over
	if s.Me != nil {
		me = s.Me.Agent()
		if m, err := presence.One(context.Background(), s.Team, me); err == nil && m.Running && m.Inject != "off" {
			by = "runner"
		} else if programs.ReachesIdle(s.Team, me) {
			by = "push"
		} else if inHook || m.HasHooks() {
			by = "hooks"
		}
	}
	members, err := s.Team.Agents()
	if err != nil {
		return "", err
	}
	c, _ := s.Team.Config() // doctor reports its mistakes
	example := wire.Name("alice")
	var others []string
	for _, n := range members {
		if n == me {
			continue
		}
		if len(others) == 0 {
			example = n
		}
		role := ""
		if isShared, _ := claim.Shared(s.Team.Box(n)); isShared {
			role = " (shared: atm take " + string(n) + ")"
		} else if c.IsPerson(n) {
			role = " (a person)"
		} else if n == c.Lead {
			role = " (lead)"
		}
		others = append(others, string(n)+role)
	}
	if more := len(others) - 8; more > 0 {
		others = append(others[:8], fmt.Sprintf("and %d more", more))
	}
	var groups []string
	byName, _ := presence.Groups(s.Team)
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		groups = append(groups, "@"+string(name))
	}
	for i := range verbs {
		verbs[i][0] = strings.ReplaceAll(verbs[i][0], " bob ", " "+string(example)+" ")
	}
	var b strings.Builder
	err = template.Must(template.New("primer").Parse(primerText)).Execute(&b, map[string]any{
		"Me": me, "Team": s.Team.Name, "Others": strings.Join(others, ", "), "Groups": strings.Join(groups[:min(len(groups), 8)], ", "),
		"By": by, "ByFlag": s.MeSource == "--as", "Verbs": verbs,
	})
	return b.String(), err
}
