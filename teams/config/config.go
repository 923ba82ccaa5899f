// Package config reads team.toml, the optional file in which people say how
// their team's members are started and what they may do without asking.
//
// The file is strict: an unknown key or a value that makes no sense is a mistake with a line. What could be understood
// in spite of mistakes is returned as well: it may be shown, but it is not acted upon. The program never rewrites the
// file.
package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// File is the name of the file in the team's directory; no more than MaxSize bytes of it are read.
const (
	File    = "team.toml"
	MaxSize = 1 << 20
)

// Config is what team.toml says.
type Config struct {
	Session   Session // before the members, whose own begin as this one
	Lead      wire.Name
	Approvers []wire.Name // nil: absent
	Members   map[wire.Name]Member
	Rules     policy.Rules
	Bridge    Bridge
}

// Bridge is how the team is bridged to other machines; flags of atm bridge go before it.
type Bridge struct {
	Host     wire.Name // what this machine is called
	NATS     string    // the server's URL
	Creds    string    // a file of credentials
	Replicas int64     // of what atm bridge makes on the server; 0: one
}

// Member is how a member is started.
type Member struct {
	Person   bool
	Role     string
	Command  []string // nil: started elsewhere
	Cwd      string   // relative to the directory that holds the root; "": that directory
	Env      map[string]string
	Driver   string      // "": auto
	Inject   string      // "": body
	Restart  string      // "": on-crash
	Size     string      // ParseSize reads it
	Prompt   string      // typed once, at the first idle
	After    []wire.Name // started when these are ready
	Worktree bool
	Session  *Session // nil: the team's
}

// Session is how interactive sessions run.
type Session struct {
	Enabled         *bool  // nil: not begun by runners, and people may begin one
	OutputCapture   string `toml:"output_capture"` // pipe, pty, log
	AllowHumanInput bool   `toml:"allow_human_input"`
	AutoExitOn      string `toml:"auto_exit_on"` // see Rules
	ResumeCmd       string `toml:"resume_cmd"`   // see ResumeWords
}

// The words that team.toml and the flags of `atm run` take.
var (
	Drivers  = []string{"auto", "claude", "codex", "gemini", "opencode", "plain", "acp"}
	Injects  = []string{"body", "pointer", "off"}
	Restarts = []string{"never", "on-crash", "always"}
)

// Default is the configuration of a team without a team.toml.
func Default() *Config {
	return &Config{Members: map[wire.Name]Member{}, Session: Session{OutputCapture: "pipe", AllowHumanInput: true}}
}

// SessionOf is how the sessions of a member run: as its own section says, else the team's.
func (c *Config) SessionOf(name wire.Name) *Session {
	if own := c.Members[name].Session; own != nil {
		return own
	}
	return &c.Session
}

// Rules are when a session ends by itself.
func (s *Session) Rules() session.Rules {
	rules, _ := s.exitRules()
	return rules
}

func (s *Session) exitRules() (r session.Rules, err error) {
	idle, isIdle := strings.CutPrefix(s.AutoExitOn, "idle_timeout:")
	d, bad := time.ParseDuration(strings.TrimSpace(idle))
	switch {
	case s.AutoExitOn == "goal_complete":
		r.OnGoal = true
	case isIdle && bad == nil && d > 0:
		r.WhenIdle = d
	case s.AutoExitOn != "":
		err = fmt.Errorf(`%q, and can only be "idle_timeout: 300s" or "goal_complete"`, s.AutoExitOn)
	}
	return r, err
}

// ResumeWords is resume_cmd as words with the id of a session filled in; nil when there is none.
func (s *Session) ResumeWords(id wire.UUID) (words []string) {
	words, _ = policy.SplitWords(s.ResumeCmd)
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], "{session_id}", string(id))
	}
	return words
}

// Policy is who and what answers the permission requests of a member.
func (c *Config) Policy(asker wire.Name) policy.Policy {
	p := policy.Policy{
		Lead: c.Lead, Approvers: c.Approvers, Rules: c.Rules,
		Mute: !c.SessionOf(asker).AllowHumanInput, Roles: map[wire.Name]string{},
	}
	for _, n := range slices.Sorted(maps.Keys(c.Members)) {
		if c.Members[n].Person {
			p.People = append(p.People, n)
		}
		if role := c.Members[n].Role; role != "" {
			p.Roles[n] = role
		}
	}
	return p
}

// ParseSize reads a terminal's size in cells: columns x rows, each from 2 to 1000.
func ParseSize(s string) (cols, rows int, err error) {
	fmt.Sscanf(s, "%dx%d", &cols, &rows)
	if s != fmt.Sprintf("%dx%d", cols, rows) || min(cols, rows) < 2 || max(cols, rows) > 1000 {
		return 0, 0, fmt.Errorf("%q is no size of a terminal: columns x rows, each from 2 to 1000, such as \"120x30\"", s)
	}
	return cols, rows, nil
}

// Mistake is something that is wrong in team.toml.
type Mistake struct {
	Line int
	Text string
}

func (m Mistake) String() string { return fmt.Sprintf("line %d: %s", m.Line, m.Text) }

// Error reports all that is wrong in a team.toml.
type Error struct {
	Path     string
	Mistakes []Mistake // by line; at least one
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s", e.Path, e.Mistakes[0])
	if more := len(e.Mistakes) - 1; more > 0 {
		s += fmt.Sprintf(", and %d more", more)
	}
	return s
}
