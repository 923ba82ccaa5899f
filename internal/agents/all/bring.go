package all

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/policy"
)

// BroughtFile is the variable that has the path of a run's Brought.File, and --brought marks the calls of its hooks.
const BroughtFile, broughtFlag = "ATM_HOOKS", "--brought"

// HooksDir is the directory of Brought.File, below the agent's.
const HooksDir = "run/hooks"

// Bring plans the hooks of an agent's run with that command and environment: they call the program atm. dir is the agent's
// directory. Nothing is brought to a program that has no such way. why says for the person what of theirs stands in
// the way; "": nothing.
func Bring(atm, agent string, command, env []string, dir string) (b agents.Brought, why string) {
	v := Find(strings.TrimSuffix(filepath.Base(command[0]), ".exe"))
	if v == nil || v.Configuration == nil || v.Bring == nil {
		return b, ""
	}
	words := []string{atm, "hook", v.Name, broughtFlag}
	if b, why = v.Bring(&agents.Run{Agent: agent, Command: command, Env: env, Dir: filepath.Join(dir, filepath.FromSlash(HooksDir)), Words: words, Hooks: v.Hooks.Document(policy.QuoteAll(words))}); b.File != "" {
		b.Env = append(b.Env, BroughtFile+"="+b.File)
	}
	return b, why
}

// IsBrought reports whether a run has brought hooks to the program that calls an installed one, which then has nothing to
// do. arguments are the program's.
func IsBrought(tool string, getenv func(string) string, arguments func() []string) bool {
	v, file := Find(tool), getenv(BroughtFile)
	return file != "" && v != nil && v.Configuration != nil && v.IsBrought != nil && v.IsBrought(file, getenv, arguments)
}

// WithoutBrought returns an environment without what the run in which it was found has brought.
func WithoutBrought(env []string) []string {
	file := agents.ValueOf(env, BroughtFile)
	if file == "" {
		return env
	}
	for _, v := range Vendors {
		if v.Configuration != nil && v.Without != nil {
			env = v.Without(env, file)
		}
	}
	return slices.DeleteFunc(slices.Clone(env), func(pair string) bool { return strings.HasPrefix(pair, BroughtFile+"=") })
}
