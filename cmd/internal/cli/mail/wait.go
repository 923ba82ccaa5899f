package mail

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

var waitCommand = &cli.Command{
	Name: "wait", ArgsUsage: "[AGENT…] [STATE] [D]", Usage: "wait for mail, an answer, an ack, or an agent's state",
	Flags: []cli.Flag{
		cmdline.ListFlag("reply", "an answer to the message `ID`"),
		cmdline.ListFlag("acked", "every recipient's ack of `ID`"),
		cmdline.ListFlag("read", "every recipient has read `ID`"),
		cmdline.ListFlag("idle", "`AGENT` has no open turn and is not blocked"),
		cmdline.ListFlag("busy", "`AGENT` is in a turn"),
		cmdline.ListFlag("turn-done", "the turn of `AGENT|ID` has ended"),
		cmdline.ListFlag("blocked", "`AGENT` asks for a permission or an answer"),
		cmdline.ListFlag("exit", "`AGENT` is off"),
		&cli.BoolFlag{Name: "every", Usage: "wait for all of these, not any; with --reply, for every recipient"},
		cmdline.TimeoutFlag(),
	},
	Action: command.With(app.OpenMeIfGiven, wait),
}

// kinds are the flags that name a condition.
var kinds = []string{"reply", "acked", "read", "idle", "busy", "blocked", "exit", "turn-done"}

func wait(c *cli.Context, s *app.Scope) error {
	if err := setFlagsOfWords(c, s); err != nil {
		return err
	}
	w := app.Wait{Every: c.Bool("every"), Timeout: cmdline.Duration(c, "timeout")}
	for _, kind := range kinds {
		for _, words := range cmdline.List(c, kind) {
			some, needsAll, err := s.Conditions(kind, words, c.Bool("every"))
			if err != nil {
				return err
			}
			w.Conditions, w.Every = append(w.Conditions, some...), w.Every || needsAll
		}
	}
	if len(w.Conditions) == 0 {
		if _, err := s.MemberOrMe(""); err != nil {
			return err
		}
		w.Conditions = []*app.Condition{s.WhenMail()}
	}
	return s.Await(func(ctx context.Context) error {
		met, err := s.Wait(ctx, w)
		if err != nil {
			return err
		}
		var all []match
		text := ""
		for _, m := range met {
			all = append(all, newMatch(m))
			text += m.Kind + ": " + matchText(s, m) + "\n"
		}
		all[0].And = all[1:]
		return command.PrintAs(c, all[0], text)
	})
}

// A match is the JSON of what has met a condition.
type match struct {
	Agent   wire.Name `json:"agent"` // "": several recipients
	Matched string    `json:"matched"`
	Message *message  `json:"message"`
	And     []match   `json:"and,omitempty"` // further conditions that are met
}

func newMatch(m *app.Match) match {
	out := match{Agent: m.Agent, Matched: m.Kind}
	if m.Item != nil {
		out.Message = &message{Item: m.Item}
	}
	return out
}

func matchText(s *app.Scope, m *app.Match) string {
	switch {
	case m.Member != nil:
		return app.JoinFilled(", ", app.InState(*m.Member), m.Member.StateDetail())
	case m.Item == nil:
		return m.Message.Short(6)
	}
	text := command.Renderer(s).Header(m.Item.Message, letter.Flags{})
	if m.Item.Subject != "" {
		text += ", " + letter.Quote(m.Item.Subject, 100)
	}
	if m.Item.State == mailbox.Unread {
		text += "; atm read " + m.Item.ID.Short(6) + s.Given.Flags("", "root", "team", "as")
	}
	return text
}

// setFlagsOfWords sets the flags that words stand for: "bob idle 30s" is --idle bob --timeout 30s.
func setFlagsOfWords(c *cli.Context, s *app.Scope) error {
	var state string
	var names []string
	for _, word := range c.Args().Slice() {
		if _, err := cmdline.ParseDuration(word); err == nil {
			c.Set("timeout", word)
		} else if errors.Is(err, cmdline.ErrNoUnit) && !isID(word) {
			return failure.Usage("%s %w", word, err).WithHint("atm wait %ss", word)
		} else if f := cmdline.LineOf(c).FindFlag("--" + word); f != nil && slices.Contains(kinds, f.Names()[0]) {
			state = f.Names()[0] // also "done"
		} else {
			names = append(names, word)
		}
	}
	name := cmp.Or(strings.Join(names, ","), "NAME")
	if state != "" && name != "NAME" {
		return c.Set(state, name)
	}
	if state == "" && name == "NAME" {
		return nil
	}
	switch state {
	case "":
	case "reply", "acked", "read":
		return needsID(state, "")
	default:
		return failure.Usage("--%s needs the name of an agent, or all", state).WithHint("atm wait --%s NAME; atm team lists them", state)
	}
	hint := "atm wait --idle %s, atm read --wait --from %[1]s, atm wait 30s"
	if isID(name) {
		hint = "atm wait --reply %s, atm wait --acked %[1]s, atm wait --turn-done %[1]s"
	}
	isStranger := func(word string) bool { return !s.IsMember(word) && !isID(word) } // "bob to finish"
	known := cmp.Or(strings.Join(slices.DeleteFunc(names, isStranger), ","), "NAME")
	what := "a state of " + known
	if isID(name) {
		what = "a reply to " + known + ", or an ack"
	}
	return failure.Usage("say what to wait for: %s", what).WithHint(hint, known)
}

// needsID is the error for a word that is not the id that a flag needs.
func needsID(flag, word string) error {
	return failure.Usage("--%s needs the id of a message that you sent, not %q", flag, word).
		WithHint("atm ls --sent shows the ids; any new mail: atm read --wait --from NAME")
}

func isID(word string) bool { return app.IsID(word) }
