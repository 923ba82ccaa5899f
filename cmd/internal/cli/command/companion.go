package command

import (
	"cmp"
	"os/exec"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/failure"
)

// The flags of the verbs of atm-more.
var (
	BridgeFlags = []cli.Flag{
		&cli.StringFlag{Name: "ssh", Usage: "carry mail to and from `HOST` alone, over ssh"},
		&cli.StringFlag{Name: "dir", Usage: "the project's `DIR` there, from your home (default: as here)"},
		&cli.StringFlag{Name: "name", Usage: "what HOST is called in the team (default: its first word)"},
		&cli.BoolFlag{Name: "stdio", Hidden: true, Usage: "what --ssh starts there"},
		&cli.StringFlag{Name: "nats", Usage: "the server's `URL`, or several with commas (team.toml: nats)"},
		&cli.StringFlag{Name: "creds", Usage: "`FILE` with its credentials (team.toml: creds)"},
		&cli.StringFlag{Name: "host", Usage: "this machine's `NAME` (team.toml: host; or that of its only key)"},
		&cli.BoolFlag{Name: "once", Usage: "send and fetch once, then exit"},
	}
	ClaudeFlags = []cli.Flag{
		&cli.BoolFlag{Name: "once", Usage: "carry what is waiting, then exit"},
		&cli.BoolFlag{Name: "join", Usage: "add our members to its config.json"},
	}
	CodexFlags = []cli.Flag{
		cmdline.CountFlag("program", 0, "the process `PID` that a runner runs", "none"),
		&cli.StringFlag{Name: "server", Usage: "the `SOCKET` of codex's server (default: that of the program that shows the thread)"},
	}
	WebFlags = []cli.Flag{
		&cli.StringFlag{Name: "listen", Category: "port", Usage: "serve at `HOST:PORT`, or a port of this machine (default 0: any free one)"},
		&cli.StringFlag{Name: "url", Usage: "the `URL` at which a proxy serves it, such as https://HOST: see docs/machines.md"},
		&cli.BoolFlag{Name: "no-open", Usage: "do not open a browser"},
		&cli.BoolFlag{Name: "token", Usage: "print a new address for the running server"},
	}
)

// FindCompanion is app.Companion for a program that must exist and have atm's version. The error says what it is for, as
// "which runs agents".
func FindCompanion(c *cli.Context, name, purpose string) (path string, err error) {
	if path, err = app.Companion(name); err != nil {
		return "", NoCompanion(name, purpose)
	}
	out, _ := exec.Command(path, "version").Output()
	if version := strings.TrimSpace(string(out)); version != name+" "+c.App.Version {
		return "", failure.Failed("%s does not match atm %s: %s", path, c.App.Version, cmp.Or(version, "unknown")).
			WithHint(installHint)
	}
	return path, nil
}

// NoCompanion is the error for a missing program.
func NoCompanion(name, purpose string) *failure.Error {
	return failure.Failed("%s, %s, is neither beside atm nor on PATH", name, purpose).WithHint(installHint)
}

const installHint = "make install in the atm source, or go install github.com/agentteammail/atm/cmd/...@latest"

// RunCompanion is the main function of a verb of atm-more. atm starts it with flags before words; the help page is atm's.
func RunCompanion(verb, version string, words []string, act cli.ActionFunc) (code int) {
	flags := map[string][]cli.Flag{"bridge": BridgeFlags, "claude": ClaudeFlags, "codex": CodexFlags, "web": WebFlags}[verb]
	program := &cli.App{
		Name: "atm-more", HelpName: "atm " + verb, Version: Version(version), Action: act,
		Flags: append(cmdline.Flags(), flags...),
	}
	Prepare(program)
	program.Setup()
	line, err := cmdline.Sort(program, words)
	return Run(program, line, err)
}
