package agent

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/output"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var askCommand = &cli.Command{
	Name: "ask", Aliases: []string{"prompt"}, ArgsUsage: "NAME [TEXT…]", Usage: "send, wait, and print the answer",
	UsageText: `atm ask bob "Which branch are you on?"`,
	Description: "The answer is a reply, or what the turn that it began has said in the end; stderr says how\n" +
		"long it took. No answer in time: exit 4; the message stays sent. Asked again under the same\n" +
		"--once or --id it is one message: the wait goes on, and a turn that was cut short gets it again.",
	Flags: []cli.Flag{
		&cli.StringFlag{Name: "message", Aliases: []string{"m", "body", "text"}, Usage: "the `TEXT`"},
		&cli.StringFlag{Name: "file", Aliases: []string{"f"}, Usage: "text from the file `F`"},
		&cli.StringFlag{Name: "subject", Aliases: []string{"s"}, Usage: "a subject `S`"},
		&cli.BoolFlag{Name: "urgent", Usage: "may break into a turn"},
		&cli.StringFlag{Name: "id", Usage: "its `UUID`, for a safe retry"},
		&cli.StringFlag{Name: "once", Usage: "the same by a `NAME` of yours"},
		command.TimeoutFlag(),
		command.Meant("wait", "atm ask waits in any case; --timeout 5m says how long"),
	},
	Action: ask,
}

// An answer is what ask prints.
type answer struct {
	ID       wire.ID          `json:"id"`
	Response string           `json:"response"`
	MS       int64            `json:"duration_ms"`
	TurnID   string           `json:"turn_id"`
	Status   string           `json:"status"` // replied, or how the turn ended: completed, interrupted, failed
	Reply    *command.Message `json:"reply,omitempty"`
}

func (a answer) String() string {
	if command.Terminal() {
		return letter.EscapeBody(a.Response)
	}
	return a.Response
}

func ask(c *cli.Context) error {
	s, err := command.OpenMe(c)
	if err != nil {
		return err
	}
	if err := s.MayWrite(); err != nil {
		return err
	}
	box, err := s.Member(c.Args().First())
	if err != nil {
		return err
	}
	if box.Address() == s.Me.Address() {
		return command.Usage("%s is you", s.Me.Agent()).WithHint("members: %s", command.Join(s.Names()))
	}
	o, err := composeQuestion(c, s, box)
	if err != nil {
		return err
	}
	q := &question{c: c, s: s, box: box, outgoing: o}
	err = s.Follow(q.ask) // whoever no longer reads waits for nothing
	if err == nil && !q.answered {
		return command.Exit(command.ExitInterrupted)
	}
	return err
}

// composeQuestion makes the message of the command line.
func composeQuestion(c *cli.Context, s *command.Scope, box *mailbox.Box) (*teams.Outgoing, error) {
	for _, pair := range [][]string{{"id", "once"}, {"file", "message"}} {
		if err := command.NotBoth(c, pair...); err != nil {
			return nil, err
		}
	}
	m := &wire.Message{Subject: c.String("subject"), ReplyWanted: "yes", Origin: s.Origin(), SentAt: time.Now().UTC()}
	if c.Bool("urgent") {
		m.Priority = "urgent"
	}
	var err error
	if c.IsSet("id") {
		if m.ID, err = wire.ParseID(c.String("id")); err == nil {
			err = teams.GivenID(m.ID)
		}
		if err != nil {
			return nil, command.Usage("--id: %v", err).WithHint("leave --id out: atm makes one; --once NAME takes any name")
		}
	}
	if c.IsSet("once") {
		if err := mailbox.CheckKeyName(c.String("once")); err != nil {
			return nil, command.Usage("--once: %v", err).WithHint("--once release-1.4/notes")
		}
	}
	if m.Body, err = questionText(c); err != nil {
		return nil, err
	}
	o := &teams.Outgoing{From: s.Me, To: []wire.Address{box.Address()}, Message: m, Given: c.IsSet("id"), Person: command.Person()}
	if err := s.Root.Prepare(o); err != nil {
		return nil, err
	}
	if len(o.Failed) > 0 {
		return nil, o.Failed[0].Err
	}
	if c.IsSet("once") {
		_, err = o.Once(c.String("once"))
	}
	return o, err
}

func questionText(c *cli.Context) (string, error) {
	words := c.Args().Tail()
	if (c.IsSet("message") || c.IsSet("file")) && len(words) > 0 {
		return "", command.Usage("the text is given twice: as a flag and as %q", letter.Clip(words[0], 40)).WithHint("leave one out")
	}
	if c.IsSet("message") {
		words = []string{c.String("message")}
	}
	if !c.IsSet("file") || c.String("file") == "-" {
		return command.StdinText(c, words)
	}
	f, err := os.Open(c.String("file"))
	if err != nil {
		return "", command.Usage("--file: %v", err).WithHint("--file takes the text from a file")
	}
	defer f.Close()
	return command.ReadText(f)
}

// A question is a message whose answer is waited for.
type question struct {
	c        *cli.Context
	s        *command.Scope
	box      *mailbox.Box
	outgoing *teams.Outgoing
	answered bool
}

func (q *question) ask(ctx context.Context) error {
	limited, cancel := context.WithCancel(ctx)
	timeout := command.Duration(q.c, "timeout")
	if timeout > 0 {
		limited, cancel = context.WithTimeout(ctx, timeout)
	}
	defer cancel()
	differs := false
	r, err := q.s.Root.Ask(limited, q.outgoing, func(r *teams.Response) {
		if differs = r.Known && q.differs(r.ID); differs {
			cancel() // its answer would be none to this
			return
		}
		if r.Again {
			command.Warn(q.c, "%s was cut short and is handed to %s again", r.ID.Short(6), q.box.Agent())
		}
		if r.Reply == nil {
			q.warnAtOnce()
			go q.warnHindered(limited)
		}
	})
	if differs {
		return command.Refused("%s was sent before with another text: what answers it answers that", r.ID.Short(6)).
			WithHint("another --once NAME or --id for this one; atm wait --reply %s%s waits for that answer", r.ID.Short(6), q.s.Flags())
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return q.noAnswer(r.ID, timeout)
	}
	if err != nil {
		return q.explain(r, err)
	}
	q.answered = true
	return q.print(ctx, r)
}

// differs reports whether a message that was sent before has another text.
func (q *question) differs(id wire.ID) bool {
	it, err := q.box.Get(id)
	return err == nil && it.Body != q.outgoing.Message.Body
}

// warnAtOnce says where there is little to hope for.
func (q *question) warnAtOnce() {
	m := q.look()
	switch {
	case m.State == reducer.WordOff, m.State == reducer.WordBlocked, m.State == reducer.WordError:
		command.Warn(q.c, "%s is %s", m.Name, m.Forecast(time.Now(), false))
	case m.State == reducer.WordPerson:
		command.Warn(q.c, "%s is a person, and answers when they read it", m.Name)
	case m.Running && m.Inject == "off":
		command.Warn(q.c, "nothing is typed into %s (inject is off); it reads mail with atm read", m.Name)
	case !m.Running && m.Transport != "hook":
		command.Warn(q.c, "no runner brings mail to %s; it reads mail with atm read", m.Name)
	}
}

// offLooks is how often in a row an agent is found off before that is said: its
// program may be started again.
const offLooks = 3

// warnHindered says, while an answer is waited for, that the agent has come to ask
// something or is off, once each time.
func (q *question) warnHindered(ctx context.Context) {
	was, off := q.look().State, 0
	for sleep(ctx, 500*time.Millisecond) {
		m := q.look()
		if off++; m.State != reducer.WordOff {
			off = 0
		}
		if m.State == was || off > 0 && off < offLooks {
			continue
		}
		was = m.State
		if m.State == reducer.WordOff {
			command.Warn(q.c, "%s is off now; what it has not read waits: %s", m.Name, q.team().RunAgain(m.Name))
		}
		if m.State == reducer.WordBlocked {
			what := m.Forecast(time.Now(), false)
			if asked, _ := q.team().Questions(m.Name); len(asked) > 0 {
				what += " (" + subject(asked[0], 100) + ")"
			}
			command.Warn(q.c, "%s is %s, and goes on when that is answered: atm pending%s", m.Name, what, q.s.Flags())
		}
	}
}

// team is the recipient's, which may be another than mine.
func (q *question) team() *teams.Team {
	t, err := q.s.Root.Team(q.box.Address().Team)
	if err != nil {
		return q.s.Team
	}
	return t
}

// look is what is known of the recipient now.
func (q *question) look() teams.Member {
	m, _ := q.team().Summary(q.box.Agent())
	return m
}

func (q *question) noAnswer(id wire.ID, timeout time.Duration) error {
	short, name := id.Short(6), q.box.Agent()
	e := command.Timeout("sent %s, but no answer from %s within %s", short, name, timeout)
	e.Extra["id"] = id
	if q.look().State == reducer.WordBlocked {
		return e.WithHint("%s waits for an answer itself: atm pending%s", name, q.s.Flags())
	}
	return e.WithHint("not yet: atm wait --reply %s%s, or atm trace %s says what keeps it", short, q.s.Flags(), short)
}

// explain says why there will be no answer.
func (q *question) explain(r *teams.Response, err error) error {
	var ended *teams.EndedError
	var cut *teams.CutShortError
	if errors.As(err, &ended) {
		e := command.Failed("%w", err).WithHint("atm trace %s says what became of the question; asciinema play %s shows the end", r.ID.Short(6), recording(q.box))
		e.Extra = map[string]any{"id": r.ID, "exit": ended.Code}
		return e
	}
	if errors.As(err, &cut) {
		e := command.Failed("%w", err).WithHint("%s", q.showScreen())
		e.Extra = map[string]any{"id": r.ID, "turn_id": r.Turn, "status": r.Status, "duration_ms": r.Took.Milliseconds()}
		return e
	}
	if errors.Is(err, mailbox.ErrWithdrawn) {
		return command.Refused("message %s was withdrawn", r.ID.Short(6)).WithHint("another name, or id, asks anew")
	}
	return err
}

// showScreen is the command that shows the agent's screen, or what was last on it.
func (q *question) showScreen() string {
	if running, err := q.box.Store().Running(q.box.Agent()); err == nil && !running {
		return "atm history " + string(q.box.Agent())
	}
	return "atm screen " + string(q.box.Agent())
}

// print prints the reply, which is read with that, else what the turn said in the
// end. How long it took goes beside it: `$(atm ask …)` is the answer alone.
func (q *question) print(ctx context.Context, r *teams.Response) error {
	a := answer{ID: r.ID, Response: r.Text, MS: r.Took.Milliseconds(), TurnID: r.Turn, Status: r.Status}
	var err error
	if r.Reply != nil {
		a.Reply = &command.Message{Item: r.Reply}
		err = q.printReply(ctx, a)
	} else if r.Text == "" && !q.c.Bool("json") {
		command.Warn(q.c, "the turn of %s is over; nothing tells what it said: %s", q.box.Agent(), q.showScreen())
	} else {
		err = command.Print(q.c, a)
	}
	if !q.c.Bool("json") {
		command.Warn(q.c, "%s after %s", r.Status, r.Took.Round(time.Millisecond))
	}
	return err
}

// replyPatience is how long a reader of the reply is waited for.
const replyPatience = 2 * time.Second

func (q *question) printReply(ctx context.Context, a answer) error {
	text := []byte(a.String() + "\n")
	if q.c.Bool("json") {
		var err error
		if text, err = command.JSON(a); err != nil {
			return err
		}
	}
	batch, err := q.s.Me.Read(ctx, mailbox.ReadOptions{IDs: []wire.ID{a.Reply.ID}}, func(mailbox.Batch) (int, error) {
		return output.Show(ctx, os.Stdout, replyPatience, [][]byte{text})
	})
	if err == nil && batch.Unmarked != nil {
		command.Warn(q.c, "the reply could not be marked as read: %v", batch.Unmarked)
	}
	return err
}
