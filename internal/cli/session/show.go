package session

import (
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

var showCommand = &cli.Command{
	Name: "show", Aliases: []string{"cat", "log"}, ArgsUsage: "ID", Usage: "one with its log",
	UsageText: "atm session show bob",
	Flags:     []cli.Flag{&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Value: 50, Usage: "the last `N` of the log (default 50); 0: all that is kept"}},
	Action:    show,
}

// shown is what show prints.
type shown struct {
	Session session `json:"session"`
	limit   int
}

func show(c *cli.Context) error {
	s, one, err := openSession(c)
	if err != nil {
		return err
	}
	if one, err = refresh(c.Context, s, one.SessionID); err != nil {
		return err
	}
	return command.Print(c, shown{session{one, waitingDrafts(c.Context, c, s), true}, c.Int("limit")})
}

func (v shown) String() string {
	var b strings.Builder
	s := v.Session
	fmt.Fprintf(&b, "session %s with %s: %s, %s\n", s.SessionID, s.AgentID, s.State, lived(s.Session))
	fmt.Fprintf(&b, "channel %s", letter.Escape(s.ChannelID))
	if s.GoalID != sessions.NoGoal {
		fmt.Fprintf(&b, ", goal %s", s.GoalID)
	}
	if !s.GoalCompleted().IsZero() {
		fmt.Fprintf(&b, ", complete %s", letter.Age(time.Now(), s.GoalCompleted()))
	}
	b.WriteString("\n")
	for _, d := range s.Drafts() {
		state := "answered"
		if s.waiting[d.ID] {
			state = "waits"
		}
		fmt.Fprintf(&b, "draft %s %s: %s\n", d.ID, state, letter.Clip(letter.Escape(d.Summary), 200))
	}
	entries, all := s.Entries(0)
	// The log is in the order in which things became known.
	entries = slices.Clone(entries)
	slices.SortStableFunc(entries, func(a, b wire.SessionMessage) int { return a.Timestamp.Compare(b.Timestamp) })
	if v.limit > 0 {
		entries = entries[max(len(entries)-v.limit, 0):]
	}
	if before := all - uint64(len(entries)); before > 0 {
		fmt.Fprintf(&b, "… %d before these\n", before)
	}
	for _, m := range entries {
		b.WriteString(entry{m, s.AgentID}.String() + "\n")
	}
	return b.String()
}

// An entry is something that was said, in the log of a session with an agent. Its
// JSON is the vocabulary's.
type entry struct {
	wire.SessionMessage
	agent string
}

func (e entry) MarshalJSON() ([]byte, error) { return wire.Marshal(e.SessionMessage) }

// lineEnds are what a terminal may take for the end of a line.
var lineEnds = strings.NewReplacer("\r\n", "\n    ", "\n", "\n    ", "\r", "\n    ", "\v", "\n    ", "\f", "\n    ",
	"\u0085", "\n    ", "\u2028", "\n    ", "\u2029", "\n    ")

// String is the time, who spoke and the text. Further lines of the text are
// indented, so that none looks like another's.
func (e entry) String() string {
	who := e.Sender
	switch who {
	case sessions.SenderAgent:
		who = e.agent
	case sessions.SenderSystem:
		who = "--"
	}
	text := strings.TrimRight(e.Content, "\r\n")
	if command.Terminal() {
		text = letter.EscapeBody(text)
	}
	return command.Stamp(e.Timestamp) + " " + letter.Escape(who) + ": " + lineEnds.Replace(text)
}
