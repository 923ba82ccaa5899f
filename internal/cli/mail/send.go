package mail

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var sendCommand = &cli.Command{
	Name: "send", Aliases: []string{"msg", "message", "tell", "write", "dm"}, Args: true,
	ArgsUsage: "TO[,TO…] [TEXT…]", Usage: "send a message",
	UsageText:   "atm send bob \"The parser is done.\" --ack\nmake test 2>&1 | tail -50 | atm send bob,carol -",
	Description: "all is everybody but you. Exit 4: sent, but no answer in time; 6: some recipients only.",
	Flags: append(messageFlags(),
		&cli.StringSliceFlag{Name: "to", Aliases: []string{"recipient", "recipients", "t"}, Usage: "recipients `TO` as a flag"},
		&cli.BoolFlag{Name: "batch", Usage: "NDJSON messages on stdin"},
		command.Meant("from", "--as NAME says who you are"),
		&cli.StringSliceFlag{Name: "cc", Hidden: true},
		&cli.BoolFlag{Name: "all", Hidden: true},
		&cli.StringFlag{Name: "reply-to", Aliases: []string{"in-reply-to", "reply", "re"}, Hidden: true},
	),
	Action: send,
}

// messageFlags are the flags of send and reply.
func messageFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "message", Aliases: []string{"m", "body", "text", "content", "msg"}, Usage: "`TEXT` as a flag"},
		&cli.StringFlag{Name: "file", Aliases: []string{"f", "body-file"}, Usage: "text from file `F`"},
		&cli.StringSliceFlag{Name: "attach", Aliases: []string{"attachment", "a"}, Usage: "attach file `F`, repeatable"},
		&cli.StringFlag{Name: "subject", Aliases: []string{"s", "title"}, Usage: "subject `S`"},
		&cli.BoolFlag{Name: "urgent", Aliases: []string{"u", "important"}, Usage: "may break into a turn"},
		&cli.BoolFlag{Name: "ack", Aliases: []string{"require-ack", "request-ack", "requires-ack"}, Usage: "asks for an ack"},
		&cli.BoolFlag{Name: "fyi", Aliases: []string{"no-reply"}, Usage: "no answer wanted"},
		command.DurationFlag("expires", 0, "worth nothing after `D`"),
		command.DurationFlag("due", 0, "answer expected within `D`"),
		&cli.StringFlag{Name: "thread", Usage: "in the thread of `ID`"},
		&cli.StringFlag{Name: "supersedes", Usage: "replaces message `ID`"},
		&cli.StringFlag{Name: "id", Usage: "its `UUID`, for a safe retry"},
		&cli.StringFlag{Name: "once", Usage: "the same by `NAME` of yours"},
		&cli.StringFlag{Name: "type", Usage: "type `T`"},
		&cli.StringFlag{Name: "payload", Usage: "content, a `JSON` object"},
		&cli.StringSliceFlag{Name: "meta", Usage: "note `K=V`, repeatable"},
		&cli.BoolFlag{Name: "wait-ack", Usage: "asks for an ack and waits"},
		&cli.BoolFlag{Name: "wait-reply", Aliases: []string{"wait-answer"}, Usage: "waits for the answer"},
		command.TimeoutFlag(),
		&cli.BoolFlag{Name: "stdin", Hidden: true},
		command.Meant("wait", "--wait-reply 30s waits for the answer, --wait-ack 30s for the ack"),
		&cli.StringFlag{Name: "priority", Hidden: true},
		command.Meant("dry-run", "atm send has no trial run; atm withdraw ID takes back what is unread"),
	}
}

func send(c *cli.Context) error {
	s, err := openToWrite(c)
	if err != nil {
		return err
	}
	if c.Bool("batch") {
		return sendBatch(c, s)
	}
	to, words, err := recipients(c, s)
	if err != nil {
		return err
	}
	m, err := compose(c, s, words)
	if err != nil {
		return err
	}
	o := &teams.Outgoing{From: s.Me, To: to, Message: m, Given: c.IsSet("id"), Person: command.Person()}
	if c.IsSet("reply-to") {
		parent, _, err := s.Find(c.Context, c.String("reply-to"), false)
		if err != nil {
			return err
		}
		o.Parent = parent.Message
	}
	return deliver(c, s, o)
}

// recipients takes the recipients off the words.
func recipients(c *cli.Context, s *command.Scope) (to []wire.Address, words []string, err error) {
	words = c.Args().Slice()
	named := append(c.StringSlice("to"), c.StringSlice("cc")...)
	if c.Bool("all") {
		named = []string{"all"}
	}
	if len(c.StringSlice("to")) > 0 || c.Bool("all") {
		to, err = addresses(s, strings.Join(named, ","))
		return to, words, err
	}
	if len(words) > 1 && words[0] == "to" && !s.IsMember("to") {
		words = words[1:] // send to bob "…"
	}
	if len(words) == 0 {
		return nil, nil, toWhom(s)
	}
	first := words[0]
	words = words[1:]
	if repaired := splitRecipients(s, first, words); repaired != "" {
		return nil, nil, command.Usage("several recipients are one word, with commas and no blanks").WithHint("%s", repaired)
	}
	if name, text, found := strings.Cut(first, " "); found && len(words) == 0 && s.IsMember(strings.TrimRight(name, ",:")) {
		return nil, nil, command.Usage("the recipient and the text are two words").
			WithHint("atm send %s %q", strings.TrimRight(name, ",:"), text)
	}
	named = append([]string{strings.TrimSuffix(first, ":")}, named...)
	to, err = addresses(s, strings.Join(named, ","))
	return to, words, err
}

func toWhom(s *command.Scope) error {
	names := s.Names()
	return command.Usage("to whom? members: %s", command.Join(names)).
		WithHint("atm send NAME \"text\"").WithCandidates(command.Strings(names)...)
}

// splitRecipients is the repaired command where the recipients were typed as
// several words, "" where they were not: `bob, carol hello`, `bob carol hello`,
// `bob and carol hello`.
func splitRecipients(s *command.Scope, first string, words []string) string {
	names := []string{first}
	rest := words
	for len(rest) > 0 {
		word := strings.Trim(rest[0], ",")
		commas := strings.HasSuffix(names[len(names)-1], ",") || strings.HasPrefix(rest[0], ",")
		if (word == "and" || word == "&" || word == "") && len(rest) > 1 && s.IsMember(strings.Trim(rest[1], ",")) {
			names = append(names, rest[1])
			rest = rest[2:]
			continue
		}
		// A member's name alone may well be the text.
		if !commas && !(len(rest) > 1 && s.IsMember(word)) || word == "" || strings.Contains(word, " ") {
			break
		}
		names = append(names, rest[0])
		rest = rest[1:]
	}
	all := strings.FieldsFunc(strings.Join(names, ","), func(r rune) bool { return r == ',' })
	tidy := strings.Join(all, ",")
	if tidy == first || tidy == "" {
		return ""
	}
	text := "…"
	if len(rest) > 0 {
		text = strings.Join(rest, " ")
	}
	return "atm send " + tidy + " \"" + text + "\"" + s.Flags()
}

// addresses reads names with commas between; all is everybody but me.
func addresses(s *command.Scope, list string) (to []wire.Address, err error) {
	for _, name := range strings.Split(list, ",") {
		name = strings.TrimPrefix(strings.TrimSpace(name), "@")
		if name == "" {
			return nil, toWhom(s)
		}
		if slices.Contains([]string{"all", "everyone", "everybody"}, name) && !s.IsMember(name) {
			everybody, err := allButMe(s)
			if err != nil {
				return nil, err
			}
			to = append(to, everybody...)
			continue
		}
		a, err := wire.ParseAddress(name, s.Team.Name)
		if err != nil {
			e := command.Usage("recipient: %v", err).WithHint("members: %s", command.Join(s.Names()))
			if near, ok := command.Nearest(name, command.Strings(s.Names())); ok {
				e.WithHint("did you mean %q? members: %s", near, command.Join(s.Names()))
			}
			return nil, e
		}
		to = append(to, a)
	}
	return to, nil
}

func allButMe(s *command.Scope) (to []wire.Address, err error) {
	members, err := s.Team.Agents()
	if err != nil {
		return nil, err
	}
	for _, n := range members {
		if n != s.Me.Agent() {
			to = append(to, wire.Address{Agent: n, Team: s.Team.Name})
		}
	}
	if len(to) == 0 {
		return nil, command.Usage("there is nobody but you in team %q", s.Team.Name).WithHint("atm team add NAME")
	}
	return to, nil
}

// compose makes the message of flags and words.
func compose(c *cli.Context, s *command.Scope, words []string) (*wire.Message, error) {
	for _, pair := range [][]string{{"fyi", "wait-reply"}, {"fyi", "ack"}, {"fyi", "wait-ack"}, {"fyi", "due"}, {"file", "message", "stdin"}, {"id", "once"}} {
		if err := command.NotBoth(c, pair...); err != nil {
			return nil, err
		}
	}
	now := time.Now().UTC()
	m := &wire.Message{
		SentAt: now, Subject: c.String("subject"), RequiresAck: c.Bool("ack") || c.Bool("wait-ack"),
		Origin: s.Origin(), Type: c.String("type"),
	}
	if m.Type == wire.TypeMessage {
		m.Type = ""
	}
	switch c.String("priority") {
	case "", "normal", "low":
	case "urgent", "high":
		m.Priority = "urgent"
	default:
		return nil, command.Usage("--priority %q", c.String("priority")).WithHint("--urgent, or nothing")
	}
	if c.Bool("urgent") {
		m.Priority = "urgent"
	}
	if c.Bool("fyi") {
		m.ReplyWanted = "no"
	}
	if c.Bool("wait-reply") {
		m.ReplyWanted = "yes"
	}
	if c.IsSet("expires") {
		m.ExpiresAt = now.Add(command.Duration(c, "expires"))
	}
	if c.IsSet("due") {
		m.DueAt = now.Add(command.Duration(c, "due"))
	}
	for _, fill := range []func(*cli.Context, *wire.Message) error{givenID, payload, meta} {
		if err := fill(c, m); err != nil {
			return nil, err
		}
	}
	var err error
	if m.Body, err = bodyText(c, words); err != nil {
		return nil, err
	}
	return m, refer(c, s, m)
}

// givenID is the id that --id brings. It checks the name that --once brings, too.
func givenID(c *cli.Context, m *wire.Message) error {
	if c.IsSet("once") {
		if err := mailbox.CheckKeyName(c.String("once")); err != nil {
			return command.Usage("--once: %v", err).WithHint("--once release-1.4/notes")
		}
	}
	if !c.IsSet("id") {
		return nil
	}
	id, err := wire.ParseID(c.String("id"))
	if err == nil {
		err = teams.GivenID(id)
	}
	if err != nil {
		return command.Usage("--id: %v", err).WithHint("leave --id out: atm makes one; --once NAME takes any name")
	}
	m.ID = id
	return nil
}

func payload(c *cli.Context, m *wire.Message) error {
	if !c.IsSet("payload") {
		return nil
	}
	raw := json.RawMessage(c.String("payload"))
	if _, err := wire.ReadObject(raw); err != nil {
		return command.Usage("--payload is not a JSON object: %v", err).WithHint(`--payload '{"key":"value"}'`)
	}
	m.Payload = raw
	return nil
}

func meta(c *cli.Context, m *wire.Message) error {
	var facts wire.Object
	for _, pair := range c.StringSlice("meta") {
		key, value, found := strings.Cut(pair, "=")
		if !found || key == "" {
			return command.Usage("--meta needs K=V, not %q", pair).WithHint("for example --meta build=42")
		}
		if key == "atm" {
			return command.Usage("--meta atm is ours").WithHint("take another key")
		}
		if !utf8.ValidString(pair) {
			return command.Usage("--meta is not UTF-8").WithHint("--attach FILE takes any bytes")
		}
		facts = append(facts, wire.Member{Name: key, Value: wire.Quote(value)})
	}
	if len(facts) == 0 {
		return nil
	}
	var err error
	m.Meta, err = facts.MarshalJSON()
	return err
}

// bodyText is the message's text, from wherever it is given.
func bodyText(c *cli.Context, words []string) (string, error) {
	for _, flag := range []string{"message", "file", "stdin"} {
		if c.IsSet(flag) && len(words) > 0 {
			return "", command.Usage("--%s and text contradict each other", flag).WithHint("leave one out")
		}
	}
	switch {
	case c.IsSet("message"):
		return command.StdinText(c, []string{c.String("message")})
	case c.Bool("stdin"), c.String("file") == "-":
		return command.StdinText(c, []string{"-"})
	case c.IsSet("file"):
		return fileText(c.String("file"))
	case len(words) == 0 && (c.IsSet("payload") || c.IsSet("attach")):
		return "", nil
	}
	return command.StdinText(c, words)
}

func fileText(name string) (string, error) {
	const hint = "--file takes the text from a file, --attach FILE sends one"
	f, err := os.Open(name)
	if err != nil {
		return "", command.Usage("--file: %v", err).WithHint(hint)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return "", command.Usage("--file: %s is a directory", name).WithHint(hint)
	}
	return command.ReadText(f)
}

// refer resolves the ids that the message quotes.
func refer(c *cli.Context, s *command.Scope, m *wire.Message) error {
	if c.IsSet("thread") {
		it, _, err := s.Find(c.Context, c.String("thread"), false)
		if err != nil {
			return err
		}
		m.Thread = it.ThreadID()
	}
	if !c.IsSet("supersedes") {
		return nil
	}
	it, _, err := s.Find(c.Context, c.String("supersedes"), false)
	if err != nil {
		return err
	}
	if it.From != s.Me.Address() {
		return command.Refused("message %s is not yours to replace", it.ID.Short(6)).
			WithHint("atm reply %s \"…\"%s", it.ID.Short(6), s.Flags())
	}
	m.Supersedes = it.ID
	if m.Thread == "" {
		m.Thread = it.ThreadID()
	}
	return nil
}

// attach stores the files, in the team of each recipient.
func attach(c *cli.Context, o *teams.Outgoing) error {
	for _, name := range c.StringSlice("attach") {
		stored := map[*mailbox.Store]bool{}
		for _, box := range o.Post.To {
			if stored[box.Store()] {
				continue
			}
			f, err := os.Open(name)
			if err != nil {
				return command.Usage("--attach: %v", err).WithHint("--attach FILE")
			}
			a, err := box.Store().Attach(filepath.Base(name), f)
			f.Close()
			if err != nil {
				return err
			}
			if len(stored) == 0 {
				o.Message.Attachments = append(o.Message.Attachments, a)
			}
			stored[box.Store()] = true
		}
	}
	return nil
}

// checkAttachments refuses what cannot be attached, before anything is written.
func checkAttachments(c *cli.Context) error {
	for _, name := range c.StringSlice("attach") {
		info, err := os.Stat(name)
		if err != nil {
			return command.Usage("--attach: %v", err).WithHint("--attach FILE")
		}
		if !info.Mode().IsRegular() {
			return command.Usage("--attach: %s is not a regular file", name).WithHint("tar cf FILE.tar %s", name)
		}
	}
	return nil
}
