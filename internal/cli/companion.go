package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/agentteammail/atm/internal/cli/command"
)

// companion is the program atm-VERB for a verb that atm does not have: beside atm, else on
// PATH; "" where there is none.
func companion(verb string) string {
	if strings.ContainsAny(verb, `/\`) {
		return ""
	}
	self, _ := os.Executable()
	beside, _ := exec.LookPath(filepath.Join(filepath.Dir(self), "atm-"+verb))
	onPath, _ := exec.LookPath("atm-" + verb)
	return cmp.Or(beside, onPath)
}

// runCompanion runs it in our place, and returns its exit code.
func runCompanion(program string, words []string) int {
	cmd := exec.Command(program, words...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok && ended.ExitCode() >= 0 {
		return ended.ExitCode()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "atm: run %s: %v\n", program, err)
		return command.ExitFailed
	}
	return command.ExitDone
}
