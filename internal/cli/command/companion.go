package command

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// Flags are those that stand before and behind every verb.
func Flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "root", Usage: "the `DIR` that holds the teams"},
		&cli.StringFlag{Name: "team", Usage: "the `TEAM`"},
		&cli.StringFlag{Name: "as", Usage: "your `NAME`"},
		&cli.BoolFlag{Name: "json", Usage: "one JSON document on stdout"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q", "silent"}, Usage: "errors only"},
		DurationFlag("lock-timeout", 5e9, "wait for a lock at most `D` (default 5s)"),
		&cli.BoolFlag{Name: "no-color", Aliases: []string{"no-colour"}, Hidden: true, Action: func(*cli.Context, bool) error { return os.Setenv("NO_COLOR", "1") }},
		&cli.BoolFlag{Name: "yes", Hidden: true, Aliases: []string{ // atm never asks, has no pager, and one way to say things
			"y", "non-interactive", "no-input", "no-pager", "verbose", "debug", "pretty", "plain", "wide", "force"}},
		&cli.StringFlag{Name: "via", Hidden: true}, // the program that asks: see Via
		&cli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "the help page"},
		&cli.BoolFlag{Name: "version", Aliases: []string{"v", "V"}, Usage: "the version"},
	}
}

// CompanionFlags are a companion's own, which atm sorts before the words for it.
var CompanionFlags = map[string][]cli.Flag{
	"bridge": {
		&cli.StringFlag{Name: "nats", Usage: "the server's `URL`, or several with commas between (team.toml: nats)"},
		&cli.StringFlag{Name: "creds", Usage: "a `FILE` of credentials for it (team.toml: creds)"},
		&cli.StringFlag{Name: "host", Usage: "this machine's `NAME` (default: host in team.toml, else its only key)"},
		&cli.BoolFlag{Name: "once", Usage: "send and fetch what is there, and end"},
	},
	"web": {
		&cli.StringFlag{Name: "listen", Usage: "at `HOST:PORT` (default 127.0.0.1:0, any free one)"},
		&cli.BoolFlag{Name: "no-open", Usage: "open no browser"},
		&cli.BoolFlag{Name: "token", Usage: "print another address of the one that runs"},
		&cli.StringFlag{Name: "export", Usage: "write the pages into `DIR`, as files"},
		&cli.BoolFlag{Name: "allow-remote", Usage: "listen for other machines, with:"},
		&cli.StringFlag{Name: "tls-cert", Usage: "its certificate in `FILE`"},
		&cli.StringFlag{Name: "tls-key", Usage: "the key of that in `FILE`"},
	},
}

// Companion is where a program lies that belongs to atm: beside it, else on PATH.
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

// FindCompanion is Companion for a program that must be there, and of atm's version; does says what for: "which
// runs agents".
func FindCompanion(c *cli.Context, name, does string) (path string, err error) {
	if path, err = Companion(name); err != nil {
		return "", NoCompanion(name, does)
	}
	said, err := exec.Command(path, "version").Output()
	if err != nil {
		return "", Failed("%s version: %w", path, err).WithHint(installHint)
	}
	if version := strings.TrimSpace(string(said)); version != name+" "+c.App.Version {
		return "", Failed("%s is of another version than atm %s: %s", path, c.App.Version, cmp.Or(version, "it does not say which")).
			WithHint(installHint)
	}
	return path, nil
}

// NoCompanion is the error where such a program is missing.
func NoCompanion(name, does string) *Error {
	return Failed("%s, %s, is neither beside atm nor on PATH", name, does).WithHint(installHint)
}

const installHint = "make install in its source, or go install github.com/agentteammail/atm/cmd/...@latest"

// Version is a program's version: what the linker was told or, of one that `go install` has built, its module's.
func Version(linked string) string {
	info, ok := debug.ReadBuildInfo()
	if linked != "dev" || !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return linked
	}
	return info.Main.Version
}

// RunCompanion is the program atm-VERB, whose help page atm has: atm asks it for its version, and starts it with
// its flags before its words. It returns the exit code.
func RunCompanion(verb, version string, words []string, act cli.ActionFunc) (code int) {
	version = Version(version)
	if len(words) == 1 && words[0] == "version" {
		fmt.Printf("atm-%s %s\n", verb, version)
		return ExitDone
	}
	app := &cli.App{
		Name: "atm-" + verb, HelpName: "atm " + verb, Version: version, Flags: slices.Concat(CompanionFlags[verb], Flags()), Metadata: map[string]any{},
		HideHelp: true, HideVersion: true, OnUsageError: UsageError,
		ExitErrHandler: func(*cli.Context, error) {}, // errors are printed once
		Action: func(c *cli.Context) error {
			code = Report(c, act(c), false)
			return nil
		},
	}
	if err := app.Run(append([]string{app.Name}, words...)); err != nil {
		return Report(cli.NewContext(app, &flag.FlagSet{}, nil), err, false)
	}
	return code
}
