package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var lsVerb = &cmdline.Verb{
	Name: "ls", Aliases: []string{"list", "inbox"}, Args: "[AGENT]", Summary: "list messages, a line each",
	Examples: []string{"atm ls", "atm ls --owed", "atm ls bob", "atm ls --sent --owed"},
	Notes:    []string{"Marks nothing. Unread and owed: oldest first; done and sent: newest first."},
	Flags: []cmdline.Flag{
		{Name: "owed", Usage: "read, an ack still owed"},
		{Name: "done", Usage: "finished ones"},
		{Name: "all", Usage: "unread, owed and done"},
		{Name: "bad", Usage: "files that were no mail"},
		{Name: "sent", Usage: "what you sent, and its fate"},
		{Name: "from", Kind: cmdline.String, Arg: "NAME", Usage: "of this sender"},
		{Name: "since", Kind: cmdline.String, Arg: "D", Usage: "not older: 2h, 7d, a date"},
		{Name: "limit", Aliases: []string{"n"}, Kind: cmdline.Int, Arg: "N", Default: "20", Usage: "at most N lines, 0: all"},
		{Name: "count", Usage: "only how many"},
	},
	MaxArgs: 1,
	Run:     run(ls),
}

func ls(ctx context.Context, e *env) error {
	if err := e.NotBoth("all", "bad", "sent"); err != nil {
		return err
	}
	if err := e.NotBoth("done", "bad", "sent"); err != nil {
		return err
	}
	box, err := e.boxNamed()
	if err != nil {
		return err
	}
	if e.Bool("bad") {
		if _, err := box.TakeIn(ctx); err != nil {
			return err
		}
		return e.lsBad(box)
	}
	since := time.Time{}
	if e.Given("since") {
		if since, err = teams.Since(e.String("since"), time.Now(), cmdline.ParseDuration); err != nil {
			return cmdline.Usage("--since: %v", err).WithHint("atm ls --since 2h")
		}
	}
	var from wire.Address
	if e.Given("from") {
		if from, err = e.sender(e.String("from")); err != nil {
			return err
		}
	}
	owed, done := e.Bool("owed"), e.Bool("done")
	rg := mailbox.Range{Owed: owed || e.Bool("all"), Done: done || e.Bool("all"), Archive: done || e.Bool("all"), Since: since, Times: !since.IsZero()}
	rg.Unread = !owed && !done || e.Bool("all")
	rg.Newest = rg.Done
	if e.Bool("sent") {
		rg = mailbox.Range{Sent: true, Since: since, Times: !since.IsZero(), Newest: true}
	}
	limit := e.Int("limit")
	count := e.Bool("count")
	filtered := !since.IsZero() || from != wire.Address{} || e.Bool("sent") && owed
	rg.Limit = limit
	if count {
		rg.Limit = 1
	}
	if leases, _ := box.Leases(); rg.Unread && count && len(leases) > 0 {
		filtered = true // what others hold is not there to be read
	}
	if filtered {
		rg.Limit = 0 // what fits is only known when it is open
	}
	var items []jsonItem
	extra := 0
	more, bad, err := box.Walk(ctx, rg, func(it *mailbox.Item) bool {
		if !since.IsZero() && it.Written.Before(since) || from != (wire.Address{}) && it.From != from {
			return true
		}
		if count && it.Lease != nil {
			return true
		}
		j := jsonItem{Item: it}
		if e.Bool("sent") {
			open := false
			if j.Recipients, open = e.fates(it.Message); owed && !open {
				return true
			}
		}
		if filtered && (limit > 0 && len(items) >= limit || count) {
			extra++
			return true
		}
		items = append(items, j)
		return true
	})
	if err != nil {
		return err
	}
	more += extra
	switch {
	case count:
		if e.JSON() {
			return e.PrintJSON(map[string]int{"count": len(items) + more})
		}
		return e.print("%d", len(items)+more)
	}
	return e.printList(ctx, box, items, more, bad)
}

// boxNamed is the mailbox to list: the argument's, or mine.
func (e *env) boxNamed() (*mailbox.Box, error) {
	if len(e.Args) == 0 {
		err := e.who()
		return e.me, err
	}
	if err := e.open(); err != nil {
		return nil, err
	}
	return e.member(e.Args[0])
}

func (e *env) printList(ctx context.Context, box *mailbox.Box, items []jsonItem, more, bad int) error {
	if e.JSON() {
		list := newListing(items, more)
		if !e.Bool("sent") {
			owed, _ := box.OwedIDs()
			list.Owed = append(list.Owed, owed[:min(len(owed), 20)]...)
		}
		return e.PrintJSON(list)
	}
	l := e.renderer()
	ids := make([]wire.ID, len(items))
	for i := range items {
		ids[i] = items[i].ID
	}
	l.Digits = letter.ShortLength(ids)
	now := time.Now()
	var b strings.Builder
	for _, it := range items {
		b.WriteString(e.line(l, it, now))
		b.WriteByte('\n')
	}
	if more > 0 {
		fmt.Fprintf(&b, "%d more: %s --limit 0\n", more, e.again())
	}
	if len(items)+more == 0 {
		c, err := box.Count(ctx)
		if err != nil {
			return err
		}
		e.sayEmpty(&b, c)
	}
	if bad > 0 {
		what := "1 file"
		if bad > 1 {
			what = fmt.Sprintf("%d files", bad)
		}
		after := ": atm read" + e.typed() + " sets aside what is unread"
		if e.Bool("sent") || len(e.Args) > 0 {
			after = "" // nobody's to mend from here
		}
		fmt.Fprintf(&b, "%s could not be understood%s\n", what, after)
	}
	_, err := e.Stdout.WriteString(b.String())
	return err
}

func (e *env) again() string {
	s := "atm ls"
	if len(e.Args) > 0 {
		s += " " + e.Args[0]
	}
	for _, f := range []string{"owed", "done", "all", "sent"} {
		if e.Bool(f) {
			s += " --" + f
		}
	}
	for _, f := range []string{"from", "since"} {
		if e.Given(f) {
			s += " --" + f + " " + cmdline.Escape(e.String(f))
		}
	}
	return s + e.typed()
}

func (e *env) sayEmpty(b *strings.Builder, c mailbox.Counts) {
	switch {
	case e.Bool("sent") && e.Bool("owed"):
		b.WriteString("0 sent that wait for an ack")
	case e.Bool("sent"):
		b.WriteString("nothing sent")
	case e.Bool("owed"):
		b.WriteString("0 owed")
	case e.Bool("done"):
		b.WriteString("0 done")
	default:
		b.WriteString("0 unread")
		who := ""
		if len(e.Args) > 0 {
			who = " " + e.Args[0]
		}
		if c.Owed > 0 {
			fmt.Fprintf(b, ", %d owed: atm ls%s --owed%s", c.Owed, who, e.typed())
		}
		if c.Bad > 0 {
			fmt.Fprintf(b, ", %d bad: atm ls%s --bad%s", c.Bad, who, e.typed())
		}
	}
	b.WriteByte('\n')
}

// line is a message in a list.
func (e *env) line(l *letter.Renderer, it jsonItem, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s ", l.Short(it.ID))
	if e.Has("sent") && e.Bool("sent") {
		fmt.Fprintf(&b, "%s ", letter.Age(now, it.SentAt))
		for i, r := range it.Recipients {
			if i > 0 {
				b.WriteString(", ")
			}
			state := r.State
			if state == "" {
				state = "no evidence"
			}
			fmt.Fprintf(&b, "%s %s", strings.TrimSuffix(r.To, "@"+string(e.team.Name)), state)
		}
	} else {
		fmt.Fprintf(&b, "%s %s", l.Who(it.From), letter.Age(now, it.SentAt))
		if it.State != mailbox.Unread {
			fmt.Fprintf(&b, ", %s", it.State)
		} else if it.RequiresAck {
			b.WriteString(", wants ack")
		}
		if lease := l.Lease(teams.LeaseFlags(it.Item)); lease != "" {
			b.WriteString(", " + lease)
		}
		if it.Urgent() {
			b.WriteString(", urgent")
		}
		if it.Origin != nil && it.Origin.Via == "drop" && it.From.Agent != "drop" {
			b.WriteString(", dropped as a file")
		}
		if it.Expired(now) {
			b.WriteString(", expired")
		}
	}
	if t := it.Title(); t != "" {
		b.WriteString(": ")
		b.WriteString(letter.Clip(letter.Escape(t), 100))
	}
	return b.String()
}

// fates are the states of a sent message at its recipients; open says that
// somebody has not acknowledged it who should.
func (e *env) fates(m *wire.Message) (out []recipientState, open bool) {
	for _, a := range m.To {
		r := recipientState{To: a.String()}
		if b, err := e.root.Mailbox(a); err == nil {
			if it, err := b.Get(m.ID); err == nil {
				r.State = string(it.State)
				if it.Lease != nil {
					r.State = "taken"
				}
				if m.RequiresAck && it.State == mailbox.Done {
					r.State = "acked"
				} else if it.State == mailbox.Owed || it.State == mailbox.Done {
					r.State = "read"
				}
			}
		}
		if m.RequiresAck && r.State != "acked" && r.State != "withdrawn" {
			open = true
		}
		out = append(out, r)
	}
	return out, open
}

func (e *env) lsBad(box *mailbox.Box) error {
	limit := e.Int("limit")
	files, err := box.BadFiles(0)
	if err != nil {
		return err
	}
	if e.Bool("count") {
		return e.print("%d", len(files))
	}
	more := 0
	if limit > 0 && len(files) > limit {
		files, more = files[:limit], len(files)-limit
	}
	if e.JSON() {
		list := newListing(nil, more)
		for _, f := range files {
			list.Bad = append(list.Bad, badFile{f.Name, f.Reason, f.Size, string(mailbox.Bad)})
		}
		return e.PrintJSON(list)
	}
	for _, f := range files {
		if err := e.print("%s %s: %s", letter.Escape(f.Name), letter.Size(f.Size), letter.Clip(letter.Escape(f.Reason), 160)); err != nil {
			return err
		}
	}
	if more > 0 {
		return e.print("%d more: atm ls --bad --limit 0", more)
	}
	if len(files) == 0 {
		return e.print("0 bad")
	}
	return e.print("they lie in %s/inbox/bad", cmdline.Escape(box.Path()))
}
