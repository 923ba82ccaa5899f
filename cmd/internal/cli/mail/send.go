package mail

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var sendCommand = &cli.Command{
	Name: "send", Category: "msg message tell dm post write notify chat talk say compose\nbroadcast everybody everyone announce shout --all    atm send all \"…\"\nforward fwd    atm show ID --raw | atm send NAME -\nedit    atm send NAME \"…\" --supersedes ID\nschedule scheduled remind reminder    atm send NAME \"…\" --at 14:00\n--to --t --recipient --recipients    atm send VALUE \"…\"\n--cc    atm send NAME,VALUE \"…\"\n--priority --important    atm send NAME \"…\" --urgent\n--reply-to    atm reply VALUE \"…\"\n--payload --type --meta --id    a field of a line of atm send --batch\nassign delegate task    atm send NAME \"…\" --ack\nwake nudge poke ping    atm send NAME \"…\" --urgent", Args: true,
	ArgsUsage: "TO[,TO…] [TEXT…]", Usage: "send a message",
	UsageText: `atm send bob "Done."    plain words
atm send bob <<'EOF'    anything with quotes, $ or backticks
EOF
make test 2>&1 | tail -50 | atm send bob,carol -`,
	Description: `all: everybody but you; @reviewers: a group or a role in team.toml.
Exit 4: sent, but no answer in time; 6: sent to some recipients only.
A line of --batch with "once":"NAME" is sent once, however often the batch is run.`,
	Flags: slices.Concat(messageFlags, []cli.Flag{
		command.ChoiceFlag(""),
		&cli.BoolFlag{Name: "batch", Usage: "read NDJSON from stdin"},
		&cli.StringFlag{Name: "at", Usage: "later, at `T`: 14:00"},
		cmdline.DurationFlag("in", 0, "later, in `D`", "delay"),
		cmdline.ListFlag("after", "once `ID` is done", "needs", "depends-on"),
	}),
	Action: command.With(app.OpenToWrite, func(c *cli.Context, s *app.Scope, p *command.Printer) error {
		if c.Bool("batch") {
			return sendBatch(c.Context, s, p, c.NumFlags() == 1 && !c.Args().Present())
		}
		names, words, err := recipients(c, s)
		if err != nil {
			return err
		}
		return send(c, s, p, teams.Message{To: names}, words)
	}),
}

// messageFlags are those of send and reply.
var messageFlags = []cli.Flag{
	command.MessageFlag(),
	&cli.StringFlag{Name: "file", Aliases: []string{"F"}, Category: "body-file", Usage: "the text is in `F`"},
	cmdline.ListFlag("attach", "file `F`, repeatable", "a", "attachment"),
	&cli.StringFlag{Name: "subject", Aliases: []string{"s"}, Category: "title", Usage: "its title `S`"},
	&cli.BoolFlag{Name: "urgent", Aliases: []string{"u"}, Category: "important", Usage: "may end a turn"},
	&cli.BoolFlag{Name: "ack", Category: "require-ack requires-ack ack-required", Usage: "ask for an ack"},
	&cli.BoolFlag{Name: "fyi", Category: "no-reply", Usage: "no answer wanted"},
	cmdline.DurationFlag("expires", 0, "expires after `D`", "ttl"),
	cmdline.DurationFlag("due", 0, "answer due in `D`", "deadline"),
	&cli.StringFlag{Name: "thread", Category: "thread-id", Usage: "in the thread of `ID`"},
	&cli.StringFlag{Name: "supersedes", Category: "replaces", Usage: "replaces message `ID`"},
	&cli.StringFlag{Name: "once", Category: "idempotency-key", Usage: "once under `NAME`"},
	&cli.BoolFlag{Name: "wait-ack", Usage: "wait for an ack"},
	&cli.BoolFlag{Name: "wait-read", Usage: "wait until it is read"},
	&cli.BoolFlag{Name: "wait-reply", Category: "wait wait-for-reply", Usage: "wait for the answer"},
	cmdline.TimeoutFlag(),
}

// recipients splits words into names and text. Names that were typed as several words are refused.
func recipients(c *cli.Context, s *app.Scope) (names, text []string, err error) {
	words := c.Args().Slice()
	if len(words) == 0 || strings.TrimSpace(words[0]) == "" || strings.Contains(words[0], " ") { // a text
		line := *cmdline.LineOf(c)
		line.Words = append([]string{""}, words...)
		return nil, nil, failure.Usage("to whom? members: %s", app.Join(s.Names())).WithCandidates(app.Strings(s.Names())...).
			WithHint("%s", line.Completed("NAME", `"text"`))
	}
	if len(words) > 2 && (words[1] == "and" || s.IsMember(words[1]) || strings.HasSuffix(words[0], ",")) {
		return nil, nil, failure.Usage("is %q a recipient, or text?", words[1]).
			WithHint("`atm send %s,%s \"text\"`: recipients are one word, and a text in quotes is another", strings.TrimSuffix(words[0], ","), strings.Replace(words[1], "and", words[2], 1))
	}
	return words[:1], words[1:], nil
}

// send sends a message to its recipients, or as the answer to its parent.
func send(c *cli.Context, s *app.Scope, p *command.Printer, m teams.Message, words []string) error {
	o := &sendOptions{Message: m}
	if err := o.fill(c, s, words); err != nil {
		return err
	}
	return deliver(c.Context, s, p, o)
}

// sendOptions are a message and what to wait for once it is sent. The flags and words of send and reply fill them, once.
type sendOptions struct {
	teams.Message
	files   []string      // the paths of those that go with it
	at      time.Time     // before which nobody is shown it; zero: it is at once
	waits   []string      // as atm wait calls it: read, acked, reply
	timeout time.Duration // 0: for ever
}

func (o *sendOptions) fill(c *cli.Context, s *app.Scope, words []string) error {
	err := cmdline.NotBoth(c, "fyi wait-reply", "file message", "at in")
	if err != nil {
		return err
	}
	if o.at, err = sendTime(c); err != nil {
		return err
	}
	for _, flag := range [][2]string{{"wait-read", "read"}, {"wait-ack", "acked"}, {"wait-reply", "reply"}} {
		if c.Bool(flag[0]) {
			o.waits = append(o.waits, flag[1])
		}
	}
	o.timeout = cmdline.Duration(c, "timeout")
	o.files = cmdline.List(c, "attach")
	if len(o.waits) > 0 && (!o.at.IsZero() || c.IsSet("after")) {
		return failure.Usage("nothing to wait for: it comes later").WithHint("leave --wait-%s out, and wait with the id: `atm wait --%s ID`", waitFlag(o.waits[0]), o.waits[0])
	}
	if c.IsSet("expires") && cmdline.Duration(c, "expires") < time.Millisecond {
		return failure.Usage("--expires: the message would expire at once").WithHint("leave it out if it never expires")
	}
	if o.Once, err = command.Once(c); err != nil {
		return err
	}
	if o.Content, err = newMessage(c, s, words, o.at); err == nil {
		o.Content.Needs, err = s.FindNeeds(cmdline.List(c, "after"))
	}
	return err
}

func waitFlag(kind string) string {
	if kind == "acked" {
		return "ack"
	}
	return kind
}

// sendTime is the time that --at or --in says; without them it is zero.
func sendTime(c *cli.Context) (time.Time, error) {
	switch {
	case c.IsSet("at"):
		return At(c.String("at"))
	case c.IsSet("in"):
		return In(cmdline.Duration(c, "in"))
	}
	return time.Time{}, nil
}

// At is the time to come that a word says, as "14:00".
func At(word string) (at time.Time, err error) {
	now := time.Now()
	if at, err = cmdline.ParseAt(word, now); err != nil {
		err = failure.Usage("--at: %v", err).WithHint("--at 14:00, --at %s, or --in 2h30m", now.AddDate(0, 0, 1).Format("2006-01-02T15:04"))
	}
	return at, err
}

// In is the time to come after a duration.
func In(d time.Duration) (at time.Time, err error) {
	if at = time.Now().Add(d); d <= 0 || at.Year() > 9999 {
		err = failure.Usage("--in %s is no time to come", d).WithHint("leave it out to send it now; later: --in 2h30m")
	}
	return at, err
}

// newMessage makes a message that nobody is shown before a time; zero: it is at once.
func newMessage(c *cli.Context, s *app.Scope, words []string, at time.Time) (m *wire.Message, err error) {
	d := app.Draft{
		Subject: c.String("subject"), Urgent: c.Bool("urgent"), Ack: c.Bool("ack") || c.Bool("wait-ack"), FYI: c.Bool("fyi"),
		Choices: cmdline.List(c, "choice"), Due: cmdline.Duration(c, "due"), NotBefore: at,
	}
	if d.Text, err = bodyText(c, words); err == nil {
		d.Thread, err = threadFlag(c, s)
	}
	if err != nil {
		return nil, err
	}
	if m, err = d.Message(); err != nil {
		return nil, err
	}
	if c.Bool("wait-reply") {
		m.ReplyWanted = "yes"
	}
	if c.IsSet("expires") {
		m.ExpiresAt = d.Start(m.SentAt).Add(cmdline.Duration(c, "expires"))
	}
	return m, setSuperseded(c, s, m)
}

// bodyText takes the text from --file, --message, the words or stdin. With an attachment it may be empty.
func bodyText(c *cli.Context, words []string) (string, error) {
	file := c.String("file")
	switch {
	case file != "" && len(words) > 0:
		return "", command.TextTwice(words[0])
	case file == "-" || file == "/dev/stdin":
		return command.MessageText(c, []string{"-"})
	case file == "" && len(words) > 0 && c.IsSet("attach") && isFile(words[0]):
		return "", failure.Usage("--attach takes one file, and %s is another", words[0]).
			WithHint("repeat it: --attach %s; if that is the text: --message", policy.Quote(words[0]))
	case file == "":
		text, err := command.MessageText(c, words)
		if c.IsSet("attach") && text == "" && len(words) == 0 && !c.IsSet("message") {
			err = nil
		}
		return text, err
	}
	if err := command.NotPiped(c.App.Reader); err != nil {
		return "", err
	}
	f, err := command.Given(c).OpenFile("--file", file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return "", failure.Usage("--file: %s is a directory", file).WithHint("tar it, and send that: --attach FILE")
	}
	return command.ReadText(f)
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// setSuperseded names the message that this one replaces, in whose thread it is.
func setSuperseded(c *cli.Context, s *app.Scope, m *wire.Message) error {
	if !c.IsSet("supersedes") {
		return nil
	}
	old, err := s.FindSent(c.String("supersedes"))
	if err != nil {
		return err
	}
	if m.Supersedes = old.ID; c.Command.Name != "reply" { // which is in the thread of what it answers
		m.Thread = cmp.Or(m.Thread, old.ThreadID())
	}
	return nil
}
