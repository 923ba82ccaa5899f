//go:build linux || darwin

package agentconfig

import (
	"os"
	"os/exec"
	"testing"
)

// A hook of a plugin reads its input to the end, also where there is no atm.
func TestPluginHookWithoutAtm(t *testing.T) {
	sh, err := exec.LookPath("sh")
	must(t, err)
	cat, err := exec.LookPath("cat")
	must(t, err)
	h := newSetup(t)
	must(t, os.Mkdir(h.at("alone"), 0o700))
	must(t, os.Symlink(cat, h.at("alone/cat")))
	cmd := exec.Command(sh, "-c", pluginHook+"claude")
	cmd.Env = []string{"PATH=" + h.at("alone")}
	in, err := cmd.StdinPipe()
	must(t, err)
	must(t, cmd.Start())
	if _, err := in.Write(make([]byte, 1<<20)); err != nil {
		t.Error(err)
	}
	must(t, in.Close())
	must(t, cmd.Wait())
}

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
case $in in *'"atm.shown"'*) [ ! -e slow ] || sleep 0.5 ;; esac
printf '%s\n' "$in" >>calls
case $in in
*'"atm.mail"'*'"sessionID":"ses'*) while [ -e held ]; do sleep 0.1; done; [ ! -e broken ] || { rm broken; exit 1; }; cat mail 2>/dev/null && rm mail || echo '{}' ;;
*'"atm.mail"'*) cat look ;;
*'"atm.shown"'*) [ -e told ] && echo '{}' || touch told ;;
*.asked'"'*'"pushes"'*) cat answer 2>/dev/null || exec sleep 600 ;;
esac
`)
			must(t, os.Chmod(h.at("bin/atm"), 0o755))
			must(t, os.Mkdir(h.at("run"), 0o755))
			h.edit(Request{Tool: "opencode"})
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
