package mail

import (
	"cmp"
	"context"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/wire"
)

var ackCommand = &cli.Command{
	Name: "ack", Category: "!\nacknowledge ok\nreact    atm ack ID\ndone complete finish close resolve    atm ack ID --done\ndecline    atm ack ID --declined", ArgsUsage: "ID…", Usage: "I have it and will act on it",
	UsageText: `atm ack 9f3a1c
atm ack 9f3a1c --text "after lunch"
atm ack 9f3a1c --done "merged"`,
	Description: `Acking again changes nothing: exit 0. What came of it may be said later, and changed: the last one
counts, and the sender sees it. An ack also ends your lease on a message (atm take).`,
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "done", Usage: "and it is done"},
		&cli.BoolFlag{Name: "blocked", Usage: "but I cannot go on"},
		&cli.BoolFlag{Name: "declined", Usage: "but I will not do it"},
		&cli.StringFlag{Name: "text", Aliases: []string{"m"}, Category: "note comment", Usage: "add a `TEXT`"},
	},
	Action: command.With(app.OpenToWrite, ack),
}

func ack(c *cli.Context, s *app.Scope, p *command.Printer) (err error) {
	if err := cmdline.NotBoth(c, strings.Join(wire.Outcomes, " ")); err != nil {
		return err
	}
	ids, text, outcome := c.Args().Slice(), c.String("text"), ""
	for _, flag := range wire.Outcomes {
		if c.Bool(flag) {
			outcome = flag
		}
	}
	if last := len(ids) - 1; last > 0 && !app.IsID(ids[last]) && (outcome != "" || strings.Contains(ids[last], " ")) { // ack ID "on it"
		if c.IsSet("text") {
			return command.TextTwice(ids[last])
		}
		ids, text = ids[:last], ids[last]
	}
	if text != "" || c.IsSet("text") {
		if text, err = command.MessageText(c, []string{text}); err != nil {
			return err
		}
	}
	return Ack(c.Context, s, p, ids, outcome, text)
}

// Ack acknowledges messages of mine, and prints what became of that.
func Ack(ctx context.Context, s *app.Scope, p *command.Printer, ids []string, outcome, text string) error {
	all := s.NewOutcome("")
	found, err := findAll(s, ids)
	if err != nil {
		return err
	}
	acked := s.AckAll(ctx, found, outcome, text)
	lines, err := forEach(s, found, func(i int) (string, error) {
		one, did, err := acked[i].Outcome, acked[i].Did, acked[i].Err
		if err != nil {
			return "", err
		}
		warn(p, one)
		all.ID, all.Short = cmp.Or(all.ID, one.ID), cmp.Or(all.Short, one.Short)
		all.Delivered = append(all.Delivered, one.Delivered...)
		if len(ids) > 1 {
			all.Acked = append(all.Acked, one)
		}
		return did, nil
	})
	return p.Confirming().PrintDone(all, lines, err)
}

// findAll finds messages by the words of a command.
func findAll(s *app.Scope, words []string) (ids []wire.ID, err error) {
	for _, word := range words {
		it, _, err := s.Find(word)
		if err != nil {
			return nil, err
		}
		ids = append(ids, it.ID)
	}
	return ids, nil
}

// forEach calls do with the number of each message and returns its lines. A failure does not keep it from the others; the
// error names each.
func forEach(s *app.Scope, found []wire.ID, do func(i int) (line string, err error)) (lines string, err error) {
	var failed *failure.Error
	for i, id := range found {
		line, err := do(i)
		if err == nil {
			lines += line + "\n"
			continue
		}
		e := s.Given.Explain(err)
		if short := id.Short(6); len(found) > 1 && !strings.Contains(e.Message, short) {
			e.Message = short + ": " + e.Message
		}
		if failed == nil {
			failed = e
		} else {
			failed.Message += "; " + e.Message
		}
	}
	if failed == nil {
		return lines, nil
	}
	return lines, failed
}

// findHeld finds a message that I hold.
func findHeld(ctx context.Context, s *app.Scope, word string) (m post.Held, err error) {
	it, box, err := s.Find(word)
	if err != nil {
		return m, err
	}
	return post.FindHeld(ctx, s.Root, s.Me, it, box, false)
}
