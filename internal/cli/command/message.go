package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/cmdline"
	"github.com/agentteammail/atm/internal/cli/failure"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// aboutMember is the hint where a member's name stands in place of something else.
const aboutMember = "atm read --from %s, atm ls %[1]s, atm status %[1]s, atm screen %[1]s, atm send %[1]s \"…\""

// MemberAsVerb is the error for a member's name where a verb should be; nil: it is no member's, or nothing can tell.
func MemberAsVerb(c *cli.Context, name string) error {
	if s, err := OpenTeam(c); err != nil || !s.IsMember(name) {
		return nil
	}
	return failure.Usage("%q is a member, not a command", name).WithHint(aboutMember, strings.TrimPrefix(name, "@"))
}

// Find looks up the message that a fragment of an id means, in my mailbox, else in the team's.
func (s *Scope) Find(fragment string) (it *mailbox.Item, box *mailbox.Box, err error) {
	fragment = strings.TrimPrefix(fragment, "#")
	_, err = wire.ParseFragment(fragment)
	if err == nil {
		return s.Team.Find(s.Me, fragment)
	}
	if !s.IsMember(fragment) {
		hint := cmp.Or(cmdline.HintFor(s.c.Command.Name+" "+fragment), "atm read --last and atm ls --all show the ids")
		first, _, hasComma := strings.Cut(fragment, ",")
		if _, notID := wire.ParseFragment(first); hasComma && notID == nil {
			hint = "no commas: atm ack ID ID; a reply answers one message"
		}
		return nil, nil, failure.Usage("%v", err).WithHint("%s", hint)
	}
	hint := aboutMember
	if isShared, _ := s.Team.Box(wire.Name(fragment)).Shared(); isShared {
		hint = "atm take %s takes the next of its messages, atm ls %[1]s lists them"
	}
	return nil, nil, failure.Usage("%q is a member, not the id of a message", fragment).WithHint(hint, fragment)
}

// ShortLength is how many digits of an id a command needs to name one message.
func (s *Scope) ShortLength(id wire.ID) int {
	_, _, err := s.Team.Find(s.Me, id.Short(6))
	if many, ok := errors.AsType[*teams.AmbiguousError](err); ok {
		return letter.ShortLength(many.Candidates)
	}
	return 6
}

// Search returns the team's messages that match a query, newest first. A from: or to: that nobody has is an error if
// nothing matches.
func (s *Scope) Search(ctx context.Context, words []string) ([]*mailbox.Item, error) {
	query, err := parseQuery(words)
	if err != nil {
		return nil, failure.Usage("%v", err).WithHint("atm search WORDS in:cur since:7d")
	}
	found, err := s.Team.Search(ctx, query)
	for _, name := range []string{query.From, query.To} {
		if name != "" && len(found) == 0 && err == nil {
			_, err = s.Correspondent(name)
		}
	}
	return found, err
}

// parseQuery parses words, from:, to:, in:new|cur|done and since:, also several in one quoted word.
func parseQuery(words []string) (q teams.Query, err error) {
	for _, w := range strings.Fields(strings.Join(words, " ")) {
		key, value, isFilter := strings.Cut(w, ":")
		if !isFilter {
			key = "" // from, to, in and since are words as well
		}
		switch key {
		case "from":
			q.From = value
		case "to":
			q.To = value
		case "in":
			q.In = value
			if !slices.Contains([]string{"new", "cur", "done"}, value) {
				return q, fmt.Errorf("in:%s: must be new, cur or done", value)
			}
		case "since":
			if q.Since, err = cmdline.ParseSince(value); err != nil {
				return q, err
			}
		default:
			q.Words = append(q.Words, strings.ToLower(w))
		}
	}
	return q, nil
}

// Origin is the evidence that this process attaches to what it sends.
func (s *Scope) Origin() *wire.Origin {
	o := &wire.Origin{Via: cmp.Or(CallingProgram(s.c), "cli"), Run: os.Getenv("ATM_RUN")}
	if uid := os.Getuid(); uid >= 0 {
		o.UID = &uid
	}
	return o
}

// Renderer renders messages for this terminal or pipe.
func (s *Scope) Renderer() *letter.Renderer {
	return &letter.Renderer{Now: time.Now(), Team: s.Team.Name, Digits: 6, Terminal: Terminal(), Bold: Colour(), Runs: s.Team.RunningMembers,
		Show: flagsFor(s.c, "", "--root", "--team")}
}

// Letters renders whole messages, one piece each. Further messages in behind may supersede or follow these.
func Letters(r *letter.Renderer, items, behind []*mailbox.Item) (pieces [][]byte) {
	flags := mailbox.Flags(items, behind)
	for i, it := range items {
		f := teams.LeaseFlags(it)
		f.SupersededBy, f.Newer = flags[i].SupersededBy, flags[i].Newer
		f.Withdrawn, f.Done = it.State == mailbox.Withdrawn, it.State == mailbox.Done
		pieces = append(pieces, r.Render(it.Message, f))
	}
	return pieces
}

// Notes says what a line about a message adds to its sender and age: "owed, urgent".
func Notes(r *letter.Renderer, m *mailbox.Item) string {
	when := func(isSo bool, text string) string {
		if isSo {
			return text
		}
		return ""
	}
	state, superseded := string(m.State), ""
	if m.State == mailbox.Done {
		state = "read"
	}
	if m.SupersededBy != "" {
		superseded = "superseded by " + r.Short(m.SupersededBy)
	}
	isUnread := m.State == mailbox.Unread
	return JoinFilled(", ", when(!isUnread, state), when(m.RequiresAck && (isUnread || state == ""), "wants ack"),
		r.Lease(teams.LeaseFlags(m)), when(m.Urgent(), "urgent"), r.Due(m.Message, m.State == mailbox.Done), when(m.Expired(r.Now), "expired"), superseded)
}

// Stages lists in a line the stages of a delivery that there is evidence for.
func Stages(r teams.DeliveryTrace) string {
	var parts []string
	for _, stage := range r.Stages {
		if stage.Evidence == nil {
			continue
		}
		part := stage.Name
		if stage.At != nil {
			part += " " + letter.Stamp(*stage.At)
		}
		if stage.Text != "" {
			part += ` "` + letter.Clip(letter.Escape(stage.Text), 60) + `"`
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return "no evidence"
	}
	switch {
	case r.State == mailbox.Withdrawn:
		parts = append(parts, "withdrawn")
	case r.State == mailbox.Unread && r.Reached("read"):
		parts = append(parts, "unread again")
	}
	return strings.Join(parts, "   ")
}

// Shorts shortens ids to as many digits as tell them apart, with spaces between.
func Shorts(ids []wire.ID) string {
	n := letter.ShortLength(ids)
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = id.Short(n)
	}
	return strings.Join(out, " ")
}

// Turns shows an agent's turns: when, how long, how they ended, and what was said.
func Turns(agent wire.Name, turns []teams.Turn) string {
	var lines []string
	for _, t := range turns {
		line := cmp.Or(t.Status, "over")
		if t.DurationMS > 0 {
			line = letter.Span(t.Duration()) + "  " + line
		}
		if t.Began != nil {
			line = letter.Stamp(*t.Began) + "  " + line
		}
		if len(t.Messages) > 0 {
			line += "  mail " + Shorts(t.Messages)
		}
		var tools []string
		for _, c := range t.Tools {
			tools = append(tools, strings.TrimSpace(c.Name+" "+c.Title))
		}
		lines = slices.Concat(lines, []string{line}, marked(agent, "  > ", t.Prompt),
			marked(agent, "  * ", strings.Join(tools, "\n")), marked(agent, "  < ", t.Response), marked(agent, "  ! ", t.Error))
	}
	return cmp.Or(strings.Join(lines, "\n"), fmt.Sprintf("no known turns of %s; its mail: atm ls %[1]s --all", agent))
}

const maxLines = 12

// marked returns the first lines of a text of a turn, the first one behind a mark.
func marked(agent wire.Name, mark, text string) (out []string) {
	if text == "" {
		return nil
	}
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for i, line := range lines[:min(len(lines), maxLines)] {
		if i > 0 {
			mark = "    "
		}
		out = append(out, mark+letter.Clip(letter.Escape(strings.TrimRight(line, " \r")), 160))
	}
	if more := len(lines) - maxLines; more > 0 {
		out = append(out, fmt.Sprintf("    … %d more lines: atm history %s --json", more, agent))
	}
	return out
}
