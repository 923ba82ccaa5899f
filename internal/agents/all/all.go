// Package all lists the vendors.
package all

import (
	"slices"

	"github.com/agentteammail/atm/internal/agents/claude"
	"github.com/agentteammail/atm/internal/agents/codex"
	"github.com/agentteammail/atm/internal/agents/vendor"
)

// Vendors are those of which atm knows more than their drivers say.
var Vendors = []vendor.Vendor{claude.Vendor, codex.Vendor}

// Of returns the vendor of that name, without anything if there is none.
func Of(name string) (v vendor.Vendor) {
	if i := slices.IndexFunc(Vendors, func(v vendor.Vendor) bool { return v.Name == name }); i >= 0 {
		v = Vendors[i]
	}
	return v
}
