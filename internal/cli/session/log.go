package session

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox/letter"
	sessions "github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

var lsCommand = &cli.Command{
	Name: "ls", Aliases: []string{"list"}, Usage: "the sessions that go on",
	UsageText: "atm session ls\natm session ls --all",
	Flags:     []cli.Flag{&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "also those that are over"}},
	Action:    list,
}

var showCommand = &cli.Command{
	Name: "show", Aliases: []string{"cat", "log"}, ArgsUsage: "ID", Usage: "one with its log",
	UsageText: "atm session show bob",
	Flags: []cli.Flag{
		&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Value: 50, Usage: "the last `N` of the log (default 50); 0: all that is kept"},
	},
	Action: with(show),
}

// listing is what ls prints.
type listing struct {
	Sessions []wire.InteractiveSession `json:"sessions"`
	text     string
}

func (l listing) String() string { return l.text }

func list(c *cli.Context) error {
	s, err := command.OpenTeam(c)
	if err != nil {
		return err
	}
	all, bad, err := s.Team.Sessions().List()
	if err != nil {
		return err
	}
	for _, file := range bad {
		command.Warn(c, "%v", file)
	}
	l, over := listing{Sessions: []wire.InteractiveSession{}}, 0
	for _, one := range all {
		if now, err := refresh(c.Context, s, one.SessionID); err == nil {
			one = now
		}
		if !one.State.Alive() && !c.Bool("all") {
			over++
			continue
		}
		one.Messages = nil
		l.Sessions = append(l.Sessions, one.InteractiveSession)
		l.text += line(one) + "\n"
	}
	if over > 0 {
		l.text += fmt.Sprintf("%d over: atm session ls --all", over)
	}
	l.text = cmp.Or(l.text, "no sessions: atm session new --agent NAME")
	return command.Print(c, l)
}

func show(k *call) error {
	one := k.one
	var b strings.Builder
	fmt.Fprintf(&b, "session %s with %s: %s, %s\n", one.SessionID, one.AgentID, one.State, lived(one))
	fmt.Fprintf(&b, "channel %s", letter.Escape(one.ChannelID))
	if one.GoalID != sessions.NoGoal {
		fmt.Fprintf(&b, ", goal %s", one.GoalID)
	}
	b.WriteString("\n")
	entries, all := one.Entries(0)
	// The log is in the order in which things became known.
	slices.SortStableFunc(entries, func(a, b wire.SessionMessage) int { return a.Timestamp.Compare(b.Timestamp) })
	if limit := k.c.Int("limit"); limit > 0 {
		entries = entries[max(len(entries)-limit, 0):]
	}
	if before := all - uint64(len(entries)); before > 0 {
		fmt.Fprintf(&b, "… %d before these\n", before)
	}
	for _, m := range entries {
		b.WriteString(entry{m, one.AgentID}.String() + "\n")
	}
	return command.Print(k.c, resultOf(one, b.String()))
}

// A result is what the verbs about one session print.
type result struct {
	Session wire.InteractiveSession `json:"session"`
	Alive   bool                    `json:"alive"`
	ID      wire.ID                 `json:"id,omitempty"` // of the message that was sent

	text string
}

func (r result) String() string { return r.text }

func resultOf(one *sessions.Session, text string) result {
	return result{Session: one.InteractiveSession, Alive: one.State.Alive(), text: text}
}

// line is a session in a list.
func line(one *sessions.Session) string {
	channel := letter.Clip(letter.Escape(one.ChannelID), 60)
	return fmt.Sprintf("%s  %s  %s  %s  %s", short(one), one.AgentID, one.State, lived(one), channel)
}

func short(one *sessions.Session) string { return wire.ID(one.SessionID).Short(6) }

// lived is how long a session has gone on, or went on until it was over.
func lived(one *sessions.Session) string {
	if one.State.Alive() {
		return one.Elapsed(time.Now())
	}
	return one.Elapsed(one.UpdatedAt)
}

// An entry is one line in the log of a session with an agent.
type entry struct {
	wire.SessionMessage
	agent string
}

// String is the time, who spoke and the text. Further lines of the text are indented, so that none
// looks like another entry.
func (e entry) String() string {
	names := map[string]string{sessions.SenderAgent: e.agent, sessions.SenderSystem: "--"}
	r := letter.Renderer{Terminal: command.Terminal()}
	text, _ := r.Body(e.Content, 0, 0)
	who := letter.Escape(cmp.Or(names[e.Sender], e.Sender))
	return command.Stamp(e.Timestamp) + " " + who + ": " + strings.TrimSpace(string(text))
}
