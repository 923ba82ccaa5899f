package mail

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/cmdline"
	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/cli/failure"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var sendCommand = &cli.Command{
	Name: "send", Aliases: []string{"msg", "message", "tell", "write", "dm", "post", "compose", "sendto", "notify", "ping"}, Args: true,
	ArgsUsage: "TO[,TO…] [TEXT…]", Usage: "send a message",
	UsageText:   "atm send bob \"The parser is done.\" --ack\nmake test 2>&1 | tail -50 | atm send bob,carol -",
	Description: "all: everybody but you. Exit 4: sent, but no answer in time; 6: sent to some recipients only.",
	Flags: append(messageFlags(),
		&cli.StringSliceFlag{Name: "to", Aliases: []string{"recipient", "t"}, Usage: "recipients `TO` as a flag"},
		&cli.BoolFlag{Name: "batch", Usage: "read NDJSON from stdin"},
		&cli.StringSliceFlag{Name: "cc", Aliases: []string{"c", "copy"}, Hidden: true}, hidden("all", "everyone", "broadcast"),
		&cli.StringFlag{Name: "reply-to", Aliases: []string{"in-reply-to", "re"}, Hidden: true},
	),
	Action: command.With(command.OpenToWrite, func(c *cli.Context, s *command.Scope) error {
		if c.Bool("batch") {
			return sendBatch(c, s)
		}
		names, words, err := recipients(c, s)
		if err != nil {
			return err
		}
		o := &teams.Outgoing{All: s.HasAll(names)}
		if o.To, err = s.Addresses(names); err != nil {
			return err
		}
		if c.IsSet("reply-to") {
			parent, _, err := s.Find(c.String("reply-to"))
			if err != nil {
				return err
			}
			o.Parent = parent.Message
		}
		return compose(c, s, o, words)
	}),
}

func messageFlags() []cli.Flag {
	return []cli.Flag{
		command.MessageFlag(),
		&cli.StringFlag{Name: "file", Aliases: []string{"f", "body-file", "message-file", "input"}, Usage: "read the text from `F`"},
		&cli.StringSliceFlag{Name: "attach", Aliases: []string{"attachment", "attachments", "attach-file", "files", "a"}, Usage: "attach file `F`, repeatable"},
		&cli.StringFlag{Name: "subject", Aliases: []string{"s", "title", "summary"}, Usage: "subject `S`"},
		&cli.BoolFlag{Name: "urgent", Aliases: []string{"u", "important", "high", "high-priority", "critical", "interrupt"}, Usage: "may break into a turn"},
		&cli.BoolFlag{Name: "ack", Aliases: []string{"require-ack", "request-ack"}, Usage: "ask for an ack"},
		&cli.BoolFlag{Name: "fyi", Aliases: []string{"no-reply"}, Usage: "no answer wanted"},
		cmdline.DurationFlag("expires", 0, "expires after `D`", "ttl"),
		cmdline.DurationFlag("due", 0, "answer expected within `D`"),
		&cli.StringFlag{Name: "thread", Usage: "in the thread of `ID`"},
		&cli.StringFlag{Name: "supersedes", Usage: "replaces message `ID`"},
		&cli.StringFlag{Name: "id", Usage: "a `UUID`v7, for a safe retry"},
		&cli.StringFlag{Name: "once", Usage: "send once under this `NAME`"},
		&cli.StringFlag{Name: "type", Usage: "message type `T`"},
		&cli.StringFlag{Name: "payload", Usage: "add a `JSON` object"},
		&cli.StringSliceFlag{Name: "meta", Usage: "metadata `K=V`, repeatable"},
		&cli.BoolFlag{Name: "wait-ack", Aliases: []string{"wait-for-ack"}, Usage: "ask for an ack and wait for it"},
		&cli.BoolFlag{Name: "wait-reply", Aliases: []string{"wait", "wait-for-reply", "block", "blocking"}, Usage: "wait for the answer"},
		cmdline.TimeoutFlag(),
		&cli.StringFlag{Name: "priority", Aliases: []string{"p"}, Hidden: true}, hidden("stdin"),
	}
}

var replyCommand = &cli.Command{
	Name: "reply", Aliases: []string{"respond", "answer"}, ArgsUsage: "ID [TEXT…]", Usage: "answer a message, in its thread",
	UsageText:   "atm reply 9f3a1c \"Rebased.\"",
	Description: "A reply counts as the ack and marks the message as read.",
	Flags: append(messageFlags(),
		&cli.BoolFlag{Name: "all", Usage: "to all its recipients as well"},
	),
	Action: command.With(command.OpenToWrite, reply),
}

func reply(c *cli.Context, s *command.Scope) error {
	parent, _, err := s.Find(c.Args().First())
	if err != nil {
		return err
	}
	if text := c.Args().Tail(); len(text) > 1 {
		if _, _, notID := s.Find(text[0]); notID == nil {
			return failure.Usage("a reply answers one message, and %s is another", text[0]).
				WithHint("one atm reply for each; a text that begins with an id: put all of it in quotes")
		}
	}
	if parent.Type == wire.TypePermissionRequest {
		command.Warn(c, "a reply is mail, and answers no question: atm pending")
	}
	to := s.Root.ReplyTo(c.Context, parent.Message, s.Me, c.Bool("all"))
	return compose(c, s, &teams.Outgoing{To: to, Parent: parent.Message}, c.Args().Tail())
}

func compose(c *cli.Context, s *command.Scope, o *teams.Outgoing, words []string) error {
	err := cmdline.NotBoth(c, "fyi wait-reply", "fyi wait-ack", "fyi ack", "fyi due", "file message", "id once")
	if err != nil {
		return err
	}
	if c.IsSet("timeout") && !isAwaited(c) {
		return failure.Usage("--timeout needs a flag that waits").WithHint("--wait-reply --timeout D waits for the answer, --wait-ack for the ack")
	}
	if c.IsSet("expires") && cmdline.Duration(c, "expires") < time.Millisecond {
		return failure.Usage("--expires: the message would expire at once").WithHint("leave it out if it never expires")
	}
	m, err := newMessage(c, s)
	if err == nil {
		m.Body, err = bodyText(c, words)
	}
	if err != nil {
		return err
	}
	o.From, o.Message, o.Person = s.Me, m, command.Person()
	if err = prepare(s, o); err == nil {
		err = attach(c, o)
	}
	if err == nil && c.IsSet("once") {
		err = o.SetIdempotencyKey(c.String("once"))
	}
	if err != nil {
		return err
	}
	return deliver(c, s, o)
}

func newMessage(c *cli.Context, s *command.Scope) (*wire.Message, error) {
	now, priority := time.Now().UTC(), c.String("priority")
	m := &wire.Message{
		SentAt: now, Subject: c.String("subject"), RequiresAck: c.Bool("ack") || c.Bool("wait-ack"),
		Origin: s.Origin(), Type: c.String("type"),
	}
	if c.Bool("urgent") || priority == "urgent" || priority == "high" {
		m.Priority = "urgent"
	}
	if c.Bool("fyi") {
		m.ReplyWanted = "no"
	} else if c.Bool("wait-reply") {
		m.ReplyWanted = "yes"
	}
	for flag, at := range map[string]*time.Time{"expires": &m.ExpiresAt, "due": &m.DueAt} {
		if c.IsSet(flag) {
			*at = now.Add(cmdline.Duration(c, flag))
		}
	}
	return m, cmp.Or(setID(c, s, m), setContent(c, m), setThread(c, s, m))
}

func setID(c *cli.Context, s *command.Scope, m *wire.Message) (err error) {
	if !c.IsSet("id") {
		return nil
	}
	if m.ID, err = wire.ParseID(c.String("id")); err == nil {
		err = teams.CheckID(m.ID)
	}
	if err != nil {
		return failure.Usage("--id: %v", err).WithHint("leave --id out: atm makes one; --once NAME takes any name")
	}
	_, err = findSent(s, string(m.ID))
	if _, isOthers := errors.AsType[*failure.Error](err); isOthers {
		return err
	}
	return nil // a new id, or one that cannot be looked up
}

func setContent(c *cli.Context, m *wire.Message) error {
	if c.IsSet("payload") {
		m.Payload = json.RawMessage(c.String("payload"))
		if _, err := wire.ReadObject(m.Payload); err != nil {
			return failure.Usage("--payload: %v", err).WithHint(`--payload '{"key":"value"}'`)
		}
	}
	var notes wire.Object
	for _, pair := range c.StringSlice("meta") {
		key, value, found := strings.Cut(pair, "=")
		if !found || key == "" || notes.Get(key) != nil || !utf8.ValidString(pair) {
			return failure.Usage("--meta needs K=V in UTF-8, with each K once, not %q", pair).WithHint("for example --meta build=42")
		}
		notes = append(notes, wire.Member{Name: key, Value: wire.Quote(value)})
	}
	if len(notes) > 0 {
		m.Meta = notes.Encode()
	}
	if m.HasOurMeta() {
		return failure.Usage("--meta: names that begin with atm are reserved").WithHint("for example --meta build=42")
	}
	return nil
}

func setThread(c *cli.Context, s *command.Scope, m *wire.Message) error {
	if c.IsSet("supersedes") {
		old, err := findSent(s, c.String("supersedes"))
		if err != nil {
			return err
		}
		m.Supersedes = old.ID
		if c.Command.Name != "reply" { // which is in the thread of what it answers
			m.Thread = old.ThreadID()
		}
	}
	thread, err := threadFlag(c, s)
	m.Thread = cmp.Or(thread, m.Thread)
	return err
}

// findSent finds a message that I sent.
func findSent(s *command.Scope, word string) (*wire.Message, error) {
	it, _, err := s.Find(word)
	if err != nil {
		return nil, err
	}
	if it.From != s.Me.Address() {
		return nil, failure.Refused("message %s is from %s, not from you", it.ID.Short(6), it.From).WithHint("atm ls --sent%s", s.Flags())
	}
	return it.Message, nil
}
