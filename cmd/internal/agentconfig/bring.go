package agentconfig

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/teams/policy"
)

// Brought is what has one run of a program call atm's hooks, beside those of its person, whose files stay as they are.
type Brought struct {
	File string   // the path of the file to write before the program starts; "": nothing is brought
	Text string   // its content
	Args []string // to add to the program's arguments
	Env  []string // to add to its environment
}

// BroughtFile is the variable that has the path of a run's Brought.File, and --brought marks the calls of its hooks.
const BroughtFile, broughtFlag = "ATM_HOOKS", "--brought"

// Each of these names a file that the program reads beside those of its person. Tried with Claude Code 2.1.197, Gemini CLI
// 0.61.0 and opencode 1.18.33.
const (
	claudeSettingsFlag = "--settings"
	geminiDefaults     = "GEMINI_CLI_SYSTEM_DEFAULTS_PATH"
	opencodeConfig     = "OPENCODE_CONFIG_CONTENT"
)

// Bring plans the hooks of a run with that command and environment; dir is the run's own directory. Nothing is brought to a
// program that has no such way. why says for the person what of theirs stands in the way; "": nothing.
func (p *Installer) Bring(command, env []string, dir string) (b Brought, why string) {
	tool := strings.TrimSuffix(filepath.Base(command[0]), ".exe")
	words := append(p.command("", "hook", tool), broughtFlag)
	h := hookSets[tool]
	h.command = policy.QuoteAll(words)
	b = Brought{File: filepath.Join(dir, tool+".json"), Text: h.document()}
	switch tool {
	case "claude":
		if slices.ContainsFunc(command, func(arg string) bool {
			return arg == claudeSettingsFlag || strings.HasPrefix(arg, claudeSettingsFlag+"=")
		}) {
			return Brought{}, "it has " + claudeSettingsFlag + " of its own"
		}
		b.Args = []string{claudeSettingsFlag + "=" + b.File}
	case "gemini":
		if valueOf(env, geminiDefaults) != "" {
			return Brought{}, geminiDefaults + " is set"
		}
		if _, err := os.Lstat(filepath.Join(geminiManaged, "system-defaults.json")); err == nil || !isSystemPath(dir) {
			return Brought{}, ""
		}
		b.Env = []string{geminiDefaults + "=" + b.File}
	case "opencode":
		b.File = filepath.Join(dir, "opencode.js")
		b.Text = strings.Replace(opencodePlugin, "$COMMAND", quoted(words), 1)
		config, err := parseJSON([]byte(valueOf(env, opencodeConfig)))
		if err == nil {
			err = put(config, "/plugin/-", quoted(fileURL(b.File)))
		}
		if err != nil {
			return Brought{}, opencodeConfig + " is set, and not to a JSON object"
		}
		b.Env = []string{opencodeConfig + "=" + compact(config)}
	default:
		return Brought{}, ""
	}
	b.Env = append(b.Env, BroughtFile+"="+b.File)
	return b, ""
}

// IsBrought reports whether a run has brought hooks to the program that calls an installed one, which then has nothing to
// do. arguments are the program's.
func IsBrought(tool string, getenv func(string) string, arguments func() []string) bool {
	file := getenv(BroughtFile)
	switch {
	case file == "":
		return false
	case tool == "claude":
		return slices.Contains(arguments(), claudeSettingsFlag+"="+file)
	case tool == "gemini":
		return getenv(geminiDefaults) == file
	}
	return tool == "opencode" && filepath.Ext(file) == ".js"
}

// WithoutBrought returns an environment without what the run in which it was found has brought.
func WithoutBrought(env []string) []string {
	file := valueOf(env, BroughtFile)
	if file == "" {
		return env
	}
	config, err := parseJSON([]byte(valueOf(env, opencodeConfig)))
	if i := index(config.Find("/plugin"), quoted(fileURL(file))); err == nil && i >= 0 {
		remove(config, fmt.Sprintf("/plugin/%d", i))
	}
	var left []string
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		switch {
		case name == BroughtFile, name == geminiDefaults && value == file, name == opencodeConfig && compact(config) == `{"plugin":[]}`:
		case name == opencodeConfig && err == nil:
			left = append(left, name+"="+compact(config))
		default:
			left = append(left, pair)
		}
	}
	return left
}

// valueOf returns the last value of a variable, "" without one.
func valueOf(env []string, name string) (value string) {
	for _, pair := range env {
		if v, ok := strings.CutPrefix(pair, name+"="); ok {
			value = v
		}
	}
	return value
}

func fileURL(path string) string {
	return (&url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(filepath.ToSlash(path), "/")}).String()
}

// isSystemPath reports whether Gemini CLI takes a file of the system's from a directory: root owns it and all above, and
// nobody else may write there.
func isSystemPath(dir string) bool {
	for {
		info, err := os.Stat(dir)
		if err == nil { // else it is made when the agent runs
			owner := durable.Owner(info)
			if owner == nil || *owner != 0 || os.Geteuid() != 0 || info.Mode().Perm()&0o022 != 0 {
				return false
			}
		}
		above := filepath.Dir(dir)
		if above == dir {
			return true
		}
		dir = above
	}
}
