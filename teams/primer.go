package teams

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/agentteammail/atm/wire"
)

//go:embed primer.txt
var primerText string

// Primer tells an agent in under 300 words how to use atm. me is the agent, or "" if unknown; by is what hands its mail
// over: hooks, runner or, for nothing, ""; byFlag says that its commands need --as.
func (t *Team) Primer(me wire.Name, by string, byFlag bool) (string, error) {
	members, err := t.Agents()
	if err != nil {
		return "", err
	}
	c, _ := t.Config() // doctor reports its mistakes
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
		if isShared, _ := t.Box(n).Shared(); isShared {
			role = " (shared: atm take " + string(n) + ")"
		} else if c.Members[n].Person {
			role = " (a person)"
		} else if n == c.Lead {
			role = " (lead)"
		}
		others = append(others, string(n)+role)
	}
	var b strings.Builder
	err = template.Must(template.New("primer").Parse(primerText)).Execute(&b, map[string]any{
		"Me": me, "Team": t.Name, "Others": sentence(others),
		"By": by, "ByFlag": byFlag, "Example": string(example),
	})
	return b.String(), err
}

// sentence lists up to eight words, and counts the rest.
func sentence(words []string) string {
	if more := len(words) - 8; more > 0 {
		words = append(words[:8], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(words, ", ")
}

// HasHooks reports whether the newest events show hooks that hand over mail to a member; such hooks also report when a
// session begins.
func (t *Team) HasHooks(name wire.Name) bool {
	events, _ := t.Box(name).Log().Newest(64)
	return slices.ContainsFunc(events, func(e wire.Event) bool {
		begins := e.Kind == "session_start" && e.Text("source") != "created"
		return e.Source == "hook" && (e.Kind == wire.EventAnnounced || begins)
	})
}
