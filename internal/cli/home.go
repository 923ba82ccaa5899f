package cli

import (
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

type overview struct {
	Root    string            `json:"root"`
	Team    wire.Name         `json:"team"`
	Agent   wire.Name         `json:"agent,omitempty"`
	Unread  int               `json:"unread"`
	Owed    int               `json:"owed"`
	Pending []policy.Question `json:"pending"`
	Members []teams.Member    `json:"members"`
}

// maxShown is how many messages and questions home shows.
const maxShown = 3

// home is `atm` alone: the state of things in at most fifteen lines.
func home(c *cli.Context) error {
	if c.Bool("version") {
		return versionCommand.Action(c)
	}
	s, missing, err := command.OpenOptional(c)
	if errors.Is(err, rootdir.ErrNoRoot) {
		return printHelp(c, "atm carries mail between coding agents and the people they work with.\n"+
			"No team here yet. `atm init alice bob me` makes one; `atm help` shows the rest.")
	}
	if err != nil {
		return err
	} else if s.Team == nil {
		return missing.WithHint("%s; atm help shows the commands", missing.Hint)
	}
	var b strings.Builder
	o := overview{Root: s.Root.Path, Team: s.Team.Name}
	where := fmt.Sprintf("in team %s (%s)", s.Team.Name, letter.Escape(s.Root.Path))
	if missing != nil {
		fmt.Fprintf(&b, "no name given, %s\n\n%s\n%s; atm primer and atm help explain the rest\n", where, missing.Message, missing.Hint)
	} else {
		fmt.Fprintf(&b, "%s, %s\n\n", s.Me.Agent(), where)
		if err := o.addMail(c, s, &b); err != nil {
			return err
		}
	}
	o.Members, err = s.Team.Members(c.Context)
	if err := command.WarnUnreadable(err); err != nil {
		return err
	}
	questions, _ := s.Team.Pending(c.Context, o.Members) // shows what could be read
	o.Pending = append([]policy.Question{}, questions...)
	if len(questions) > 0 {
		fmt.Fprintf(&b, "%d waiting for an answer: atm pending\n", len(questions))
	}
	for _, q := range questions[:min(maxShown, len(questions))] {
		fmt.Fprintf(&b, "  %s %s\n", q.Agent, letter.Clip(letter.Escape(q.Summary()), 80))
	}
	lines, room := command.Team(o.Members, command.Width()), 13-strings.Count(b.String(), "\n")
	if len(lines) > room {
		lines = append(lines[:room-1], fmt.Sprintf("%d more: atm team", len(o.Members)-room+1))
	}
	return command.PrintAs(c, o, b.String()+"\n"+strings.Join(lines, "\n"))
}

func (o *overview) addMail(c *cli.Context, s *command.Scope, b *strings.Builder) error {
	unread, err := s.Me.Peek(c.Context, mailbox.ReadOptions{Limit: maxShown})
	if err != nil {
		return err
	}
	owed, _ := s.Me.OwedIDs()
	toAnswer, _ := s.Team.Unanswered(c.Context, s.Me, func(it *mailbox.Item) bool { return it.State == mailbox.Done })
	o.Agent, o.Unread, o.Owed = s.Me.Agent(), len(unread.Items)+unread.More, len(owed)
	var mail []string
	for _, it := range unread.Items {
		r := s.Renderer()
		about := command.JoinFilled(", ", r.Who(it.From)+" "+letter.Sent(r.Now, it.Message), command.Notes(r, it))
		mail = append(mail, fmt.Sprintf(`%s "%s"`, about, letter.Clip(letter.Escape(it.Title()), 40)))
	}
	if o.Unread > 0 {
		fmt.Fprintf(b, "%d unread: atm read%s   %s\n", o.Unread, s.Flags(), strings.Join(mail, ", "))
	} else {
		b.WriteString("no new messages; atm help shows the commands\n")
	}
	if owes := command.Counted(o.Owed, "to ack", len(toAnswer), "to answer"); owes != "" {
		fmt.Fprintf(b, "%s: atm ls --owed%s\n", owes, s.Flags())
	}
	return nil
}
