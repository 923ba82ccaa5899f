package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/once"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/search"
	"github.com/agentteammail/atm/reducer/history"
	"github.com/agentteammail/atm/wire"
)

// Once returns the idempotency key that --once gives; "": none.
func Once(c *cli.Context) (string, error) {
	if !c.IsSet("once") {
		return "", nil
	}
	if err := once.CheckName(c.String("once")); err != nil {
		return "", fmt.Errorf("--once: %w", err)
	}
	return c.String("once"), nil
}

// Search returns the team's messages that match a query and words, filters such as from: among them, newest first.
func Search(ctx context.Context, s *app.Scope, query search.Query, words []string) ([]*wire.Item, error) {
	query, err := parseQuery(query, words)
	if err != nil {
		return nil, failure.Usage("%v", err).WithHint("`atm search WORDS in:cur since:7d`")
	}
	return s.Search(ctx, query)
}

// SearchWords is Search by words alone.
func SearchWords(ctx context.Context, s *app.Scope, words []string) ([]*wire.Item, error) {
	return Search(ctx, s, search.Query{}, words)
}

// parseQuery adds words to a query, from:, to:, in:new|cur|done, since:, until:, type:, meta: and is:urgent, also several in one
// quoted word.
func parseQuery(q search.Query, words []string) (_ search.Query, err error) {
	fields := strings.Fields(strings.Join(words, " "))
	for i, w := range fields {
		if w == "ago" && i > 0 && (strings.HasPrefix(fields[i-1], "since:") || strings.HasPrefix(fields[i-1], "until:")) {
			continue // since:"2h ago"
		}
		switch key, value, isFilter := strings.Cut(w, ":"); {
		case isFilter && value == "" && slices.Contains([]string{"from", "to", "type"}, key):
			return q, fmt.Errorf("%s needs a value", w)
		case isFilter && key == "from":
			q.From = value
		case isFilter && key == "to":
			q.To = value
		case isFilter && key == "in":
			q.In = value
		case isFilter && key == "type":
			q.Type = value
		case isFilter && key == "meta":
			if err = q.AddLabel(value); err != nil {
				return q, fmt.Errorf("meta: %w", err)
			}
		case w == "is:urgent":
			q.IsUrgent = true
		case isFilter && key == "since":
			if q.Since, err = cmdline.ParseSince(value); err != nil {
				return q, err
			}
		case isFilter && key == "until":
			if q.Until, err = cmdline.ParseSince(value); err != nil {
				return q, err
			}
		default:
			q.Words = append(q.Words, strings.ToLower(w))
		}
	}
	q.From, q.To = strings.TrimPrefix(q.From, "@"), strings.TrimPrefix(q.To, "@")
	if !slices.Contains([]string{"", "new", "cur", "done"}, q.In) {
		return q, fmt.Errorf("in:%s: must be new, cur or done", q.In)
	}
	return q, nil
}

// Renderer renders messages for this terminal or pipe.
func (p *Printer) Renderer(s *app.Scope) *letter.Renderer {
	return &letter.Renderer{Now: time.Now(), Team: s.Team.Name, Digits: 6, Width: p.Width(), Bold: IsColoured(p.Out),
		Show:      s.Given.Flags("", "root", "team"),
		SetAnswer: func(m *wire.Message, f *letter.Flags) { post.SetAnswer(s.Root, m, f) }}
}

// RendererFor is Renderer for the messages of a mailbox.
func (p *Printer) RendererFor(s *app.Scope, box *maildir.Box) *letter.Renderer {
	r := p.Renderer(s)
	r.IsKept = s.KeptFrom(box)
	return r
}

// IsKept reports whether a message is unread, and kept.
func IsKept(r *letter.Renderer, m *wire.Item) bool {
	return m.State == wire.Unread && r.IsKept != nil && r.IsKept(m.Message)
}

// Letters renders whole messages, one piece each. Further messages in behind may supersede or follow these.
func Letters(r *letter.Renderer, items, behind []*wire.Item) (pieces [][]byte) {
	flags := maildir.Flags(items, behind)
	for i, it := range items {
		f := post.LeaseFlags(it)
		if r.SetAnswer != nil {
			r.SetAnswer(it.Message, &f)
		}
		f.SupersededBy, f.Newer = flags[i].SupersededBy, flags[i].Newer
		f.Kept = IsKept(r, it)
		f.Withdrawn, f.Done = it.State == wire.Withdrawn, it.State == wire.Done
		pieces = append(pieces, r.Render(it.Message, f))
	}
	return pieces
}

// Notes are what a line about a message adds to its sender and age: "to ack", "urgent".
func Notes(r *letter.Renderer, m *wire.Item) (notes []letter.Note) {
	add := func(isSo bool, n letter.Note) {
		if isSo && n.Text != "" {
			notes = append(notes, n)
		}
	}
	isUnread, isDone := m.State == wire.Unread, m.State == wire.Done
	isLate := !m.DueAt.IsZero() && r.Now.After(m.DueAt)
	word := string(m.State)
	switch m.State {
	case wire.Owed:
		word = "to ack"
	case wire.Done:
		word = "read"
	}
	add(!isUnread, letter.Note{Text: word})
	add(m.RequiresAck && (isUnread || m.State == ""), letter.Note{Text: letter.WantsAck})
	add(true, letter.Note{Text: r.Lease(post.LeaseFlags(m)), IsTimed: m.Lease != nil})
	add(IsKept(r, m), letter.Note{Text: "kept"})
	add(m.Urgent(), letter.Note{Text: "urgent", IsStrong: !isDone})
	add(true, letter.Note{Text: r.Due(m.Message, isDone), IsStrong: isLate && !isDone, IsTimed: !isDone})
	add(m.Expired(r.Now), letter.Note{Text: "expired"})
	return notes
}

// NotesText is the text of notes on a line.
func NotesText(notes []letter.Note) string {
	var texts []string
	for _, n := range notes {
		texts = append(texts, n.Text)
	}
	return strings.Join(texts, ", ")
}

// TurnsShown says how turns are shown.
type TurnsShown struct {
	Last       int  // the number of the last one; the agent's newest turn has 1
	IsNumbered bool // each with its number
	IsFull     bool // all that was said

	Command func(typed string) string // completes a command of atm
}

// Turns shows an agent's turns, oldest first: when, how long, how they ended, and what was said.
func Turns(agent wire.Name, turns []history.FullTurn, o TurnsShown) string {
	var lines []string
	for i, t := range turns {
		number, shown := o.Last+len(turns)-1-i, ""
		if o.IsNumbered {
			shown = strconv.Itoa(number)
		}
		began, lasted, mail, used := "", "", "", ""
		if t.Began != nil {
			began = letter.Stamp(*t.Began)
		}
		if t.DurationMS > 0 {
			lasted = letter.Span(t.Duration())
		}
		if len(t.Messages) > 0 {
			mail = "mail " + app.Shorts(t.Messages)
		}
		if t.Usage != nil {
			used = presence.Used(*t.Usage)
		}
		var tools []string
		for _, c := range t.Tools {
			tools = append(tools, strings.TrimSpace(c.Name+" "+c.Title))
		}
		lines = append(lines, app.JoinFilled("  ", shown, began, lasted, cmp.Or(letter.Name(t.Status, 40), "over"), mail, used))
		for _, part := range [][2]string{{"  > ", t.Prompt}, {"  * ", strings.Join(tools, "\n")}, {"  < ", t.Response}, {"  ! ", t.Error}} {
			lines = append(lines, turnLines(part[0], part[1], o.IsFull, o.Command(fmt.Sprintf("atm history %s %d --full", agent, number)))...)
		}
	}
	return cmp.Or(strings.Join(lines, "\n"), fmt.Sprintf("no known turns of %s; its mail: %s", agent, o.Command("atm ls "+string(agent)+" --all")))
}

// turnLines returns a text of a turn behind a mark: all of it, or the beginning and the command that shows more.
func turnLines(mark, text string, isFull bool, more string) (out []string) {
	const maxLines, maxLength = 12, 1500
	if text == "" {
		return nil
	}
	lines, room := strings.Split(strings.Trim(text, "\n"), "\n"), maxLength
	rest := ""
	for i, line := range lines {
		line = letter.Escape(strings.TrimRight(line, " \r"))
		switch {
		case isFull:
		case i == maxLines:
			rest = letter.Many(len(lines)-i, "more line")
		case room < len(line):
			line, rest = letter.Clip(line, max(room, 80)), "the rest"
		}
		if i < maxLines || isFull {
			out = append(out, mark+line)
		}
		if rest != "" {
			return append(out, fmt.Sprintf("    … %s: %s", rest, more))
		}
		mark, room = "    ", room-len(line)
	}
	return out
}
