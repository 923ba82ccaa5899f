package agents

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/policy"
)

// Claims is the variable that has atm's hook refuse edits of what another member has claimed, if it is Refuse.
const Claims, Refuse = "ATM_CLAIMS", "refuse"

// Rules may allow Verbs with whatever follows them, and these Looks at the team exactly: "atm team" would also begin "atm
// team retire".
var (
	Verbs = slices.DeleteFunc(slices.Clone(policy.Unasked), func(verb string) bool { return verb == "team" })
	Looks = []string{"team", "team ls", "team --json"}
)

// Allowed is the line of the report for the permission to run verbs.
func Allowed(verbs []string) string { return "runs without asking: atm " + strings.Join(verbs, ", ") }

// An Install is what a vendor plans the installation of atm's part in its configuration by.
type Install struct {
	Home, Top string   // the person's directory, and the top of the worktree
	Root      string   // the root that agents here use; "": there is none
	Hook      []string // the words of the hooks' command
	Accept    bool     // also what takes mail without asking where no permissions are asked for
}

// A Place is where a program keeps a file or directory of its person's: Path in the directory that a variable names, else in
// Home in the person's home.
type Place struct{ Variable, Home, Path string }

// At returns the path of a place in this installation.
func (in *Install) At(p Place) string {
	return filepath.Join(cmp.Or(os.Getenv(p.Variable), filepath.Join(in.Home, p.Home)), p.Path)
}

// Configuration is what atm writes into a program's configuration.
type Configuration struct {
	Hooks  HookSet // without the command
	Plugin *Plugin // nil: the program has none, and the hooks are in one of Files

	Files       func(in *Install) []File  // of atm's own, in the program's directories; nil: none
	Entries     func(in *Install) []Entry // of the program's own settings: what a plugin cannot say; nil: none
	Writable    *List                     // where its sandbox has the directories in which it may write; nil: it has none
	Notes       []string                  // what the person still has to do or know
	TakesAccept bool                      // see Install

	Obstacles func(in *Install) []Obstacle // what may keep the hooks from running; nil: nothing is known to

	// Bring plans the hooks of one run; why says for the person what of theirs stands in the way; "": nothing. IsBrought reports
	// whether a program has those of a file, and Without returns an environment without them. nil: nothing is brought.
	Bring     func(r *Run) (b Brought, why string)
	IsBrought func(file string, getenv func(string) string, arguments func() []string) bool
	Without   func(env []string, file string) []string
}

// A File is one of atm's own: Comment begins its first line, which says whose it is, and Change is the line for the report.
type File struct{ Path, Comment, Body, Change string }

// An Entry is a value in a file of the program's settings. Pointer is a JSON pointer (RFC 6901), where "/-" at the end adds to a
// list; in a TOML file it leads to a list in a table. Value is JSON, and Change the line for the report, once for all entries with
// the same one.
type Entry struct{ File, Pointer, Value, Change string }

// A List is one in a file of the program's settings, at a JSON pointer.
type List struct {
	Place
	Pointer string
}

// An Obstacle is a setting that has a program run no hooks if Value is in its value. Of several files with a setting the last
// counts.
type Obstacle struct{ File, Pointer, Value string }

// Obstacles are a setting in several files.
func Obstacles(pointer, value string, files ...string) []Obstacle {
	return Each(files, func(file string) Obstacle { return Obstacle{file, pointer, value} })
}

// A HookSet is the hooks of a program whose configuration has the shape of Claude Code's:
// {"hooks":{EVENT:[{"matcher":…,"hooks":[{"type":"command",…}]}]}}. A group without a matcher is for everything.
type HookSet struct {
	Timeout int // in the program's own unit
	Events  []string
	Waiting []string // the events whose hooks may wait
	Brief   []string // the events whose hooks the program gives briefly at most
}

// Timeouts in seconds: of a hook that waits, and of one of brief, which such a program clamps to with a warning if it is longer.
const aDay, briefly = 24 * 60 * 60, 3

// Document returns a file with the program's hooks, which run a command.
func (h HookSet) Document(command string) string {
	events := Object{}
	for _, event := range h.Events {
		timeout := h.Timeout
		if slices.Contains(h.Waiting, event) {
			timeout = aDay
		} else if slices.Contains(h.Brief, event) {
			timeout = briefly
		}
		events[event] = []Object{{"hooks": []Object{{"type": "command", "command": command, "timeout": timeout}}}}
	}
	return Indented(Object{"hooks": events})
}

// Indented returns the JSON of an object as files of other programs have it.
func Indented(o Object) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	e.Encode(o) // strings, lists and objects never fail
	return b.String()
}

// A Plugin is how a program takes what atm brings as one thing: hooks, the MCP server, a skill and a command. It comes from a
// marketplace, which is a directory or a repository: the files are both in this one and in the program, which writes
// them for `atm install`.
type Plugin struct {
	Add, Remove [][]string // commands of the program; $DIR is the marketplace
	Asks        bool       // Add asks the person, and waits for the answer
	Files       func(p *PluginParts) map[string]string

	SwitchedIn Place  // the file that says that it is on
	Switch, On string // the setting there, and its value then
}

// Quoted returns words as JSON, which is also TOML.
func Quoted[T string | []string | []any](v T) string {
	data, _ := json.Marshal(v) // strings never fail
	return string(data)
}

// An Object is one of JSON.
type Object = map[string]any

// PluginParts are what the files of all plugins are made of.
type PluginParts struct {
	Version, Home, Description string
	Manifest, Server           Object
	Skill, Hooks, Prompt       string
	Text                       func(Object) string
}

// A Run is one run of a program, to which hooks are brought.
type Run struct {
	Agent        string // its member
	Command, Env []string
	Dir          string   // the run's own
	Words        []string // of the hook's command
	Hooks        string   // the document of the program's hooks
}

// Brought is what has one run of a program call atm's hooks, beside those of its person, whose files stay as they are.
type Brought struct {
	File string   `json:"file"`           // the path of the file to write before the program starts; "": nothing is brought
	Text string   `json:"text"`           // its content
	Args []string `json:"args,omitempty"` // to add to the program's arguments
	Env  []string `json:"env,omitempty"`  // to add to its environment
}

// ValueOf returns the last value of a variable, "" without one.
func ValueOf(env []string, name string) (value string) {
	for _, pair := range env {
		if v, ok := strings.CutPrefix(pair, name+"="); ok {
			value = v
		}
	}
	return value
}

// Each returns what f makes of each word.
func Each[T any](words []string, f func(string) T) (all []T) {
	for _, w := range words {
		all = append(all, f(w))
	}
	return all
}
