package notices

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/config"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// Occurrence is something that happened to a member. Its JSON is the stdin of a command of [[on]].
type Occurrence struct {
	Event   string        `json:"event"` // see config.OnEvents
	Agent   wire.Name     `json:"agent"`
	Team    wire.Name     `json:"team"`
	Root    string        `json:"root"`
	At      time.Time     `json:"at"`
	Text    string        `json:"text"` // one line about it, for people
	Detail  string        `json:"detail,omitempty"`
	Message *wire.Message `json:"message,omitempty"`

	// Usage is what the member has used, of a limit that it has reached.
	Usage *reducer.Figures `json:"usage,omitempty"`

	before reducer.Figures // what it had used before
	key    string          // tells it from all others of the member
	asked  time.Time       // since when its question waits; zero: it is about none
}

// Limits of commands.
const (
	maxQueued      = 64               // occurrences that wait for a command; more are dropped
	maxOutput      = 2 << 10          // bytes of a command's output that are kept, the last ones
	commandsEnd    = 5 * time.Second  // how long Close waits
	checkOverdue   = 10 * time.Second // how often answers are looked for that are overdue
	maxOccurred    = 64 << 20         // bytes of a member's claims
	forgetOccurred = 24 * time.Hour   // when the claim of an occurrence may be forgotten
)

// occurredFile, in a member's directory, has a line for each occurrence that a command was, or is being, run for: when that
// was noted, and the occurrence's key. It changes under the lock reader, as other claims do.
const (
	occurredFile = "/run/occurred"
	olderClaims  = "/run/on" // where an older atm made an empty file for each
)

// Commands runs the owner's commands for what happens to members from its start on. Several processes may watch the same
// member: whoever notes the occurrence runs its commands. So each is run at most once, also if that process is
// killed. One command runs at a time. What it leaves running ends with it.
//
// Its methods, but for Close, are for one goroutine. It starts one.
type Commands struct {
	team    *teamdir.Team
	of      func(wire.Name) []config.On
	env     []string
	states  map[wire.Name]*reducer.State
	overdue map[wire.ID]bool // that were seen, and "" after the first look
	checkAt time.Time

	queue   chan Occurrence
	dropped atomic.Int64
	ctx     context.Context
	stop    context.CancelFunc
	ended   chan struct{}
}

// StartCommands begins with what happens from now on. of returns the commands for a member as its owner has accepted them,
// and env is their environment.
func StartCommands(t *teamdir.Team, of func(wire.Name) []config.On, env []string) (*Commands, error) {
	c := &Commands{
		team: t, of: of, env: env, states: map[wire.Name]*reducer.State{}, overdue: map[wire.ID]bool{},
		queue: make(chan Occurrence, maxQueued), ended: make(chan struct{}),
	}
	agents, err := t.Agents()
	for _, name := range agents {
		if len(of(name)) == 0 {
			continue
		}
		if c.states[name], err = t.State(name); err != nil {
			return nil, err
		}
	}
	c.ctx, c.stop = context.WithCancel(context.Background())
	go func() {
		defer close(c.ended)
		for o := range c.queue {
			c.run(o)
		}
	}()
	return c, err
}

// After is for watcher.Options: no event between the start and the watcher's is missed.
func (c *Commands) After() map[wire.Address]uint64 {
	after := map[wire.Address]uint64{}
	for name, s := range c.states {
		after[c.team.Box(name).Address()] = s.Seq
	}
	return after
}

// Handle looks at what a watcher reports, and at the clock.
func (c *Commands) Handle(ctx context.Context, e watcher.Entry) {
	name := e.Address.Agent
	if now := time.Now(); now.After(c.checkAt) {
		c.checkAt = now.Add(checkOverdue)
		c.lookForOverdue(ctx)
	}
	switch {
	case name == "" || len(c.of(name)) == 0:
	case e.Message != nil:
		c.messageArrived(name, e.Message)
	case e.Event != nil:
		c.eventAppended(name, e.Event)
	}
}

func (c *Commands) messageArrived(name wire.Name, m *wire.Message) {
	o := Occurrence{Event: config.OnMail, Agent: name, At: time.Now(), Message: m, key: string(m.ID)}
	if m.Urgent() {
		o.Event = config.OnUrgentMail
	}
	o.Text = fmt.Sprintf("%s for %s from %s: %s", strings.ReplaceAll(o.Event, "-", " "), name, m.From, letter.OneLine(m.Title(), 200))
	c.occurred(o)
}

// eventAppended folds an event, which may bring the member into another state.
func (c *Commands) eventAppended(name wire.Name, e *wire.Event) {
	s := c.states[name]
	if s == nil { // it was added since the start
		s = &reducer.State{}
		c.states[name] = s
	}
	before, used := s.Word(), s.Used()
	s.Apply(e)
	c.lookForLimits(name, e, used, s.Used())
	if s.Word() == before || !slices.Contains(config.OnStates, s.Word()) {
		return
	}
	o := Occurrence{Event: string(s.Word()), Agent: name, At: e.At, Detail: detailOf(s), key: fmt.Sprintf("%d-%d", e.Seq, e.At.UnixNano())}
	if requests := s.Requests(); len(requests) > 0 {
		o.asked = requests[0].Since
	}
	o.Text = strings.TrimSuffix(fmt.Sprintf("%s is %s: %s", name, o.Event, letter.OneLine(o.Detail, 200)), ": ")
	c.occurred(o)
}

// lookForLimits looks whether with an event the member has reached a limit of tokens or money.
func (c *Commands) lookForLimits(name wire.Name, e *wire.Event, before, now reducer.Figures) {
	if e.Kind == wire.Usage {
		text := fmt.Sprintf("%s has used %s", name, presence.Used(now))
		c.occurred(Occurrence{Event: config.OnUsage, Agent: name, At: e.At, Text: text, Usage: &now, before: before, key: fmt.Sprintf("usage-%d-%d", e.Seq, e.At.UnixNano())})
	}
}

// isFor reports whether a command is to be run for the occurrence.
func (o Occurrence) isFor(on config.On) bool {
	return on.Matches(o.Event) && (o.Usage == nil || on.IsReached(o.before, *o.Usage))
}

// detailOf says in a few words what a state is about: what is asked, the tool, the error.
func detailOf(s *reducer.State) string {
	if requests := s.Requests(); len(requests) > 0 {
		q := ask.Of(requests[0])
		return q.Brief(200)
	}
	return presence.InWords(s.Word(), s.Session().Detail)
}

// lookForOverdue finds the answers that have become overdue since the first look.
func (c *Commands) lookForOverdue(ctx context.Context) {
	agents, _ := c.team.Agents()
	var boxes []*maildir.Box
	for _, name := range agents {
		if slices.ContainsFunc(c.of(name), func(o config.On) bool { return o.Matches(config.OnOverdue) }) {
			boxes = append(boxes, c.team.Box(name))
		}
	}
	items, _ := overdue(ctx, c.team, boxes...) // what it cannot read now it looks at again
	for _, it := range items {
		if key := it.ID + wire.ID(it.by); !c.overdue[key] {
			c.overdue[key] = true
			if c.overdue[""] {
				text := fmt.Sprintf("%s owes %s an answer, due %s: %s", it.by, it.From, letter.Age(time.Now(), it.DueAt), letter.OneLine(it.Title(), 200))
				c.occurred(Occurrence{Event: config.OnOverdue, Agent: it.by, At: time.Now(), Text: text, Message: it.Message, key: "overdue-" + string(it.ID)})
			}
		}
	}
	c.overdue[""] = true
}

func (c *Commands) occurred(o Occurrence) {
	if !slices.ContainsFunc(c.of(o.Agent), o.isFor) {
		return
	}
	o.Team, o.Root, o.At = c.team.Name, c.team.Root().Path, o.At.UTC()
	select {
	case c.queue <- o:
	default:
		c.dropped.Add(1)
	}
}

// run runs the commands for an occurrence, unless another process does.
func (c *Commands) run(o Occurrence) {
	switch err := c.claim(o); {
	case errors.Is(err, fs.ErrExist):
		return
	case err != nil:
		c.report(o, "", err)
		return
	}
	for _, on := range c.of(o.Agent) {
		if o.isFor(on) {
			err := cmp.Or(c.ctx.Err(), c.team.Store.MayAct(c.ctx))
			if err == nil {
				err = c.command(on, o)
			}
			c.report(o, on.Command[0], err)
		}
	}
	if n := c.dropped.Swap(0); n > 0 {
		c.report(o, "", fmt.Errorf("%d more events were dropped, while %d waited for a command", n, maxQueued))
	}
}

// claim notes an occurrence, or returns fs.ErrExist. A line that a kill has left unfinished was of a command that has not
// begun.
func (c *Commands) claim(o Occurrence) error {
	file, older, root := string(o.Agent)+occurredFile, string(o.Agent)+olderClaims, c.team.Dir()
	return c.team.Box(o.Agent).Locked(context.Background(), "reader", func() error {
		data, err := root.ReadFile(file, maxOccurred)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		moved, err := root.Names(older)
		if err != nil {
			return err
		}
		text := string(data)
		if strings.Contains(text, " "+o.key+"\n") || slices.Contains(moved, o.key) {
			return fs.ErrExist
		}
		now := time.Now().UTC()
		var more strings.Builder
		if text != "" && !strings.HasSuffix(text, "\n") {
			more.WriteByte('\n')
		}
		for _, key := range append(moved, o.key) {
			more.WriteString(now.Format(time.RFC3339) + " " + key + "\n")
		}
		if err := noteOccurred(root, file, text, more.String(), now.Add(-forgetOccurred).Format(time.RFC3339)); err != nil {
			return err
		}
		for _, key := range moved {
			if err := root.Remove(older + "/" + key); err != nil {
				return err
			}
		}
		root.Remove(older) // which fails if an older atm has just made another
		return nil
	})
}

// noteOccurred adds lines to a file whose text is known. If half of its lines are older than since, it forgets these.
func noteOccurred(root *durable.Root, file, text, more, since string) error {
	lines := strings.SplitAfter(text, "\n") // the last one is empty
	n := len(lines)
	if lines = slices.DeleteFunc(lines, func(line string) bool { return line < since }); 2*len(lines) < n {
		err := root.Mkdir(path.Dir(file))
		return cmp.Or(err, root.Replace(file, []byte(strings.Join(lines, "")+more), false))
	}
	f, err := root.OpenFile(file, os.O_WRONLY|os.O_APPEND)
	if err != nil {
		return err
	}
	_, err = root.Write(f, []byte(more))
	return cmp.Or(err, f.Close())
}

// command runs a command in the directory that holds the root. What others wrote is on its stdin only.
func (c *Commands) command(on config.On, o Occurrence) error {
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	env := append(slices.Clone(c.env), "ATM_ROOT="+o.Root, "ATM_TEAM="+string(o.Team), "ATM_EVENT="+o.Event, "ATM_MEMBER="+string(o.Agent))
	if o.Usage != nil {
		env = append(env, fmt.Sprint("ATM_TOKENS=", o.Usage.TotalTokens), "ATM_COST="+presence.Money(*o.Usage))
	}
	if link := c.link(o); link != "" {
		env = append(env, "ATM_LINK="+link)
	}
	var said tail
	p, err := process.StartHelper(process.Command{Argv: on.Command, Dir: c.team.WorkDir(""), Env: env, Stdin: append(data, '\n')}, &said)
	if err != nil {
		return err
	}
	select {
	case <-p.Done():
	case <-time.After(on.Deadline()):
		p.Kill()
		return fmt.Errorf("it was ended after %s%s", on.Deadline(), said.quoted())
	case <-c.ctx.Done():
		p.Kill()
		return errors.New("it was ended, because atm ends")
	}
	if p.Exit().Code != 0 {
		return fmt.Errorf("exit code %d%s", p.Exit().Code, said.quoted())
	}
	return nil
}

// report appends an event about a command that failed to the member's log, where watch and events show it.
func (c *Commands) report(o Occurrence, command string, err error) {
	if err == nil {
		return
	}
	e := wire.Event{Source: wire.SourceCLI, Kind: wire.CommandFailed}.With("event", o.Event).With(wire.FieldReason, letter.OneLine(err.Error(), 500))
	if command != "" {
		e = e.With("command", command)
	}
	c.team.Box(o.Agent).Log().Append(context.Background(), e) // there is nowhere else to say it
}

// CatchUp handles the events that a watcher of a member has not brought yet.
func (c *Commands) CatchUp(ctx context.Context, name wire.Name) {
	s := c.states[name]
	if s == nil {
		return
	}
	events := c.team.Box(name).Log().Follow(s.Seq)
	defer events.Close()
	for {
		e, _, err := events.Next()
		if err != nil { // io.EOF
			return
		}
		c.Handle(ctx, watcher.Entry{Address: c.team.Box(name).Address(), Event: &e})
	}
}

// Close gives the queue some seconds, and then ends the command that still runs.
func (c *Commands) Close() {
	close(c.queue)
	select {
	case <-c.ended:
	case <-time.After(commandsEnd):
	}
	c.stop()
	<-c.ended
}

// tail keeps the end of what is written to it.
type tail struct{ bytes.Buffer }

func (t *tail) Write(p []byte) (int, error) {
	t.Buffer.Write(p)
	t.Next(max(0, t.Len()-maxOutput))
	return len(p), nil
}

// quoted is the end of a command's output, behind a colon. Only after its end.
func (t *tail) quoted() string {
	if text := letter.OneLine(t.String(), 300); text != "" {
		return ": " + text
	}
	return ""
}
