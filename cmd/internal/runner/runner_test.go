package runner

import (
	"slices"
	"testing"

	"github.com/agentteammail/atm/internal/driver"
	"github.com/agentteammail/atm/internal/teamdir/config"
)

// Whatever driver team.toml and the flags may name, there is.
func TestDrivers(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	if want := append([]string{"auto"}, driver.Names()...); !slices.Equal(config.Drivers(), want) {
		t.Errorf("config accepts %q, there are %q", config.Drivers(), want)
	}
}
