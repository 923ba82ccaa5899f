package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// env is what a verb works with: the call, and the root, team and identity in
// force. Only this file reads the environment and the working directory.
type env struct {
	*cmdline.Call
	root *teams.Root
	team *teams.Team
	me   *mailbox.Box

	teamSource, agentSource string
}

// place is what the surroundings say about where the root is.
func (e *env) place() teams.Place {
	p := e.placeless()
	p.Dir, _ = os.Getwd()
	return p
}

// naming is a place as far as it may name the root.
func (e *env) naming() teams.Place {
	return teams.Place{Flag: e.String("root"), Env: e.Getenv("ATM_ROOT")}
}

// placeless is place without the working directory: who names the root does not
// need it.
func (e *env) placeless() teams.Place {
	state := e.Getenv("XDG_STATE_HOME")
	home := e.Getenv("HOME")
	if home == "" {
		home, _ = os.UserHomeDir()
	}
	if state == "" && home != "" {
		state = filepath.Join(home, ".local", "state")
	}
	if state != "" {
		state = filepath.Join(state, "atm")
	}
	p := e.naming()
	p.Home, p.State, p.UID = home, state, os.Getuid()
	return p
}

// open finds and opens the root and the team.
func (e *env) open() error {
	if err := e.openRoot(); err != nil {
		return err
	}
	name, err := e.teamName()
	if err != nil {
		return err
	}
	e.team, err = e.root.Team(name)
	return err
}

func (e *env) openRoot() error {
	if e.Given("root") && e.String("root") == "" {
		return cmdline.Usage("--root needs a directory")
	}
	place := e.placeless()
	if name := cmp.Or(place.Flag, place.Env); !filepath.IsAbs(name) {
		place = e.place()
	}
	f, passed, err := teams.Find(place)
	for _, p := range passed {
		e.Warn("%s", p)
	}
	if err != nil {
		return err
	}
	return e.use(f)
}

// use opens a root.
func (e *env) use(f teams.Found) error {
	root, err := teams.Open(f, nil)
	if err == nil {
		e.workWith(root)
	}
	return err
}

func (e *env) workWith(root *teams.Root) {
	e.root = root
	// 0 is not to wait at all.
	root.LockTimeout = max(e.Duration("lock-timeout"), time.Nanosecond)
}

func (e *env) teamName() (wire.Name, error) {
	s := e.String("team")
	e.teamSource = "--team"
	if !e.Given("team") {
		s, e.teamSource = e.Getenv("ATM_TEAM"), "ATM_TEAM"
	}
	if s != "" || e.Given("team") {
		name, err := wire.ParseName(s)
		if err != nil {
			return "", cmdline.Usage("team: %v", err)
		}
		return name, nil
	}
	// An identity with its team, bob@main, says the team as well.
	if _, t, ok := strings.Cut(e.asked(), "@"); ok {
		name, err := wire.ParseName(t)
		if err != nil {
			return "", cmdline.Usage("team: %v", err)
		}
		e.teamSource = "the identity"
		return name, nil
	}
	all, err := e.root.Teams()
	if err != nil {
		return "", err
	}
	switch len(all) {
	case 0:
		return "", cmdline.NotFound("no team in %s", e.root.Path).WithHint("atm init alice bob")
	case 1:
		e.teamSource = "the only team"
		return all[0], nil
	}
	return "", cmdline.Usage("which team? there are %s", join(all)).WithHint("put --team NAME on the command, or set ATM_TEAM").WithCandidates(strs(all)...)
}

// who says who I am, in the team. It is never guessed.
func (e *env) who() error {
	if err := e.open(); err != nil {
		return err
	}
	name := e.asked()
	if name == "" {
		members, err := e.team.Agents()
		if err != nil {
			return err
		}
		if len(members) == 0 {
			return cmdline.Usage("who are you? team %q has no members", e.team.Name).WithHint("atm team add NAME")
		}
		return cmdline.Usage("who are you? members: %s", join(members)).
			WithHint("put --as NAME on the command; do not take a name that is not yours").WithCandidates(strs(members)...)
	}
	a, err := wire.ParseAddress(name, e.team.Name)
	if err == nil && wire.Reserved(string(a.Agent)) {
		_, err = wire.ParseName(string(a.Agent))
	}
	if err != nil {
		return cmdline.Usage("%s: %v", e.agentSource, err)
	}
	if a.Team != e.team.Name {
		return cmdline.Usage("%s says team %q, the command team %q", e.agentSource, a.Team, e.team.Name).WithHint("leave one out")
	}
	e.me, err = e.team.Member(a.Agent)
	return err
}

// asked is who the command says I am.
func (e *env) asked() string {
	if e.Given("as") {
		e.agentSource = "--as"
		return e.String("as")
	}
	e.agentSource = "ATM_AGENT"
	return e.Getenv("ATM_AGENT")
}

// warnUnaccepted says that mail comes from a root which this user neither
// named, made nor accepted: it may have come with a clone.
func (e *env) warnUnaccepted() {
	// Where nothing can be noted, nothing can be accepted either.
	if e.root.Accepted {
		return
	}
	if state := e.placeless().State; state != "" && os.MkdirAll(state, 0o700) == nil {
		e.Warn("nobody here made or accepted %s; its mail may have come with a clone. If it is yours: atm init", e.root.Path)
	}
}

// member is the mailbox that a person means by agent or agent@team.
func (e *env) member(s string) (*mailbox.Box, error) {
	a, err := wire.ParseAddress(s, e.team.Name)
	if err != nil {
		return nil, e.noMember(s, err)
	}
	return e.root.Mailbox(a)
}

// typed are the flags of this command that a command in a hint needs as well
// to mean the same.
func (e *env) typed() string {
	s := ""
	for _, f := range []string{"root", "team", "as"} {
		if e.Given(f) {
			s += " --" + f + " " + cmdline.Escape(e.String(f))
		}
	}
	return s
}

// mine refuses what only an agent's own processes may do while it runs.
func (e *env) mine() error {
	running, err := e.me.Store().Running(e.me.Agent())
	if err != nil || !running {
		return err
	}
	if own, err := e.team.IsRun(e.me.Agent(), e.Getenv("ATM_RUN")); own || err != nil {
		return err
	}
	if e.Has("peek") {
		return cmdline.Refused("%s runs: only its own processes read and mark its mail", e.me.Agent()).WithHint("%s --peek --as %s", e.Path, e.me.Agent())
	}
	return cmdline.Refused("%s runs: only its own processes act as %s", e.me.Agent(), e.me.Agent()).
		WithHint("atm read --peek --as %s looks without marking; to write, use a name of your own", e.me.Agent())
}

// agentMarks are variables that agents' programs set for what they start.
var agentMarks = []string{"ATM_RUN", "CLAUDECODE", "CODEX_SANDBOX", "CODEX_THREAD_ID", "GEMINI_CLI", "OPENCODE"}

// inAgent reports whether an agent's program started this process.
func (e *env) inAgent() bool {
	for _, m := range agentMarks {
		if e.Getenv(m) != "" {
			return true
		}
	}
	return false
}

// person reports whether a person types this, at a terminal of their own.
func (e *env) person() bool {
	return !e.inAgent() && e.Stdin != nil && term.IsTerminal(int(e.Stdin.Fd()))
}

func (e *env) terminal() bool { return term.IsTerminal(int(e.Stdout.Fd())) }

// origin is the evidence that goes with what this process sends.
func (e *env) origin() *wire.Origin {
	o := &wire.Origin{Via: "cli", Run: e.Getenv("ATM_RUN")}
	if uid := os.Getuid(); uid >= 0 {
		o.UID = &uid
	}
	return o
}

// renderer is how messages are shown here.
func (e *env) renderer() *letter.Renderer {
	tty := e.terminal()
	return &letter.Renderer{Now: time.Now(), Team: e.team.Name, Digits: 6, Terminal: tty, Bold: tty && e.Getenv("NO_COLOR") == "" && e.Getenv("TERM") != "dumb"}
}

// stamp is a moment for people: of today the time, else the day as well.
func stamp(t time.Time) string {
	t = t.Local()
	if now := time.Now(); t.Format(time.DateOnly) != now.Format(time.DateOnly) {
		return t.Format("2006-01-02 15:04:05")
	}
	return t.Format("15:04:05")
}

// print writes a line of the result, with what came from outside escaped by
// the caller.
func (e *env) print(format string, args ...any) error {
	_, err := fmt.Fprintf(e.Stdout, format+"\n", args...)
	return err
}

// find is the message that a fragment of an id means, in my mailbox or, unless
// only mine counts, in the team's.
func (e *env) find(ctx context.Context, fragment string, mine bool) (*mailbox.Item, *mailbox.Box, error) {
	id, box, err := e.team.Lookup(ctx, e.me, fragment, mine)
	if err != nil {
		if _, bad := wire.ParseFragment(fragment); bad != nil {
			if n, err := wire.ParseName(fragment); err == nil && e.team.Box(n).Exists() {
				return nil, nil, cmdline.Usage("%q is a member, not the id of a message", fragment).WithHint("atm send %s \"…\"", fragment)
			}
			return nil, nil, cmdline.Usage("%v", bad).WithHint("ids stand in atm read --last and atm ls --all")
		}
		return nil, nil, err
	}
	it, err := e.team.Message(id, box)
	return it, box, err
}

// findAll is find for several.
func (e *env) findAll(ctx context.Context, fragments []string, mine bool) ([]*mailbox.Item, error) {
	var out []*mailbox.Item
	for _, f := range fragments {
		it, _, err := e.find(ctx, f, mine)
		if err != nil {
			return nil, err
		}
		out = append(out, it)
	}
	return out, nil
}

func strs(names []wire.Name) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = string(n)
	}
	return out
}

func join(names []wire.Name) string { return strings.Join(strs(names), ", ") }

// shorts are ids as a line quotes them.
func shorts(ids []wire.ID) string {
	n := letter.ShortLength(ids)
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = id.Short(n)
	}
	return strings.Join(out, " ")
}
