package cli

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentteammail/atm/cmd/internal/agentconfig"
	"github.com/agentteammail/atm/cmd/internal/cli/setup"
)

var update = flag.Bool("update", false, "write the plugins' files anew")

// The plugins in this repository, which is a marketplace, are those that atm install writes, but that they run the atm on PATH:
//
//	go test ./cmd/internal/cli -run TestPlugins -update
func TestPlugins(t *testing.T) {
	files := setup.PluginFiles(newApp("test"))
	for _, path := range slices.Sorted(maps.Keys(files)) {
		here := filepath.Join("../../..", filepath.FromSlash(path))
		if *update {
			os.MkdirAll(filepath.Dir(here), 0o755)
			if err := os.WriteFile(here, []byte(files[path]), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if text, err := os.ReadFile(here); err != nil || string(text) != files[path] {
			t.Errorf("%s is not what atm writes (-update writes it): %v", path, err)
		}
		for line := range strings.Lines(files[path]) {
			if strings.HasPrefix(line, "- `") && !strings.HasPrefix(line, "- `atm ") {
				t.Errorf("%s: no command of atm's: %s", path, line)
			}
		}
	}
	changes, err := os.ReadFile("../../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	_, newest, _ := strings.Cut(string(changes), "\n## ")
	if newest, _, _ = strings.Cut(newest, " "); newest != agentconfig.PluginVersion {
		t.Errorf("the plugins are of %s, and the newest release is %q", agentconfig.PluginVersion, newest)
	}
}
