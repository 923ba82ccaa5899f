package codex

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/process"
)

const (
	name   = "codex"
	server = "app-server" // its argument
)

// notShown are arguments of a program of Codex that shows no thread of the shared server: it is none for a person, or one of
// these has it do without the server. Tried with 0.171.0.
var notShown = []string{
	server, "exec", "e", "review", "mcp-server", "exec-server", "login", "queue",
	"--no-daemon", "--remote", "-c", "--config", "-p", "--profile", "--search", "--oss", "--approve-for-me", "--dangerously-bypass-hook-trust", "--strict-config",
}

func isServer(args []string) bool {
	return len(args) > 1 && filepath.Base(args[0]) == name && slices.Contains(args[1:], server)
}

// socket returns the path of the socket of the server that a program of Codex uses. The server need not run.
func socket(environ []string) (string, error) {
	its := process.Variables(environ)
	home := its["CODEX_HOME"]
	if home == "" {
		home = filepath.Join(its["HOME"], ".codex")
	}
	if !filepath.IsAbs(home) {
		return "", errors.New("find codex's server: its program has neither CODEX_HOME nor HOME")
	}
	return filepath.Join(home, "app-server-control", "app-server-control.sock"), nil
}

func shows(pid int, args []string, its map[string]string, env func(string) string) (dir string, ok bool) {
	isNone := slices.ContainsFunc(args[1:], func(arg string) bool {
		arg, _, _ = strings.Cut(arg, "=")
		return slices.Contains(notShown, arg)
	})
	if isNone || its["CODEX_HOME"] != env("CODEX_HOME") {
		return "", false
	}
	dir = process.Dir(pid)
	for i, arg := range args {
		if (arg == "-C" || arg == "--cd") && i+1 < len(args) {
			arg = "--cd=" + args[i+1]
		}
		if to, ok := strings.CutPrefix(arg, "--cd="); ok && filepath.IsAbs(to) {
			dir = to
		} else if ok {
			dir = filepath.Join(dir, to)
		}
	}
	return dir, true
}
