// Package config reads team.toml, the optional file in which people configure how the members of their team are started
// and what they may do without asking. atm never rewrites it.
//
// Parsing is strict: an unknown key is a mistake as well as an invalid value. A file with mistakes still gives a Config,
// which may be shown but not acted upon.
package config

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentteammail/atm/internal/driver/agents"
	"github.com/agentteammail/atm/internal/maildir/holder"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/tomlfile"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

// File is the name of the file in the team's directory. At most MaxSize bytes of it are read.
const (
	File    = "team.toml"
	MaxSize = tomlfile.MaxSize
)

// Config is the content of team.toml.
type Config struct {
	Session   Session
	Lead      wire.Name
	Approvers []wire.Name // nil: absent
	Members   map[wire.Name]Member
	Groups    map[wire.Name][]wire.Name // names that stand for several members in an address, behind an @
	Rules     policy.Rules
	On        []On
	Bridge    Bridge
}

// Bridge configures atm bridge, whose flags override it.
type Bridge struct {
	Host     wire.Name // the name of this machine
	NATS     string    // the server's URL
	Creds    string    // a file of credentials
	Replicas int64     // of the streams that atm bridge creates; 0: one
}

// Member configures a member and how it is started.
type Member struct {
	Person   bool
	Role     string
	Command  []string // nil: started elsewhere
	Cwd      string   // relative to the directory that holds the root; "": that directory
	Env      map[string]string
	Driver   string      // "": auto
	Inject   string      // "": body
	Restart  string      // "": on-crash
	Resume   bool        // each start continues its last conversation
	Size     string      // see ParseSize
	Prompt   string      // typed once, at the first idle
	After    []wire.Name // started when these are ready
	Worktree bool
	Setup    []string // run once in a new worktree; nil: nothing is
	From     Words    // whose mail it is given: members, and "@name" for a group or a role; none: everybody's
	Session  *Session // nil: the team's

	Serves []wire.Name // shared inboxes from which it takes work by itself
	Lease  string      // for how long such a message is its own; "": see LeaseTime

	Tries int // how often a job of this shared inbox is given out in vain before it is set aside; 0: DefaultTries

	AfterLimit string `toml:"after_limit"` // "": wait; Continue: told to go on when its usage limit is over
}

// Session configures interactive sessions. A member's own has only what differs from the team's: see SessionOf.
type Session struct {
	Enabled         *bool   // nil: runners begin none, but people may
	OutputCapture   string  `toml:"output_capture"`    // pipe, log
	AllowHumanInput *bool   `toml:"allow_human_input"` // nil: true
	AutoExitOn      *string `toml:"auto_exit_on"`      // see Rules
	ResumeCmd       *string `toml:"resume_cmd"`        // see ResumeWords
}

// The values that team.toml and the flags of `atm run` accept.
var (
	Injects  = []string{"body", "pointer", "off"}
	Restarts = []string{"never", "on-crash", "always"}
)

// Continue is the value of after_limit with which a member goes on.
const Continue = "continue"

// DefaultTries is how often a job is given out in vain before it is set aside.
const DefaultTries = 3

// LeaseTime is for how long a message is the member's that it takes from an inbox that it serves.
func (m Member) LeaseTime() time.Duration {
	if d, _ := time.ParseDuration(m.Lease); d > 0 {
		return min(d, holder.MaxLease)
	}
	return 10 * time.Minute
}

// Drivers are the values for a driver: those that this person has, and "auto".
func Drivers() []string { return append([]string{"auto"}, agents.Names(agents.Dir())...) }

// Default is the configuration of a team without a team.toml.
func Default() *Config {
	return &Config{Members: map[wire.Name]Member{}, Session: Session{OutputCapture: "pipe"}}
}

// SessionOf is the team's session section, with what the member's own says instead.
func (c *Config) SessionOf(name wire.Name) *Session {
	s, own := c.Session, c.Members[name].Session
	if own != nil {
		s = Session{
			cmp.Or(own.Enabled, s.Enabled), cmp.Or(own.OutputCapture, s.OutputCapture), cmp.Or(own.AllowHumanInput, s.AllowHumanInput),
			cmp.Or(own.AutoExitOn, s.AutoExitOn), cmp.Or(own.ResumeCmd, s.ResumeCmd),
		}
	}
	return &s
}

// Rules says when a session ends by itself.
func (s *Session) Rules() (r session.Rules) {
	on := valueOf(s.AutoExitOn)
	if idle, ok := strings.CutPrefix(on, "idle_timeout:"); ok {
		d, _ := time.ParseDuration(strings.TrimSpace(idle))
		r.WhenIdle = max(d, 0)
	}
	r.OnGoal = on == "goal_complete"
	return r
}

func valueOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// IsMute reports whether sessions take no human input.
func (s *Session) IsMute() bool { return s.AllowHumanInput != nil && !*s.AllowHumanInput }

// ResumeWords splits resume_cmd into words and fills in a session's id; nil without resume_cmd.
func (s *Session) ResumeWords(id wire.UUID) (words []string) {
	words, _ = policy.SplitWords(valueOf(s.ResumeCmd))
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], "{session_id}", string(id))
	}
	return words
}

// Me is what people call themselves here.
const Me wire.Name = "me"

// IsPerson reports whether a member is a person: team.toml says so, or it is Me and has no section there. Every part of atm
// asks this, and nothing that a member does changes it.
func (c *Config) IsPerson(name wire.Name) bool {
	m, isDescribed := c.Members[name]
	return m.Person || name == Me && !isDescribed
}

// Policy is the policy for the permission requests of a member, without rules that are not for it.
func (c *Config) Policy(asker wire.Name) policy.Policy {
	p := policy.Policy{Lead: c.Lead, Approvers: c.Approvers, Mute: c.SessionOf(asker).IsMute()}
	for _, r := range c.Rules {
		if (r.Agent == "" || r.Agent == asker) && (r.Role == "" || r.Role == c.Members[asker].Role) {
			p.Rules = append(p.Rules, r)
		}
	}
	for _, n := range append(slices.Sorted(maps.Keys(c.Members)), Me) {
		if c.IsPerson(n) && !slices.Contains(p.People, n) {
			p.People = append(p.People, n)
		}
	}
	for _, word := range c.Members[asker].From {
		if p.From == nil {
			p.From = map[string][]wire.Name{}
		}
		p.From[word] = c.named(word)
	}
	return p
}

// Startable lists the members that have a command, sorted.
func (c *Config) Startable() []wire.Name {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(c.Members)), func(n wire.Name) bool {
		return len(c.Members[n].Command) == 0
	})
}

// StartOrder returns the named members and the ones that they are started after, each once and after the ones that it
// waits for.
func (c *Config) StartOrder(names []wire.Name) (out []wire.Name) {
	seen := map[wire.Name]bool{}
	var visit func(names []wire.Name)
	visit = func(names []wire.Name) {
		for _, n := range names {
			if !seen[n] {
				seen[n] = true
				visit(c.Members[n].After)
				out = append(out, n)
			}
		}
	}
	visit(names)
	return out
}

// Start calls start for each member in order (see StartOrder), concurrently where after allows it, and returns the
// errors by member. A member waits for the members of its after that precede it in order, so that a cycle cannot hang;
// if one of them fails, it is not started.
func (c *Config) Start(ctx context.Context, order []wire.Name, start func(context.Context, wire.Name) error) map[wire.Name]error {
	started := map[wire.Name]func() error{}
	for _, n := range order {
		before := maps.Clone(started)
		started[n] = sync.OnceValue(func() error {
			for _, a := range c.Members[n].After {
				if wait := before[a]; wait != nil && wait() != nil {
					return fmt.Errorf("not started: it waits for %s, which is not ready", a)
				}
			}
			return start(ctx, n)
		})
	}
	var all sync.WaitGroup
	for _, once := range started {
		all.Go(func() { once() })
	}
	all.Wait()
	errs := map[wire.Name]error{}
	for n, once := range started {
		if err := once(); err != nil {
			errs[n] = err
		}
	}
	return errs
}

// ParseSize parses a terminal's size in cells: columns x rows, each from 2 to 1000.
func ParseSize(s string) (cols, rows int, err error) {
	fmt.Sscanf(s, "%dx%d", &cols, &rows)
	if s != fmt.Sprintf("%dx%d", cols, rows) || min(cols, rows) < 2 || max(cols, rows) > 1000 {
		return 0, 0, fmt.Errorf("%q is not a terminal size: columns x rows, each from 2 to 1000, such as \"120x30\"", s)
	}
	return cols, rows, nil
}
