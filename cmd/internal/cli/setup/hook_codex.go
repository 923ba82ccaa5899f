package setup

import (
	"errors"
	"os/exec"
)

// follow has a thread of Codex given its mail, if the shared server has it: with codex --no-daemon none has.
func (h *hookCall) follow(thread string) error {
	name := h.scope.Me.Agent()
	p, ok := h.scope.Team.Conversation(name, thread)
	if !ok || !h.scope.Root.InSharedServer() {
		return nil
	}
	err := h.scope.Team.Follow(name, p)
	if errors.Is(err, exec.ErrNotFound) {
		return nil // mail comes with the hooks then
	}
	return err
}
