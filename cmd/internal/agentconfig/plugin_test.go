//go:build linux || darwin

package agentconfig

import (
	"os"
	"os/exec"
	"testing"
)

// The plugin for OpenCode, run in node with a client and an atm that are none.
func TestPlugin(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("needs node")
	}
	for _, thread := range []string{"worker", "resumed", "killed", "moved", "main"} {
		t.Run(thread, func(t *testing.T) {
			h := newSetup(t)
			h.write("bin/atm", `#!/bin/sh
in=$(cat)
cd "$(dirname "$0")/../run"
printf '%s\n' "$in" >>calls
case $in in
*'"atm.mail"'*'"sessionID":"ses'*) while [ -e held ]; do sleep 0.1; done; [ ! -e broken ] || { rm broken; exit 1; }; cat mail 2>/dev/null && rm mail || echo '{}' ;;
*'"atm.mail"'*) cat look ;;
*'"atm.shown"'*) [ -e told ] && echo '{}' || touch told ;;
*'"permission.asked"'*'"pushes"'*) cat answer 2>/dev/null || exec sleep 600 ;;
esac
`)
			must(t, os.Chmod(h.at("bin/atm"), 0o755))
			must(t, os.Mkdir(h.at("run"), 0o755))
			_, err := h.Install(Request{Tool: "opencode"})
			must(t, err)
			plugin := h.at("plugin.mjs")
			must(t, os.WriteFile(plugin, []byte(h.read("home/.config/opencode/plugins/atm.js")), 0o644))
			cmd := exec.Command(node, "testdata/opencode_plugin.mjs", plugin, h.at("run"), thread)
			cmd.Env = append(os.Environ(), "ATM_AGENT=bob")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
