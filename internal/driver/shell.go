package driver

import (
	"slices"
	"strings"
)

// What is known by name to be at a prompt: shells and interpreters, unless they are given something to run, and clients,
// whose arguments say where.
var (
	shells       = []string{"bash", "rbash", "sh", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "nu", "elvish", "xonsh"}
	interpreters = []string{"python", "ipython", "bpython", "node", "deno", "irb", "pry", "lua", "luajit", "ghci", "iex", "julia", "R", "scala", "jshell", "bc"}
	clients      = []string{"sqlite", "psql", "mysql", "mariadb", "duckdb", "redis-cli", "mongosh", "gdb", "lldb"}
)

// valueFlags are flags of shells that take the next argument.
var valueFlags = []string{"--rcfile", "--init-file", "-o", "+o", "-O", "+O"}

// isAtPrompt reports whether a program with such arguments is known to be a shell or a REPL.
func isAtPrompt(program string, args []string) bool {
	name := program
	if trimmed := strings.TrimRight(program, "0123456789."); trimmed != "" { // python3.12, sqlite3
		name = trimmed
	}
	isShell := slices.Contains(shells, name)
	switch {
	case slices.Contains(clients, name):
		return true
	case !isShell && !slices.Contains(interpreters, name):
		return false
	case !isShell && slices.Contains(args, "-i"):
		return args[0] == "-i" || !runsScript(args[:slices.Index(args, "-i")], false) // the prompt comes behind the script
	}
	return !runsScript(args, isShell)
}

// runsScript reports whether the arguments of a shell or an interpreter give it something to run: then what its screen asks
// is the script's.
func runsScript(args []string, isShell bool) bool {
	for i := 0; i < len(args); i++ {
		option, isOption := strings.CutPrefix(args[i], "-")
		switch {
		case isShell && slices.Contains(valueFlags, args[i]):
			i++
		case !isOption, option == "", option == "-":
			return true
		case strings.HasPrefix(option, "-"): // --norc
		case isShell && strings.Contains(option, "c"), !isShell && strings.ContainsAny(option[:1], "cmep"):
			return true
		}
	}
	return false
}
