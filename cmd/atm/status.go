package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var statusVerb = &cmdline.Verb{
	Name: "status", Args: "[AGENT]", Summary: "one agent in full, and the evidence",
	Examples: []string{"atm status bob", "atm status bob --json"},
	Notes:    []string{"unknown: there is no evidence, which is neither idle nor off."},
	Flags: []cmdline.Flag{
		{Name: "as-wire", Kind: cmdline.String, Arg: "missiond", Usage: "as the PTY manager of that name writes it"},
	},
	MaxArgs: 1,
	Run:     run(status),
}

func status(ctx context.Context, e *env) error {
	if v := e.String("as-wire"); e.Given("as-wire") && v != "missiond" {
		return cmdline.Usage("--as-wire %s: there is only missiond", cmdline.Escape(v)).WithHint("atm status --as-wire missiond; events have their own: atm events --as-wire daemon")
	}
	var name wire.Name
	if len(e.Args) > 0 {
		if err := e.open(); err != nil {
			return err
		}
		b, err := e.member(e.Args[0])
		if err != nil {
			return err
		}
		if e.team, err = e.root.Team(b.Address().Team); err != nil {
			return err
		}
		name = b.Agent()
	} else {
		if err := e.who(); err != nil {
			return err
		}
		name = e.me.Agent()
	}
	m, err := e.team.Status(ctx, name)
	if err != nil {
		return err
	}
	switch {
	case e.Given("as-wire"):
		slot := e.team.Slot(m)
		e.warnSlot(m, slot)
		line, err := wire.Marshal(slot)
		if err != nil {
			return err
		}
		_, err = e.Stdout.Write(append(line, '\n'))
		return err
	case e.JSON():
		return e.PrintJSON(m)
	}
	return e.print("%s", strings.Join(card(m, time.Now()), "\n"))
}

// card is a member in full, for people.
func card(m teams.Member, now time.Time) []string {
	t := teams.Table{Now: now}
	head := t.Lines([]teams.Member{m})[0]
	out := []string{head}
	line := func(name, format string, args ...any) {
		out = append(out, fmt.Sprintf("  %-10s %s", name, fmt.Sprintf(format, args...)))
	}
	if w := m.WaitingOn; w != nil {
		ask := letter.Escape(w.Tool)
		if w.Prompt != "" {
			ask = strings.TrimLeft(ask+": "+letter.Clip(letter.Escape(strings.Join(strings.Fields(w.Prompt), " ")), 200), ": ")
		}
		line("asks", "%s %s ago: %s", w.Kind, letter.Span(max(0, now.Sub(w.Since))), ask)
	}
	if m.Kind == "person" {
		return out
	}
	if m.Held != "" {
		line("mail waits", "%d unread: %s", m.Unread, m.Held)
	}
	if m.TurnID != "" {
		s := string(m.TurnStatus) + ", " + letter.Escape(m.TurnID)
		for _, f := range []struct{ name, value string }{{"thread", m.ThreadID}, {"session", m.Session}, {"by", m.Transport}} {
			if f.value != "" {
				s += ", " + f.name + " " + letter.Escape(f.value)
			}
		}
		line("turn", "%s", s)
	}
	if l := m.LastTurn; l != nil {
		s := l.Status + " " + letter.Age(now, l.At)
		if l.DurationMS > 0 {
			s += ", after " + letter.Span(l.Duration())
		}
		line("last turn", "%s", s)
	}
	switch {
	case m.Running && m.PID > 0:
		line("presence", "online: its runner's lock is held, process %d", m.PID)
	case m.Running:
		line("presence", "online: its runner's lock is held")
	case m.PresenceAt == nil:
		line("presence", "unknown: no event, no runner")
	case m.RunnerGone:
		line("presence", "offline: its runner was killed; last event %s", letter.Age(now, *m.PresenceAt))
	case m.Presence == reducer.Offline:
		line("presence", "offline since %s", stamp(*m.PresenceAt))
	default:
		line("presence", "%s: last event %s", m.Presence, letter.Age(now, *m.PresenceAt))
	}
	if m.ReadAt != nil {
		line("last read", "%s", letter.Age(now, *m.ReadAt))
	}
	switch {
	case m.Errors == 0 && m.LastError != "":
		line("events", "%s", letter.Escape(m.LastError))
	case m.Errors > 0:
		line("errors", "%d, the last: %s", m.Errors, letter.Clip(letter.Escape(m.LastError), 200))
	}
	if m.Dropped != (reducer.Dropped{}) {
		line("dropped", "%d events, %d unknown, as its stream reports", m.Dropped.Dropped, m.Dropped.Unknown)
	}
	if m.Unknown > 0 {
		line("unknown", "events of kinds that atm does not know: %d", m.Unknown)
	}
	return out
}

// warnSlot says what missiond's words cannot: it has none for a person, nor for
// somebody of whom nothing is known, and always a log.
func (e *env) warnSlot(m teams.Member, slot wire.PTYAgentInfo) {
	switch {
	case m.State == reducer.WordPerson:
		e.Warn("%s is a person: %s is the nearest that missiond can say", m.Name, slot.State)
	case m.State == reducer.WordUnknown:
		e.Warn("the state of %s is unknown: %s is the nearest that missiond can say", m.Name, slot.State)
	}
	if _, err := os.Stat(slot.LogFile); err != nil {
		e.Warn("there is no recording of %s yet: logFile is where it will lie", m.Name)
	}
}
