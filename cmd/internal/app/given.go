package app

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/output"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
)

// Given is what a program was told by flags and arguments. The environment and the working directory are looked up when
// they are needed.
type Given struct {
	output.Streams               // of this process
	Args           []string      // what was typed behind the program's name
	Root, Team, As string        // --root, --team and --as; "": not given
	Via            string        // the program of ours that serves a client with this, as "mcp"; "": none
	LockTimeout    time.Duration // 0: try once
	IsQuiet        bool          // no warnings
	Verb           string        // what was typed, as "atm show"
	Word           string        // the only word behind it: a hint names it; "": there is none, or there are several
}

// Identity returns the name that --as gives, the conversation in which this runs, or ATM_AGENT, and which of these;
// "": none.
func (g *Given) Identity() (name, source string) {
	if g.As != "" {
		return g.As, "--as"
	}
	if thread, variable := programs.ThreadOf(os.Getenv); thread != "" && os.Getenv("ATM_RUN") == "" {
		if found, _, err := rootdir.Find(g.Place()); err == nil {
			if root, err := teamdir.OpenFound(found, notices.Tell); err == nil {
				if of, p := programs.MemberOfThread(root, thread); p.IsRunning() {
					return of.String(), variable
				}
			}
		}
	}
	return os.Getenv("ATM_AGENT"), "ATM_AGENT"
}

// Place is where the flags, the environment and the working directory say that the root may be.
func (g *Given) Place() rootdir.Place {
	p := rootdir.Place{Flag: g.Root, Env: os.Getenv("ATM_ROOT"), UID: os.Getuid(), Environ: os.Environ()}
	p.Dir, _ = os.Getwd()
	if home, _ := os.UserHomeDir(); filepath.IsAbs(home) {
		p.Home = home
	}
	p.State = userDir("XDG_STATE_HOME", ".local/state")
	return p
}

// userDir returns atm's part of one of this user's directories, the same on every system; "" without a home directory.
func userDir(variable, belowHome string) string {
	if dir := os.Getenv(variable); filepath.IsAbs(dir) { // its specification has us ignore a relative one
		return filepath.Join(dir, "atm")
	}
	home, _ := os.UserHomeDir()
	if !filepath.IsAbs(home) {
		return ""
	}
	return filepath.Join(home, belowHome, "atm")
}

// KeysDir is where the keys of the hosts are that this user trusts; "": there is no such place.
func KeysDir() string {
	dir := userDir("XDG_CONFIG_HOME", ".config")
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "bridge")
}

// Flags returns those of --root, --team and --as that were given and are named, and that a text does not have already,
// with a space in front, to append to a command.
func (g *Given) Flags(text string, names ...string) (flags string) {
	given := map[string]string{"root": g.Root, "team": g.Team, "as": g.As}
	for _, name := range names {
		if value := given[name]; value != "" && !strings.Contains(text, "--"+name+" ") {
			flags += " --" + name + " " + policy.Quote(value)
		}
	}
	return flags
}

// Warn writes a line to stderr, escaped and with its commands complete, unless IsQuiet.
func (g *Given) Warn(format string, args ...any) {
	if !g.IsQuiet && g.Err != nil {
		failure.PrintLine(g.Err, "atm: "+failure.Say(format, args...).Map(g.Command).String())
	}
}
