package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
)

// An extension is a verb of somebody else's: a program atm-NAME on PATH. atm's own verbs come first.
const extensionPrefix = "atm-"

// variables are the flags that an extension, or an atm that it calls, gets as what atm reads in their place.
var variables = map[string]string{"root": "ATM_ROOT", "team": "ATM_TEAM", "as": "ATM_AGENT"}

// runExtension replaces this process by the extension that stands where the command should be, if there is one. It gets the
// words behind its name as they were typed, and in front of them the flags before its name that are no variables.
func runExtension(program *cli.App, line *cmdline.Line) (code int, found bool) {
	path := findExtension(line.Typed[line.At])
	if path == "" {
		return 0, false
	}
	front, err := cmdline.Sort(program, line.Typed[:line.At])
	front.Instead(func(c *cli.Context) error {
		var args []string
		for _, f := range c.App.Flags {
			name := f.Names()[0]
			if variable := variables[name]; variable != "" && c.IsSet(name) {
				os.Setenv(variable, c.String(name))
			} else if c.Bool(name) {
				args = append(args, "--"+name)
			} else if c.IsSet(name) {
				args = append(args, fmt.Sprintf("--%s=%v", name, c.Generic(name)))
			}
		}
		return failure.Exit(replaceBy(c.App, path, append(args, line.Typed[line.At+1:]...)))
	})
	return command.Run(program, front, err), true
}

// findExtension returns the path of an extension; "": there is none. What lies in the working directory, or in one that PATH
// names from there, is none.
func findExtension(name string) string {
	if strings.ContainsAny(name, `/\`) || slices.Contains([]string{app.Runner, app.More}, extensionPrefix+name) {
		return ""
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if path, err := exec.LookPath(filepath.Join(dir, extensionPrefix+name)); err == nil && filepath.IsAbs(dir) {
			return path
		}
	}
	return ""
}

// extensions returns the names of the extensions on PATH that are not hidden behind a verb of atm's.
func extensions(program *cli.App) (names []string) {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		files, _ := os.ReadDir(dir)
		for _, f := range files {
			name, isExtension := strings.CutPrefix(f.Name(), extensionPrefix)
			if runtime.GOOS == "windows" {
				name = strings.TrimSuffix(name, filepath.Ext(name))
			}
			if isExtension && program.Command(name) == nil && findExtension(name) != "" {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
