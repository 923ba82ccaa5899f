//go:build linux

package realagents

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/agentteammail/atm/internal/testtree"
)

// Mail for a program that nothing else wakes, and that its person started in a pane of tmux: it is typed in while the program is
// idle, once, and never over what its person has half written.
func TestInPane(t *testing.T) {
	for _, program := range []string{"claude", "gemini"} { // a Claude Code that is too old to have an inbox socket
		for name, do := range map[string]func(*byHand){"idle": (*byHand).mailWhileIdle, "draft in pane": (*byHand).mailAfterDraft, "burst": (*byHand).twentyAtOnce, "tool": (*byHand).mailDuringTool} {
			t.Run(program+"/"+name, func(t *testing.T) {
				s := newByHand(t, program, false)
				dir := testtree.Short(t)
				socket, config := filepath.Join(dir, "s"), filepath.Join(dir, "conf")
				if err := os.WriteFile(config, []byte("set -g status off\nset -g set-titles on\nset -g set-titles-string '#T'\nset -g default-terminal tmux-256color\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { exec.Command("tmux", "-S", socket, "kill-server").Run() })
				s.tmux = []string{"tmux", "-u", "-S", socket, "-f", config, "new-session"}
				do(s)
			})
		}
	}
}

// mailAfterDraft sends mail beside a half-written line, which its person then submits or deletes.
func (s *byHand) mailAfterDraft() {
	bob := s.talks("bob")
	bob.types("half a line")
	id := s.send("note after a draft")
	bob.waitsFor("idle")
	if r, _ := bob.now(); r.Draft != "half a line" || s.gets("note after a draft") > 0 {
		s.t.Errorf("the box has %q", r.Draft)
	}
	bob.keys("\x15")
	s.gotOnce(bob, id, "note after a draft")
}
