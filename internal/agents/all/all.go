// Package all links the vendors' folders.
package all

import (
	"slices"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/agents/claude"
	"github.com/agentteammail/atm/internal/agents/codex"
	"github.com/agentteammail/atm/internal/agents/gemini"
	"github.com/agentteammail/atm/internal/agents/opencode"
)

// Vendors are all vendors. Only tests add to them.
var Vendors = []*agents.Vendor{claude.Vendor, codex.Vendor, gemini.Vendor, opencode.Vendor}

// Names returns the names of all.
func Names() (names []string) {
	for _, v := range Vendors {
		names = append(names, v.Name)
	}
	return names
}

// Find returns the vendor of that name; nil: there is none.
func Find(name string) *agents.Vendor {
	return first(func(v *agents.Vendor) bool { return v.Name == name })
}

// Of returns the vendor of that name, one that has nothing if there is none.
func Of(name string) *agents.Vendor {
	if v := Find(name); v != nil {
		return v
	}
	return &agents.Vendor{}
}

// OfHook returns the vendor whose hooks call `atm hook` with that word; nil: there is none.
func OfHook(word string) *agents.Vendor {
	return first(func(v *agents.Vendor) bool { return v.Parsers[word] != nil })
}

func first(is func(*agents.Vendor) bool) *agents.Vendor {
	if i := slices.IndexFunc(Vendors, is); i >= 0 {
		return Vendors[i]
	}
	return nil
}
