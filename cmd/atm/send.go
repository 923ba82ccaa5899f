package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var letterFlags = []cmdline.Flag{
	{Name: "message", Aliases: []string{"m", "body"}, Kind: cmdline.String, Arg: "TEXT", Usage: "the text"},
	{Name: "file", Kind: cmdline.String, Arg: "F", Usage: "text from a file"},
	{Name: "attach", Kind: cmdline.Strings, Arg: "F", Usage: "attach a file, repeatable"},
	{Name: "subject", Kind: cmdline.String, Arg: "S", Usage: "a subject"},
	{Name: "urgent", Usage: "may interrupt a turn"},
	{Name: "ack", Usage: "asks for an ack"},
	{Name: "fyi", Usage: "no answer wanted"},
	{Name: "expires", Kind: cmdline.Duration, Arg: "D", Usage: "worthless after that"},
	{Name: "due", Kind: cmdline.Duration, Arg: "D", Usage: "answer expected by then"},
	{Name: "thread", Kind: cmdline.String, Arg: "ID", Usage: "put it into a thread"},
	{Name: "supersedes", Kind: cmdline.String, Arg: "ID", Usage: "replaces that one"},
	{Name: "id", Kind: cmdline.String, Arg: "UUID", Usage: "for a safe retry"},
	{Name: "once", Kind: cmdline.String, Arg: "NAME", Usage: "the same by a name of yours"},
	{Name: "type", Kind: cmdline.String, Arg: "T", Usage: "a type of message"},
	{Name: "payload", Kind: cmdline.String, Arg: "JSON", Usage: "its typed content"},
	{Name: "meta", Kind: cmdline.Pairs, Arg: "K=V", Usage: "note a fact, repeatable"},
	{Name: "dry-run", Usage: "check, send nothing"},
	{Name: "wait-ack", Usage: "asks, waits for the ack"},
	{Name: "wait-reply", Usage: "waits for the answer"},
	{Name: "timeout", Kind: cmdline.Duration, Arg: "D", Default: "90s", Usage: "of waiting, 0: for ever"},
}

var sendVerb = &cmdline.Verb{
	Name: "send", Aliases: []string{"msg"}, Args: "TO[,TO…] [TEXT…]", Summary: "send a message",
	Examples: []string{`atm send bob "The parser is done." --ack`, `make test 2>&1 | tail -50 | atm send bob,carol -`},
	Notes:    []string{"all is everybody but you. Exit 4: sent, but waited in vain; 6: some recipients only."},
	Common:   letterFlags,
	Flags: []cmdline.Flag{
		{Name: "to", Kind: cmdline.Strings, Arg: "TO", Usage: "recipients, as a flag"},
		{Name: "batch", Usage: "NDJSON on stdin"},
	},
	MaxArgs: -1,
	Run:     run(send),
}

var replyVerb = &cmdline.Verb{
	Name: "reply", Args: "ID [TEXT…]", Summary: "answer a message, in its thread",
	Examples: []string{`atm reply 9f3a1c "Rebased."`},
	Notes:    []string{"Answering what wants an ack is the ack; answering unread mail reads it."},
	Common:   letterFlags,
	Flags:    []cmdline.Flag{{Name: "all", Usage: "to every recipient as well"}},
	MinArgs:  1, MaxArgs: -1,
	Run: run(reply),
}

func send(ctx context.Context, e *env) error {
	if err := e.who(); err != nil {
		return err
	}
	if err := e.mine(); err != nil {
		return err
	}
	if e.Bool("batch") {
		return e.interruptible(ctx, e.batch)
	}
	to, words, err := e.recipients()
	if err != nil {
		return err
	}
	m, err := e.compose(words)
	if err != nil {
		return err
	}
	return e.dispatch(ctx, &teams.Outgoing{From: e.me, To: to, Message: m, Given: e.Given("id"), Person: e.person()})
}

func reply(ctx context.Context, e *env) error {
	if err := e.who(); err != nil {
		return err
	}
	if err := e.mine(); err != nil {
		return err
	}
	parent, _, err := e.find(ctx, e.Args[0], false)
	if err != nil {
		return err
	}
	m, err := e.compose(e.Args[1:])
	if err != nil {
		return err
	}
	o := &teams.Outgoing{
		From: e.me, To: teams.ReplyTo(parent.Message, e.me.Address(), e.Bool("all")), Message: m,
		Given: e.Given("id"), Parent: parent.Message, Person: e.person(),
	}
	if parent.From.Agent == "drop" {
		return cmdline.NotFound("message %s was dropped as a file: there is nobody to answer", parent.ID.Short(6)).WithHint("atm send NAME …")
	}
	return e.dispatch(ctx, o)
}

// recipients takes the recipients off the words.
func (e *env) recipients() (to []wire.Address, words []string, err error) {
	words = e.Args
	named := e.Strings("to")
	if len(named) == 0 {
		if len(words) == 0 {
			return nil, nil, cmdline.Usage("to whom? members: %s", join(e.memberNames())).WithHint(`atm send NAME "text"`).WithCandidates(strs(e.memberNames())...)
		}
		named, words = words[:1], words[1:]
		if len(words) > 1 && !strings.Contains(words[0], " ") && slices.Contains(e.memberNames(), wire.Name(words[0])) {
			return nil, nil, cmdline.Usage("%q is a member: several recipients are one word", words[0]).
				WithHint(`atm send %s,%s "…"`, named[0], words[0])
		}
	}
	to, err = e.addresses(named)
	return to, words, err
}

// addresses reads names, with commas among them; all is everybody but me.
func (e *env) addresses(named []string) (to []wire.Address, err error) {
	for _, part := range strings.Split(strings.Join(named, ","), ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		if part == "all" {
			members, err := e.team.Agents()
			if err != nil {
				return nil, err
			}
			for _, n := range members {
				if n != e.me.Agent() {
					to = append(to, wire.Address{Agent: n, Team: e.team.Name})
				}
			}
			if len(to) == 0 {
				return nil, cmdline.Usage("there is nobody but you in team %q", e.team.Name).WithHint("atm team add NAME")
			}
			continue
		}
		a, err := wire.ParseAddress(part, e.team.Name)
		if err != nil {
			return nil, cmdline.Usage("recipient: %v", err).WithHint("members: %s", join(e.memberNames()))
		}
		to = append(to, a)
	}
	if len(to) == 0 {
		return nil, cmdline.Usage("to whom? members: %s", join(e.memberNames())).WithHint(`atm send NAME "text"`)
	}
	return to, nil
}

// compose makes the message of flags and words.
func (e *env) compose(words []string) (*wire.Message, error) {
	for _, pair := range [][]string{{"fyi", "wait-reply"}, {"fyi", "ack"}, {"fyi", "wait-ack"}, {"fyi", "due"}, {"file", "message"}, {"id", "once"}} {
		if err := e.NotBoth(pair...); err != nil {
			return nil, err
		}
	}
	m := &wire.Message{
		Subject: e.String("subject"), RequiresAck: e.Bool("ack") || e.Bool("wait-ack"), Origin: e.origin(), Type: e.String("type"),
	}
	now := time.Now().UTC()
	m.SentAt = now
	if e.Bool("urgent") {
		m.Priority = "urgent"
	}
	if e.Bool("fyi") {
		m.ReplyWanted = "no"
	}
	if e.Bool("wait-reply") {
		m.ReplyWanted = "yes"
	}
	if e.Given("expires") {
		m.ExpiresAt = now.Add(e.Duration("expires"))
	}
	if e.Given("due") {
		m.DueAt = now.Add(e.Duration("due"))
	}
	id, err := e.ownID()
	if err != nil {
		return nil, err
	}
	m.ID = id
	if m.Type == wire.TypeMessage {
		m.Type = ""
	}
	if e.Given("payload") {
		raw := json.RawMessage(e.String("payload"))
		if _, err := wire.ReadObject(raw); err != nil {
			return nil, cmdline.Usage("--payload is no JSON object: %v", err).WithHint(`--payload '{"key":"value"}'`)
		}
		m.Payload = raw
	}
	if pairs := e.Pairs("meta"); len(pairs) > 0 {
		var meta wire.Object
		for _, p := range pairs {
			if p[0] == "atm" {
				return nil, cmdline.Usage("--meta atm is ours").WithHint("take another key")
			}
			if !utf8.ValidString(p[0] + p[1]) {
				return nil, cmdline.Usage("--meta is not UTF-8")
			}
			meta = append(meta, wire.Member{Name: p[0], Value: wire.Quote(p[1])})
		}
		if m.Meta, err = meta.MarshalJSON(); err != nil {
			return nil, err
		}
	}
	if m.Body, err = e.text(words); err != nil {
		return nil, err
	}
	return m, e.refer(m)
}

// ownID is the id that --id brings, "" where there is none. It checks the name
// that --once brings, too.
func (e *env) ownID() (id wire.ID, err error) {
	if e.Given("once") {
		if err := mailbox.CheckKeyName(e.String("once")); err != nil {
			return "", cmdline.Usage("--once: %v", err).WithHint("--once release-1.4/notes")
		}
	}
	if !e.Given("id") {
		return "", nil
	}
	if id, err = wire.ParseID(e.String("id")); err == nil {
		err = teams.GivenID(id)
	}
	if err != nil {
		return "", cmdline.Usage("--id: %v", err).WithHint("leave --id out: atm makes one; --once NAME takes any name")
	}
	return id, nil
}

// named gives a prepared message the id that belongs to its --once.
func (e *env) named(o *teams.Outgoing) error {
	if !e.Given("once") {
		return nil
	}
	_, err := o.Once(e.String("once"))
	return err
}

// text is the message's text, from wherever it is given.
func (e *env) text(words []string) (string, error) {
	given := func(f string) bool { return e.Has(f) && e.Given(f) }
	for _, f := range []string{"message", "file"} {
		if given(f) && len(words) > 0 {
			return "", cmdline.Usage("--%s and text contradict each other", f).WithHint("leave one out")
		}
	}
	switch {
	case given("message"):
		return e.Text([]string{e.String("message")})
	case given("file") && e.String("file") != "-":
		f, err := os.Open(e.String("file"))
		if err != nil {
			return "", cmdline.Usage("--file: %v", err).WithHint("--file takes the text from a file, --attach FILE sends one")
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return "", cmdline.Usage("--file: %s is a directory", e.String("file")).WithHint("--file takes the text from a file, --attach FILE sends one")
		}
		return cmdline.ReadText(f)
	case given("file"):
		return e.Text([]string{"-"})
	case len(words) == 0 && (given("payload") || given("attach")):
		return "", nil
	}
	return e.Text(words)
}

// refer resolves the ids that the message quotes.
func (e *env) refer(m *wire.Message) error {
	ctx := context.Background()
	if e.Given("thread") {
		it, _, err := e.find(ctx, e.String("thread"), false)
		if err != nil {
			return err
		}
		m.Thread = it.ThreadID()
	}
	if e.Given("supersedes") {
		it, _, err := e.find(ctx, e.String("supersedes"), false)
		if err != nil {
			return err
		}
		if it.From != e.me.Address() {
			return cmdline.Refused("message %s is not yours to replace", it.ID.Short(6)).WithHint("atm reply %s \"…\"%s", it.ID.Short(6), e.typed())
		}
		m.Supersedes = it.ID
		if m.Thread == "" {
			m.Thread = it.ThreadID()
		}
	}
	return nil
}

// attach stores the files, in the team of each recipient.
func (e *env) attach(o *teams.Outgoing) error {
	for _, name := range e.Strings("attach") {
		stores := map[*mailbox.Store]bool{}
		for _, b := range o.Post.To {
			if stores[b.Store()] {
				continue
			}
			f, err := os.Open(name)
			if err != nil {
				return cmdline.Usage("--attach: %v", err)
			}
			a, err := b.Store().Attach(filepath.Base(name), f)
			f.Close()
			if err != nil {
				return err
			}
			if len(stores) == 0 {
				o.Message.Attachments = append(o.Message.Attachments, a)
			}
			stores[b.Store()] = true
		}
	}
	return nil
}

// delivered is one recipient in the JSON of send, reply and ack.
type delivered struct {
	To      string `json:"to"`
	Running bool   `json:"running"`
	State   string `json:"state"`
	Known   bool   `json:"known,omitempty"`   // it was there before, and was not sent again
	Differs bool   `json:"differs,omitempty"` // and has another text

	word string
}

type failed struct {
	To      string `json:"to"`
	Code    string `json:"code"`
	Message string `json:"message"`

	hint string
	err  error
}

type sent struct {
	ID        wire.ID     `json:"id,omitempty"`
	Delivered []delivered `json:"delivered"`
	Failed    []failed    `json:"failed"`
	DryRun    bool        `json:"dry_run,omitempty"`
	Reply     *jsonItem   `json:"reply,omitempty"`
}

// dispatch sends a prepared message, says what became of it, and waits if that
// was asked for.
func (e *env) dispatch(ctx context.Context, o *teams.Outgoing) error {
	if err := e.mayBring(o); err != nil {
		return err
	}
	for _, name := range e.Strings("attach") {
		info, err := os.Stat(name)
		if err != nil {
			return cmdline.Usage("--attach: %v", err)
		}
		if !info.Mode().IsRegular() {
			return cmdline.Usage("--attach: %s is no regular file", name)
		}
	}
	if err := e.root.Prepare(o); err != nil {
		return err
	}
	if len(o.Post.To) == 0 && len(o.Failed) == 1 {
		return o.Failed[0].Err
	}
	if e.Bool("dry-run") {
		return e.report(ctx, o, nil)
	}
	if err := errors.Join(e.attach(o), e.named(o)); err != nil {
		return err
	}
	if !e.Bool("wait-ack") && !e.Bool("wait-reply") {
		return e.deliver(ctx, o, nil)
	}
	return e.interruptible(ctx, func(ctx context.Context) error {
		// Watching begins before the message is sent: no answer is missed.
		w, err := e.newWaiter(ctx, nil)
		if err != nil {
			return err
		}
		defer w.close()
		return e.deliver(ctx, o, w)
	})
}

func (e *env) deliver(ctx context.Context, o *teams.Outgoing, w *waiter) error {
	mailbox.Deliver(ctx, o.Post)
	e.answered(ctx, o)
	return e.report(ctx, o, w)
}

// answered marks what a message answered, once it has reached its sender.
func (e *env) answered(ctx context.Context, o *teams.Outgoing) {
	if o.Parent != nil && slices.ContainsFunc(o.Post.Outcomes, func(out mailbox.Outcome) bool {
		return out.Err == nil && out.Box.Address() == o.Parent.From
	}) {
		if err := teams.MarkAnswered(ctx, e.me, o.Parent); err != nil {
			e.Warn("sent; the message answered: %v", err)
		}
	}
}

// report prints what became of a message, and waits between the line and the
// end if there is a waiter.
func (e *env) report(ctx context.Context, o *teams.Outgoing, w *waiter) error {
	s := sent{ID: o.Message.ID, Delivered: []delivered{}, Failed: []failed{}, DryRun: e.Bool("dry-run")}
	now := time.Now()
	outcomes := o.Post.Outcomes
	if s.DryRun {
		outcomes = wouldReach(o.Post)
	}
	for _, out := range outcomes {
		if out.Err != nil {
			s.fail(e, out.Box.Address(), out.Err)
			continue
		}
		d := e.reached(out.Box, now, o.Message.Urgent())
		if d.Known = out.Known; d.Known {
			d.Differs = e.differs(out.Box, o.Message)
			d.word = e.cameOf(ctx, out.Box, o.Message.ID, d.word)
		}
		s.Delivered = append(s.Delivered, d)
	}
	for _, f := range o.Failed {
		s.fail(e, f.To, f.Err)
	}
	if len(s.Delivered) == 0 && len(s.Failed) == 1 {
		return s.Failed[0].err
	}
	if w != nil && slices.ContainsFunc(s.Delivered, func(d delivered) bool { return d.Differs }) {
		return e.anothers(s.ID)
	}
	if w != nil {
		defer e.heed(ctx, o.Post.To...)()
	}
	if !e.JSON() {
		if err := e.say(s); err != nil {
			return cmdline.Failed("sent %s, but it could not be said: %w", s.ID.Short(6), err)
		}
	}
	if w != nil && len(s.Delivered) > 0 {
		if err := e.whileWanted(ctx, func(ctx context.Context) error { return e.await(ctx, w, o, s) }); err != nil {
			return err
		}
	} else if e.JSON() {
		if err := e.PrintJSON(s); err != nil {
			return cmdline.Failed("sent %s, but it could not be said: %w", s.ID.Short(6), err)
		}
	}
	return e.outcome(s)
}

// anothers refuses to wait for the answer to what was sent under an id or a name
// before, with another text.
func (e *env) anothers(id wire.ID) error {
	return cmdline.Refused("%s was sent before with another text: what answers it answers that", id.Short(6)).
		WithHint("another --once NAME or --id for this one; atm wait --reply %s%s waits for that answer", id.Short(6), e.typed())
}

// wouldReach are the outcomes of a post that is not sent.
func wouldReach(p *mailbox.Post) (out []mailbox.Outcome) {
	for _, b := range p.To {
		out = append(out, mailbox.Outcome{Box: b})
	}
	return out
}

// differs reports whether a message that was there before has another text than the
// one that was to be sent now, and says so.
func (e *env) differs(b *mailbox.Box, m *wire.Message) bool {
	it, err := b.Get(m.ID)
	if err != nil || it.Body == m.Body {
		return false
	}
	e.Warn("%s was there before with another text, and stays as it is; another message needs another id or name", m.ID.Short(6))
	return true
}

// cameOf is what came of a message that was sent before: of one that is unread
// still, what is known of its recipient as well.
func (e *env) cameOf(ctx context.Context, b *mailbox.Box, id wire.ID, word string) string {
	if len(teams.Replies(ctx, e.me, id, b.Address())) > 0 {
		return "answered"
	}
	it, err := b.Get(id)
	if err != nil {
		return "no longer there"
	}
	switch it.State {
	case mailbox.Unread:
		return "unread; " + word
	case mailbox.Withdrawn:
		return "withdrawn"
	}
	return "read"
}

func (s *sent) fail(e *env, to wire.Address, err error) {
	code, msg, hint := e.failure(err)
	s.Failed = append(s.Failed, failed{To: to.String(), Code: code, Message: msg, hint: hint, err: err})
}

// reached is a recipient whom a message reached, and what is known of them.
func (e *env) reached(b *mailbox.Box, now time.Time, urgent bool) delivered {
	a := b.Address()
	t, _ := e.root.Team(a.Team)
	m, _ := t.Summary(a.Agent)
	return delivered{To: a.String(), Running: m.Running, State: string(m.State), word: m.Forecast(now, urgent)}
}

// say prints the line that says what became of a message.
func (e *env) say(s sent) error {
	verb := "sent"
	if s.DryRun {
		verb = "would send"
	}
	var to []string
	for _, d := range s.Delivered {
		if d.Known {
			d.word = "before: " + d.word
		}
		to = append(to, strings.TrimSuffix(d.To, "@"+string(e.team.Name))+" ("+d.word+")")
	}
	if len(to) > 0 {
		if _, err := e.Stdout.WriteString(verb + " " + s.ID.Short(6) + " to " + strings.Join(to, ", ") + "\n"); err != nil {
			return err
		}
	}
	for _, f := range s.Failed {
		e.Warn("not sent to %s: %s", f.To, f.Message)
		if f.hint != "" {
			e.Warn("hint: %s", f.hint)
		}
	}
	return nil
}

// outcome is the exit code of a send that has said everything.
func (e *env) outcome(s sent) error {
	switch {
	case len(s.Failed) == 0:
		return nil
	case len(s.Delivered) > 0:
		return &cmdline.Error{Exit: cmdline.ExitPartial, Printed: true}
	}
	exit := cmdline.ExitFailed
	if f, ok := e.explain(s.Failed[0].err).(*cmdline.Error); ok {
		exit = f.Exit
	}
	return &cmdline.Error{Exit: exit, Printed: true}
}
