package session

import (
	"context"
	"fmt"
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

// A session is one in JSON: as it is on disk, and what is made of that. In text it
// is a line.
type session struct {
	*sessions.Session
	waiting map[wire.UUID]bool // drafts that have no answer
	log     bool               // its JSON has the messages
}

// MarshalJSON puts what is made of a session behind its own fields.
func (d session) MarshalJSON() ([]byte, error) {
	plain := d.InteractiveSession
	if !d.log {
		plain.Messages = nil
	}
	own, err := wire.Marshal(plain)
	if err != nil {
		return nil, err
	}
	more := struct {
		Alive   bool        `json:"alive"`
		Elapsed string      `json:"elapsed"`
		Count   uint64      `json:"message_count"`
		Waiting []wire.UUID `json:"waiting_drafts"`
	}{Alive: d.State.Alive(), Elapsed: lived(d.Session), Waiting: d.waitingDrafts()}
	_, more.Count = d.Entries(0)
	made, err := command.JSON(more)
	if err != nil {
		return nil, err
	}
	return wire.Join(own, made)
}

func (d session) waitingDrafts() []wire.UUID {
	ids := []wire.UUID{}
	for _, id := range d.DraftIDs {
		if d.waiting[id] {
			ids = append(ids, id)
		}
	}
	return ids
}

func (d session) String() string {
	line := fmt.Sprintf("%s  %s  %s  %s  %s", wire.ID(d.SessionID).Short(6), d.AgentID, d.State, lived(d.Session), letter.Clip(letter.Escape(d.ChannelID), 60))
	switch n := len(d.waitingDrafts()); n {
	case 0:
		return line
	case 1:
		return line + "  1 draft waits"
	default:
		return line + fmt.Sprintf("  %d drafts wait", n)
	}
}

// lived is how long a session has gone on, or went on until it was over.
func lived(s *sessions.Session) string {
	if s.State.Alive() {
		return s.Elapsed(time.Now())
	}
	return s.Elapsed(s.UpdatedAt)
}

// listing is what ls prints.
type listing struct {
	Sessions []session `json:"sessions"`
	over     int       // that are not listed
}

func (l listing) String() string {
	var b strings.Builder
	for _, one := range l.Sessions {
		b.WriteString(one.String() + "\n")
	}
	if l.over > 0 {
		fmt.Fprintf(&b, "%d over: atm session ls --all\n", l.over)
	} else if len(l.Sessions) == 0 {
		b.WriteString("no sessions: atm session new --agent NAME\n")
	}
	return b.String()
}

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
	l := listing{Sessions: []session{}}
	waiting := waitingDrafts(c.Context, c, s)
	for _, one := range all {
		if one.State.Alive() {
			if now, err := refresh(c.Context, s, one.SessionID); err == nil {
				one = now
			}
		}
		if !one.State.Alive() && !c.Bool("all") {
			l.over++
			continue
		}
		l.Sessions = append(l.Sessions, session{Session: one, waiting: waiting})
	}
	return command.Print(c, l)
}

// waitingDrafts are the drafts of the team that have no answer yet, by their ids.
func waitingDrafts(ctx context.Context, c *cli.Context, s *command.Scope) map[wire.UUID]bool {
	drafts, err := s.Team.Drafts(ctx)
	if err != nil {
		command.Warn(c, "%v", err)
	}
	out := map[wire.UUID]bool{}
	for _, d := range drafts {
		out[d.ID] = d.Answer == nil
	}
	return out
}
