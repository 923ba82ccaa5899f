package mail

import (
	"context"
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
)

var waitCommand = &cli.Command{
	Name: "wait", ArgsUsage: "[AGENT]", Usage: "wait for mail, an answer, an ack, or an agent's state",
	UsageText:   "atm wait --reply 9f3a1c\natm wait --idle bob --timeout 10m",
	Description: "What is already so returns at once. Marks nothing: atm read does.\nExit 4: it did not come in time.",
	Flags: []cli.Flag{
		&cli.StringSliceFlag{Name: "reply", Usage: "an answer to the message `ID`"},
		&cli.StringSliceFlag{Name: "acked", Aliases: []string{"ack"}, Usage: "every recipient's ack of `ID`"},
		&cli.StringSliceFlag{Name: "idle", Usage: "`AGENT` has no open turn and is not blocked"},
		&cli.StringSliceFlag{Name: "busy", Usage: "`AGENT` is in a turn"},
		&cli.StringSliceFlag{Name: "turn-done", Aliases: []string{"done"}, Usage: "the turn of `AGENT|ID` is over"},
		&cli.StringSliceFlag{Name: "blocked", Usage: "`AGENT` asks for a permission or an answer"},
		&cli.StringSliceFlag{Name: "exit", Aliases: []string{"off", "stopped"}, Usage: "`AGENT` is off"},
		&cli.BoolFlag{Name: "every", Aliases: []string{"all"}, Usage: "all of what is named, not any"},
		command.TimeoutFlag(),
		hidden("mail", "message", "messages", "unread"),
		command.Meant("from", "atm read --wait --from NAME"),
	},
	Action: wait,
}

func wait(c *cli.Context) error {
	if name := c.Args().First(); name != "" {
		return command.Usage("wait for what of %s?", letter.Escape(name)).
			WithHint("atm wait --idle %s; atm read --wait --from %s waits for a message", letter.Escape(name), letter.Escape(name))
	}
	s, err := openForWait(c)
	if err != nil {
		return err
	}
	return s.Await(func(ctx context.Context) error {
		conditions, err := conditionsOf(ctx, c, s)
		if err != nil {
			return err
		}
		w, err := newWaiter(ctx, conditions, c.Bool("every"))
		if err != nil {
			return err
		}
		defer w.close()
		w.warn = func(text string) { command.Warn(c, "%s", text) }
		if why := w.watcher.Polling(); why != "" {
			w.warn(why + ": looking every second instead")
		}
		if err := w.wait(ctx, command.Duration(c, "timeout")); err != nil {
			return inVain(s, err)
		}
		for _, met := range w.met {
			if met == nil {
				continue
			}
			if err := command.Print(c, met); err != nil {
				return err
			}
		}
		return nil
	})
}

// inVain completes the hint of a timeout with the flags that were given.
func inVain(s *command.Scope, err error) error {
	var e *command.Error
	if errors.As(err, &e) && e.Code == "timeout" {
		e.Hint += s.Flags()
	}
	return err
}

// openForWait asks for an identity where what is waited for is mine.
func openForWait(c *cli.Context) (*command.Scope, error) {
	named := false
	for _, flag := range []string{"idle", "busy", "turn-done", "blocked", "exit"} {
		named = named || c.IsSet(flag)
	}
	if !named || c.IsSet("reply") || c.IsSet("acked") {
		return command.OpenMe(c)
	}
	return command.OpenMeIfSaid(c)
}

// conditionsOf are what the command line names; mail for me when it names nothing.
func conditionsOf(ctx context.Context, c *cli.Context, s *command.Scope) (out []condition, err error) {
	add := func(flag string, make func(word string) (condition, error)) {
		for _, word := range c.StringSlice(flag) {
			if err != nil {
				return
			}
			var made condition
			if made, err = make(word); err == nil {
				out = append(out, made)
			}
		}
	}
	add("reply", func(word string) (condition, error) {
		it, err := mySent(ctx, s, word)
		if err != nil {
			return nil, err
		}
		return &replyCondition{s: s, id: it.ID}, nil
	})
	add("acked", func(word string) (condition, error) {
		it, err := mySent(ctx, s, word)
		if err != nil {
			return nil, err
		}
		return &ackCondition{s: s, m: it.Message}, nil
	})
	for _, kind := range []string{"idle", "busy", "blocked", "exit"} {
		add(kind, func(word string) (condition, error) { return newStateCondition(ctx, s, kind, word) })
	}
	add("turn-done", func(word string) (condition, error) {
		if s.IsMember(word) {
			return newStateCondition(ctx, s, "turn-done", word)
		}
		return newTurnCondition(ctx, s, word)
	})
	if len(out) == 0 && err == nil {
		out = append(out, &mailCondition{s: s})
	}
	return out, err
}

// mySent is a message that I sent.
func mySent(ctx context.Context, s *command.Scope, word string) (*mailbox.Item, error) {
	it, _, err := s.Find(ctx, word, false)
	if err != nil {
		return nil, err
	}
	if it.From != s.Me.Address() {
		return nil, command.Refused("message %s is from %s, who gets what answers it", it.ID.Short(6), it.From).
			WithHint("atm trace %s tells how far it got", it.ID.Short(6))
	}
	return it, nil
}

func quoted(text string) string { return `"` + letter.Clip(letter.Escape(text), 200) + `"` }
