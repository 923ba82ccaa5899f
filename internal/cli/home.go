package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/teams/rootdir"
	"github.com/agentteammail/atm/wire"
)

// overview is what `atm` alone shows: what is up, in at most fifteen lines.
type overview struct {
	Root    string            `json:"root"`
	Team    wire.Name         `json:"team"`
	Agent   wire.Name         `json:"agent,omitempty"`
	Unread  int               `json:"unread"`
	Owed    int               `json:"owed"`
	Pending []policy.Question `json:"pending"`
	Members []teams.Member    `json:"members"`

	mail []string
	note string // who I am is not known: what to do about it
}

// most is how many things of a kind are listed.
const most = 3

// home shows what is up.
func home(c *cli.Context) error {
	if c.Bool("version") {
		return versionCommand.Action(c)
	}
	s, err := command.OpenMe(c)
	if errors.Is(err, rootdir.ErrNoRoot) {
		return command.Print(c, command.Text("atm carries mail between coding agents and the people they work with.\n"+
			"No team here yet. `atm init alice bob me` makes one; `atm help` shows the rest."))
	}
	e, ok := errors.AsType[*command.Error](err)
	if err != nil && !(s != nil && s.Team != nil && ok && e.Exit == command.ExitUsage) {
		return err
	}
	o := &overview{Root: s.Root.Path, Team: s.Team.Name, Pending: []policy.Question{}}
	if err != nil {
		o.note = e.Message + "\n" + e.Hint + "; atm help shows the commands\n"
	} else {
		unread, err := s.Me.Peek(c.Context, mailbox.ReadOptions{Limit: most})
		if err != nil {
			return err
		}
		r := s.Renderer()
		owed, _ := s.Me.OwedIDs()
		o.Agent, o.Unread, o.Owed = s.Me.Agent(), len(unread.Items)+unread.More, len(owed)
		for _, it := range unread.Items {
			o.mail = append(o.mail, fmt.Sprintf("%s %s %q", r.Who(it.From), letter.Age(r.Now, it.SentAt), letter.Clip(letter.Escape(it.Title()), 40)))
		}
	}
	if waiting, _ := s.Team.Waiting(c.Context); waiting != nil {
		o.Pending = waiting
	}
	if o.Members, _, err = s.Team.Members(c.Context); err != nil {
		return err
	}
	return command.Print(c, o)
}

func (o *overview) String() string {
	var b strings.Builder
	who := cmp.Or(o.Agent, "nobody yet")
	fmt.Fprintf(&b, "%s, in team %s (%s)\n\n%s", who, o.Team, letter.Escape(o.Root), o.note)
	if o.Unread > 0 {
		fmt.Fprintf(&b, "%d unread: atm read   %s\n", o.Unread, strings.Join(o.mail, ", "))
	} else if o.note == "" {
		b.WriteString("no new messages; atm help shows the commands\n")
	}
	if o.Owed > 0 {
		fmt.Fprintf(&b, "%d await your ack: atm ls --owed\n", o.Owed)
	}
	if len(o.Pending) > 0 {
		fmt.Fprintf(&b, "%d waiting for an answer: atm pending\n", len(o.Pending))
	}
	for _, q := range o.Pending[:min(most, len(o.Pending))] {
		what := letter.FirstLine(q.Prompt+" "+q.Input, 60)
		fmt.Fprintf(&b, "  %s asks: %s   atm approve %s, atm reject %s\n", q.Agent, letter.Escape(what), q.Agent, q.Agent)
	}
	left := 13 - strings.Count(b.String(), "\n")
	return b.String() + "\n" + strings.Join(command.FirstLines(command.Team(o.Members, command.Width()), left), "\n")
}
