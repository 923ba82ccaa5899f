package command

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// Letters are whole messages, each as a piece to print; behind are further items, which may replace or follow these.
func Letters(r *letter.Renderer, items, behind []*mailbox.Item) (pieces [][]byte) {
	flags := mailbox.Flags(items, behind)
	for i, it := range items {
		f := teams.LeaseFlags(it)
		f.SupersededBy, f.Newer, f.Withdrawn = flags[i].SupersededBy, flags[i].Newer, it.State == mailbox.Withdrawn
		pieces = append(pieces, r.Render(it.Message, f))
	}
	return pieces
}

// Notes are what is to be known about a message beside who wrote it and when: "owed, urgent".
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
		r.Lease(teams.LeaseFlags(m)), when(m.Urgent(), "urgent"), when(m.Expired(r.Now), "expired"), superseded)
}

// Turns are an agent's turns as history shows them: when, how long, how they ended, and what was said.
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
		lines = append(lines, line)
		lines = append(lines, saidIn(agent, "  > ", t.Prompt)...)
		var tools []string
		for _, c := range t.Tools {
			tools = append(tools, strings.TrimSpace(c.Name+" "+c.Title))
		}
		lines = append(lines, saidIn(agent, "  * ", strings.Join(tools, "\n"))...)
		lines = append(lines, saidIn(agent, "  < ", t.Response)...)
		lines = append(lines, saidIn(agent, "  ! ", t.Error)...)
	}
	return cmp.Or(strings.Join(lines, "\n"), fmt.Sprintf("no turn of %s is known; its mail: atm ls %[1]s --all", agent))
}

const maxLines = 12

func saidIn(agent wire.Name, mark, text string) (out []string) {
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

// Stages are those of a delivery that there is evidence for, in a line.
func Stages(r teams.DeliveryTrace) string {
	var parts []string
	for _, stage := range r.Stages {
		if stage.Evidence == nil {
			continue
		}
		part := stage.Stage
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
	if r.State == mailbox.Withdrawn {
		parts = append(parts, "withdrawn")
	}
	return strings.Join(parts, "   ")
}
