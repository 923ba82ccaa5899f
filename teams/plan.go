package teams

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/wire"
)

// Plan is team.toml whole: how members are started, and what they may do
// without asking.
type Plan struct {
	Lead      wire.Name
	Approvers []wire.Name // nil: not said
	Members   map[wire.Name]MemberPlan
	Rules     Rules
	Session   SessionPlan
}

// MemberPlan is how a member is started.
type MemberPlan struct {
	Person   bool              `json:"person,omitempty"`
	Role     string            `json:"role,omitempty"`
	Command  []string          `json:"command,omitempty"` // nil: started elsewhere
	Cwd      string            `json:"cwd,omitempty"`     // "": the directory that holds the root, which it is relative to
	Env      map[string]string `json:"env,omitempty"`
	Driver   string            `json:"driver,omitempty"`  // "": auto
	Inject   string            `json:"inject,omitempty"`  // "": body
	Restart  string            `json:"restart,omitempty"` // "": on-crash
	Size     string            `json:"size,omitempty"`    // "": not said; ParseSize reads it
	Prompt   string            `json:"prompt,omitempty"`  // typed once, at the first idle
	After    []wire.Name       `json:"after,omitempty"`
	Worktree bool              `json:"worktree,omitempty"`
}

// differs names the keys that count when a member is started and in which two
// plans are not the same. What stands for the same is the same.
func (m MemberPlan) differs(n MemberPlan) (keys []string) {
	for _, k := range []struct {
		key  string
		same bool
	}{
		{"command", slices.Equal(m.Command, n.Command)},
		{"cwd", cmp.Or(m.Cwd, ".") == cmp.Or(n.Cwd, ".")},
		{"env", maps.Equal(m.Env, n.Env)},
		{"driver", cmp.Or(m.Driver, "auto") == cmp.Or(n.Driver, "auto")},
		{"inject", cmp.Or(m.Inject, "body") == cmp.Or(n.Inject, "body")},
		{"restart", cmp.Or(m.Restart, "on-crash") == cmp.Or(n.Restart, "on-crash")},
		{"size", m.Size == n.Size},
		{"prompt", m.Prompt == n.Prompt},
		{"worktree", m.Worktree == n.Worktree},
	} {
		if !k.same {
			keys = append(keys, k.key)
		}
	}
	return keys
}

// SessionPlan is how interactive sessions run.
type SessionPlan struct {
	Enabled         bool
	OutputCapture   string // pipe, pty, log
	AllowHumanInput bool
	ExitWhenIdle    time.Duration // 0: never
	ExitOnGoal      bool          // when the goal is complete
	ResumeCmd       []string      // words; {session_id} in them is filled in; nil: none
}

// The words that team.toml and the flags of `atm run` take.
var (
	Drivers  = []string{"auto", "claude", "codex", "gemini", "opencode", "plain", "acp"} // acp: not to be run yet
	Injects  = []string{"body", "pointer", "off"}
	Restarts = []string{"never", "on-crash", "always"}
)

// ParseSize reads a terminal's size in cells, columns x rows.
func ParseSize(s string) (cols, rows int, err error) {
	c, r, ok := strings.Cut(s, "x")
	if cols, rows = cellCount(c), cellCount(r); !ok || cols < minCells || rows < minCells {
		return 0, 0, fmt.Errorf("%q is no size of a terminal: columns x rows, each from %d to %d, such as \"120x30\"", s, minCells, maxCells)
	}
	return cols, rows, nil
}

// A terminal's width and height are between these.
const minCells, maxCells = 2, 1000

// cellCount reads a number of digits alone, 0 for anything else.
func cellCount(s string) (n int) {
	if len(s) > len("1000") {
		return 0
	}
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0
		}
		n = 10*n + int(c-'0')
	}
	if n > maxCells {
		return 0
	}
	return n
}

// Mistake is something that is wrong in team.toml.
type Mistake struct {
	Line int
	Text string

	// Word is what was written where only certain words can stand, and Known are
	// these: the nearest of them was probably meant.
	Word  string
	Known []string
}

func (m Mistake) String() string { return fmt.Sprintf("line %d: %s", m.Line, m.Text) }

// TomlError says all that is wrong with a team.toml.
type TomlError struct {
	Path     string
	Mistakes []Mistake // by line; at least one
}

func (e *TomlError) Error() string {
	s := fmt.Sprintf("%s: %s", e.Path, e.Mistakes[0])
	if n := len(e.Mistakes) - 1; n > 0 {
		s += fmt.Sprintf(", and %d more", n)
	}
	return s
}

// Plan is what team.toml says, read now and strictly: a *TomlError names every
// mistake, beside what could be understood. There is a plan of nothing where
// there is no file.
func (t *Team) Plan() (*Plan, error) {
	c, err := t.check()
	if err != nil {
		return nil, err
	}
	return c.plan, t.wrong(c)
}

// Check is Plan, which also looks at what team.toml speaks of: directories that
// are not there, worktrees where there is no repository. Such a thing keeps only
// that member from being started.
func (t *Team) Check() (*Plan, error) {
	c, err := t.check()
	if err != nil {
		return nil, err
	}
	for n, line := range c.trees {
		if _, _, err := t.repositoryOf(c.plan.Members[n].Cwd); err != nil && !c.plan.Members[n].Person {
			c.say(line, "%s has worktree = true, but %v", n, err)
		}
	}
	for n, line := range c.dirs {
		dir := t.WorkDir(c.plan.Members[n].Cwd)
		switch info, err := os.Stat(dir); {
		case c.trees[n] > 0: // said above, where it matters
		case err == nil && !info.IsDir():
			c.say(line, "cwd of %s: %s is no directory", n, shown(dir))
		case errors.Is(err, fs.ErrNotExist):
			c.say(line, "cwd of %s: %s is not there", n, shown(dir))
		case err != nil:
			c.say(line, "cwd of %s: %v", n, err)
		}
	}
	c.sort()
	return c.plan, t.wrong(c)
}

func (t *Team) check() (*checker, error) {
	agents, err := t.Agents()
	if err != nil {
		return nil, err
	}
	data, err := t.Dir().ReadFile(rosterFile, maxRoster)
	if errors.Is(err, fs.ErrNotExist) {
		data, err = nil, nil
	}
	if err != nil {
		return nil, err
	}
	return check(data, agents), nil
}

func (t *Team) wrong(c *checker) error {
	if len(c.mistakes) == 0 {
		return nil
	}
	return &TomlError{Path: t.Dir().Path() + "/" + rosterFile, Mistakes: c.mistakes}
}
