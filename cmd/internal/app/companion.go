package app

import (
	"os"
	"os/exec"
	"path/filepath"
)

// The programs beside atm. A runner is one of its own: many run at once, and each would hold more memory with what More
// links. More is called with the verb first.
const (
	Runner = "atm-runner"
	More   = "atm-more"
)

// Companion finds another of atm's programs: beside this one, else on PATH.
func Companion(name string) (string, error) {
	self, _ := os.Executable()
	if real, err := filepath.EvalSymlinks(self); err == nil {
		self = real
	}
	if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), name)); err == nil {
		return path, nil
	}
	return exec.LookPath(name)
}
