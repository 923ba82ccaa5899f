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
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/config"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

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
const occurredFile = "/run/occurred"

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
	overdue map[wire.Name][]*wire.Message // whose answers by a member were overdue at the last look; nil: there was none
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
		team: t, of: of, env: env, states: map[wire.Name]*reducer.State{},
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
		c.lookForOverdue(ctx, now)
	}
	if name == "" || len(c.of(name)) == 0 || e.Message == nil && e.Event == nil {
		return
	}
	s := c.states[name]
	if s == nil { // it was added since the start
		s = &reducer.State{}
		c.states[name] = s
	}
	before := viewOf(s)
	if e.Event != nil {
		s.Apply(e.Event)
	}
	after := viewOf(s)
	after.at = time.Now()
	c.queueUp(occurrences(before, after, e))
}

// lookForOverdue finds the answers that have become overdue since the last look. What cannot be read now is found later.
func (c *Commands) lookForOverdue(ctx context.Context, now time.Time) {
	agents, _ := c.team.Agents()
	var boxes []*maildir.Box
	for _, name := range agents {
		if slices.ContainsFunc(c.of(name), func(o config.On) bool { return o.Matches(config.OnOverdue) }) {
			boxes = append(boxes, c.team.Box(name))
		}
	}
	items, _ := overdue(ctx, c.team, boxes...)
	owed := map[wire.Name][]*wire.Message{}
	for _, it := range items {
		owed[it.by] = append(owed[it.by], it.Message)
	}
	for name := range owed {
		if c.overdue != nil {
			c.queueUp(occurrences(view{owed: c.overdue[name]}, view{at: now, owed: owed[name]}, watcher.Entry{Address: c.team.Box(name).Address()}))
		}
	}
	c.overdue = owed
}

// queueUp has the commands for occurrences run, if there are any.
func (c *Commands) queueUp(all []Occurrence) {
	for _, o := range all {
		if !slices.ContainsFunc(c.of(o.Agent), o.isFor) {
			continue
		}
		o.Team, o.Root = c.team.Name, c.team.Root().Path
		select {
		case c.queue <- o:
		default:
			c.dropped.Add(1)
		}
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
	file, root := string(o.Agent)+occurredFile, c.team.Dir()
	return c.team.Box(o.Agent).Locked(context.Background(), "reader", func() error {
		data, err := root.ReadFile(file, maxOccurred)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		text, now := string(data), time.Now().UTC()
		if strings.Contains(text, " "+o.key+"\n") {
			return fs.ErrExist
		}
		line := now.Format(time.RFC3339) + " " + o.key + "\n"
		if text != "" && !strings.HasSuffix(text, "\n") {
			line = "\n" + line
		}
		return noteOccurred(root, file, text, line, now.Add(-forgetOccurred).Format(time.RFC3339))
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
