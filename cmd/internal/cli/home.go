package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/room"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

type overview struct {
	Root    string                  `json:"root"`
	Team    wire.Name               `json:"team"`
	Agent   wire.Name               `json:"agent,omitempty"`
	Unread  int                     `json:"unread"`
	Owed    int                     `json:"owed"`
	Pending []ask.Question          `json:"pending"`
	Overdue []notices.OverdueAnswer `json:"overdue,omitempty"`
	Held    []room.HeldMail         `json:"held,omitempty"`
	Members []presence.Member       `json:"members"`
}

// maxShown is how many messages and questions home shows, and maxSorted from how many it chooses the messages.
const maxShown, maxSorted = 3, 300

// home is `atm` alone: the state of things in at most fifteen lines.
func home(c *cli.Context) error {
	if c.Bool("version") {
		return versionCommand.Action(c)
	}
	p := command.PrinterOf(c)
	s, missing, err := app.OpenOptional(p.Given)
	if _, isGone := errors.AsType[*rootdir.GoneError](err); errors.Is(err, rootdir.ErrNoRoot) && !errors.Is(err, rootdir.ErrUntrusted) && !isGone {
		return printHelp(c, "atm carries mail between coding agents and the people they work with.\n"+
			"No team here yet. `atm init alice bob me` makes one; `atm help` shows the rest.")
	}
	if err == nil && s.Team == nil {
		err = missing.WithHint("%s; `atm help` shows the commands", missing.Hint)
	}
	if err != nil {
		return err
	}
	now, err := room.Open(s).Look(c.Context)
	if err := p.WarnUnreadable(err); err != nil {
		return err
	}
	o, text := overview{Root: s.Root.Path, Team: s.Team.Name}, ""
	where := fmt.Sprintf("in team %s (%s)", s.Team.Name, letter.Escape(s.Root.Path))
	if missing != nil {
		text = fmt.Sprintf("no name given, %s\n\n%s\n%s; atm primer and atm help explain the rest\n", where, missing.Message, missing.Hint.Map(p.Command))
	} else if text, err = o.readMail(c.Context, s, p, now); err != nil {
		return err
	} else {
		text = fmt.Sprintf("%s, %s\n\n%s", o.Agent, where, text)
	}
	o.Members, o.Pending, o.Overdue, o.Held = now.Members, now.Questions(), now.Overdue, now.Held
	waits := now.Waits()
	if answers := len(waits) - len(now.Held); answers > 0 {
		text += fmt.Sprintf("%d waiting for an answer: %s\n", answers, p.Command("atm pending"))
	}
	if len(now.Held) > 0 {
		text += fmt.Sprintf("%s with held mail: %s\n", letter.Many(len(now.Held), "member"), p.Command("atm pending"))
	}
	for _, w := range waits[:min(maxShown, len(waits))] {
		text += "  " + w.Line + "\n"
	}
	lines, most := p.Team(o.Members), max(13-strings.Count(text, "\n"), 6)
	if len(lines) > most {
		lines = append(lines[:most-1], fmt.Sprintf("%d more: %s", len(o.Members)-most+1, p.Command("atm team")))
	}
	return p.PrintAs(o, text+"\n"+strings.Join(lines, "\n"))
}

// readMail adds my mail to the overview, and returns the lines about it. A message that asks a question is shown as that.
func (o *overview) readMail(ctx context.Context, s *app.Scope, p *command.Printer, now *room.Snapshot) (text string, err error) {
	unread, err := inbox.Peek(ctx, s.Me, inbox.ReadOptions{Limit: maxSorted})
	if err != nil {
		return "", err
	}
	owed, _ := s.Me.OwedIDs()
	o.Agent, o.Unread, o.Owed = s.Me.Agent(), len(unread.Items)+unread.More, len(owed)
	text = "no new messages; atm help shows the commands\n"
	if o.Unread > 0 {
		text = fmt.Sprintf("%d unread: %s\n", o.Unread, p.Command("atm read"))
		r := p.RendererFor(s, s.Me)
		mail := slices.DeleteFunc(unread.Items, func(it *wire.Item) bool { return now.Asks(it.ID) })
		room.SortUnread(mail, r.Now)
		for _, it := range mail[:min(maxShown, len(mail))] {
			about := app.JoinFilled(", ", r.Who(it.From)+" "+letter.Sent(r.Now, it.Message), command.NotesText(command.Notes(r, it)))
			room := cmp.Or(p.Width(), 110) - letter.Columns(about)
			text += fmt.Sprintf("  %s %s\n", about, letter.Quote(it.Title(), max(room-6, 20)))
		}
	}
	if o.Owed > 0 {
		text += fmt.Sprintf("%d to ack: %s\n", o.Owed, p.Command("atm ls --owed"))
	}
	return text, nil
}
