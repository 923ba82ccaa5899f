package agents

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentteammail/atm/teams/policy"
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

// An Install is one installation of atm's part in a program's configuration.
type Install struct {
	Home, Top string // the person's directory, and the top of the worktree
	Root      string // the root that agents here use; "": there is none
	Agent     string // who the agent is here; "" leaves that as it is
	Hook      []string

	Local     bool // this worktree's own file, else the user's
	Claims    bool // also what refuses to edit what another member has claimed
	Accept    bool // also what takes mail without asking where no permissions are asked for
	IsRemoval bool // all that any installation makes is planned, to be removed
}

// A Place is where a program keeps a file or directory: User in the directory that a variable names, else in Home in the
// person's home; in a project, Local.
type Place struct{ Variable, Home, User, Local string }

// Path returns the path of a place in this installation.
func (in *Install) Path(p Place) string {
	if in.Local {
		return filepath.Join(in.Top, p.Local)
	}
	return in.UserPath(p)
}

// UserPath returns the path of a place among the user's files.
func (in *Install) UserPath(p Place) string {
	return filepath.Join(cmp.Or(os.Getenv(p.Variable), filepath.Join(in.Home, p.Home)), p.User)
}

// Configuration is what atm writes into a program's configuration.
type Configuration struct {
	// Files plans all files, the one with the hooks or the plugin first, and notes for the person.
	Files                    func(in *Install) (files []File, notes []string)
	Hooks                    HookSet // without the command
	MCP                      MCPServer
	TakesClaims, TakesAccept bool // see Install
	IsSandboxed              bool // it may write in a root only if its configuration says so

	Shared string // the file of a project whose hooks its people share, and atm never changes; "": there is none

	// Obstacle says what keeps the program from running hooks, "" if nothing is known to. isHere: only in this project, while the
	// hooks are the user's. nil: nothing does.
	Obstacle func(in *Install, look Look) (why string, isHere bool)

	Plugin *Plugin // nil: the program has none

	// Bring plans the hooks of one run; why says for the person what of theirs stands in the way; "": nothing. IsBrought reports
	// whether a program has those of a file, and Without returns an environment without them. nil: nothing is brought.
	Bring     func(r *Run) (b Brought, why string)
	IsBrought func(file string, getenv func(string) string, arguments func() []string) bool
	Without   func(env []string, file string) []string
}

// A File is one of a program's that gets hooks and settings (Format) or Keys, or one of atm's own (Comment).
type File struct {
	Path string

	Format     *Dialect // of a JSON file
	HasHooks   bool
	NamesAgent bool // the hooks' command does
	Settings   []Setting

	Keys []Key // of a TOML file

	Comment, Body, Change string // what begins its first line, the rest, and the line for the report
}

// A Setting is a value in a JSON file. Its place is a JSON pointer (RFC 6901), where "/-" at the end adds to a list.
type Setting struct {
	Pointer, Value string
	Change         string // for the report, once for all settings with the same text
	KeepsTheirs    bool   // a value that somebody else has put there is an error
}

// WritableRoot adds the root to a list of directories.
func (in *Install) WritableRoot(pointer string) Setting {
	return Setting{Pointer: pointer, Value: Quoted(in.Root), Change: "writable in the sandbox: " + in.Root}
}

// A Key is a value in a TOML file.
type Key struct {
	Table, Name string
	Want        string // the value, or an element of the list that it is; "": the key is not wanted
	Value       string // as TOML
	Change      string // for the report
}

// A Dialect is the JSON that a program takes in one of its files. A file with anything else it ignores as a whole, or does
// not start. All of them take the last of two members with one name, or none; atm takes neither. What else they refuse they
// tell their person when they start.
type Dialect struct {
	Mark     bool // a byte-order mark
	Comments bool // and commas behind the last element
}

// A HookSet is the hooks of a program whose configuration has the shape of Claude Code's:
// {"hooks":{EVENT:[{"matcher":…,"hooks":[{"type":"command",…}]}]}}. A group without a matcher is for everything.
type HookSet struct {
	Timeout int // in the program's own unit
	Events  []string
	Waiting []string // the events whose hooks may wait
	Brief   []string // the events whose hooks the program gives briefly at most
	IsOnce  bool     // the program runs a command once for an event, though several files have it
}

// An MCPServer says where a configuration lists MCP servers, and how an entry is written there.
type MCPServer struct {
	Place        Place
	Format       *Dialect // nil: TOML
	At, Entry    string
	Note         string // for the person; "": none
	NamelessNote string // if the entry names no agent
}

// A Plugin is how a program takes what atm brings as one thing: hooks, the MCP server, a skill and a command. It comes from a
// marketplace, which is a directory or a repository: the files are both in this one and in the program, which writes
// them for `atm install --plugin`.
type Plugin struct {
	Add, Remove [][]string // commands of the program; $DIR is the marketplace
	Asks        bool       // Add asks the person, and waits for the answer
	Files       func(p *PluginParts) map[string]string

	SwitchedIn Place  // the file that says that it is on
	Switch, On string // the setting there, and its value then
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
	Command, Env []string
	Dir          string   // the run's own
	Words        []string // of the hook's command
	Hooks        string   // the document of the program's hooks
}

// Brought is what has one run of a program call atm's hooks, beside those of its person, whose files stay as they are.
type Brought struct {
	File string   // the path of the file to write before the program starts; "": nothing is brought
	Text string   // its content
	Args []string // to add to the program's arguments
	Env  []string // to add to its environment
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
