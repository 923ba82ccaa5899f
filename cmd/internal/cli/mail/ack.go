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
	"github.com/agentteammail/atm/internal/maildir/claim"
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
	found, err := findAllHeld(ctx, s, ids, true)
	if err != nil {
		return err
	}
	acked := s.AckAll(ctx, found, outcome, text)
	lines, err := forEach(s, found, func(i int) (string, error) {
		one, did, err := acked[i].Out, acked[i].Did, acked[i].Err
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

// findAllHeld is findHeld for several words.
func findAllHeld(ctx context.Context, s *app.Scope, ids []string, withFinished bool) (found []app.Held, err error) {
	for _, word := range ids {
		m, err := findHeld(ctx, s, word, withFinished)
		if err != nil {
			return nil, err
		}
		found = append(found, m)
	}
	return found, nil
}

// forEach calls do with the number of each message and returns its lines. A failure does not keep it from the others; the
// error names each.
func forEach(s *app.Scope, found []app.Held, do func(i int) (line string, err error)) (lines string, err error) {
	var failed *failure.Error
	for i, m := range found {
		line, err := do(i)
		if err == nil {
			lines += line + "\n"
			continue
		}
		e := s.Given.Explain(err)
		if short := m.ID.Short(6); len(found) > 1 && !strings.Contains(e.Message, short) {
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

// findHeld finds a message that I hold; withFinished, since an ack may be repeated, also one that I held and have
// finished.
func findHeld(ctx context.Context, s *app.Scope, word string, withFinished bool) (m app.Held, err error) {
	it, box, err := s.Find(word)
	if err != nil {
		return m, err
	}
	me := s.Me.Address()
	from, err := post.FindLease(s.Root, box, it.Message, me) // a box and an error: somebody else took it
	switch {
	case from != nil && err == nil:
		return app.Held{Item: it, Box: from, IsLeased: true}, nil
	case box.Address() == me && it.State != "" && it.Lease == nil:
		return app.Held{Item: it, Box: s.Me}, nil
	case err != nil:
		return m, failure.Refused("%w", err).WithHint("`atm trace %s` says who has it", it.ID.Short(6))
	}
	if withFinished {
		answers := post.AnswersTo(ctx, s.Root, it.Message)
		for _, to := range it.To {
			if box, err := s.Root.Mailbox(to); err == nil && answers.HasFinished(it.Message, to, me) {
				return app.Held{Item: it, Box: box}, nil
			}
		}
	}
	for _, to := range it.To {
		box, err := s.Root.Mailbox(to)
		if err != nil || to.Host != "" {
			continue
		}
		isShared, _ := claim.Shared(box)
		if job, err := box.Get(it.ID); isShared && err == nil && job.State == wire.Unread && job.Lease == nil {
			return m, failure.Refused("nobody has taken %s from %s", it.ID.Short(6), to.Agent).WithHint("`atm take %s`; then ack what it shows", to.Agent)
		}
	}
	return m, failure.Refused("message %s is not in your inbox", it.ID.Short(6)).WithHint("`atm trace %s` shows where it is", it.ID.Short(6))
}
