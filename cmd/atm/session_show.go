package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

func sessionLs(ctx context.Context, e *env) error {
	if err := e.open(); err != nil {
		return err
	}
	list, bad, err := e.team.Sessions().List()
	if err != nil {
		return err
	}
	for _, b := range bad {
		e.Warn("%v", b)
	}
	waiting := e.waitingDrafts(ctx)
	var shown []*session.Session
	over := 0
	for _, s := range list {
		if s.State.Alive() {
			if now, err := e.tended(ctx, s.SessionID); err == nil {
				s = now
			}
		}
		if !s.State.Alive() && !e.Bool("all") {
			over++
			continue
		}
		shown = append(shown, s)
	}
	if e.JSON() {
		docs := []any{}
		for _, s := range shown {
			docs = append(docs, sessionDocument{s, waiting, false})
		}
		return e.PrintJSON(map[string]any{"sessions": docs})
	}
	for _, s := range shown {
		if err := e.print("%s", sessionLine(s, waiting)); err != nil {
			return err
		}
	}
	switch {
	case over > 0:
		return e.print("%d over: atm session ls --all", over)
	case len(shown) == 0:
		return e.print("no sessions: atm session new --agent NAME")
	}
	return nil
}

// waitingDrafts are the drafts that have no answer yet, by their ids.
func (e *env) waitingDrafts(ctx context.Context) map[wire.UUID]bool {
	drafts, err := e.team.Drafts(ctx)
	if err != nil {
		e.Warn("%v", err)
	}
	out := map[wire.UUID]bool{}
	for _, d := range drafts {
		out[d.ID] = d.Answer == nil
	}
	return out
}

// lived is how long a session has gone on, or went on until it was over.
func lived(s *session.Session) string {
	if s.State.Alive() {
		return s.Elapsed(time.Now())
	}
	return s.Elapsed(s.UpdatedAt)
}

func sessionLine(s *session.Session, waiting map[wire.UUID]bool) string {
	line := fmt.Sprintf("%s  %s  %s  %s  %s", wire.ID(s.SessionID).Short(6), s.AgentID, s.State, lived(s), letter.Clip(letter.Escape(s.ChannelID), 60))
	n := 0
	for _, id := range s.DraftIDs {
		if waiting[id] {
			n++
		}
	}
	switch {
	case n == 1:
		line += "  1 draft waits"
	case n > 1:
		line += fmt.Sprintf("  %d drafts wait", n)
	}
	return line
}

// sessionDocument is a session in JSON: as it lies on disk, and what is made of
// that.
type sessionDocument struct {
	*session.Session
	waiting map[wire.UUID]bool
	log     bool // with its messages
}

// MarshalJSON puts what is made of a session behind its own fields.
func (d sessionDocument) MarshalJSON() ([]byte, error) {
	plain := d.InteractiveSession
	if !d.log {
		plain.Messages = nil
	}
	own, err := wire.Marshal(plain)
	if err != nil {
		return nil, err
	}
	more := struct {
		Alive   bool        `json:"alive"`
		Elapsed string      `json:"elapsed"`
		Count   uint64      `json:"message_count"`
		Waiting []wire.UUID `json:"waiting_drafts"`
	}{Alive: d.State.Alive(), Elapsed: lived(d.Session), Waiting: []wire.UUID{}}
	_, more.Count = d.Entries(0)
	for _, id := range d.DraftIDs {
		if d.waiting[id] {
			more.Waiting = append(more.Waiting, id)
		}
	}
	made, err := json.Marshal(more)
	if err != nil {
		return nil, err
	}
	return wire.Join(own, made)
}

// printSession prints one session, as JSON or in a line.
func (e *env) printSession(s *session.Session) error {
	if e.JSON() {
		return e.PrintJSON(map[string]any{"session": sessionDocument{s, nil, true}})
	}
	return e.print("%s", sessionLine(s, nil))
}

func sessionShow(ctx context.Context, e *env) error {
	id, err := e.sessionNamed(e.Args[0])
	if err != nil {
		return err
	}
	s, err := e.tended(ctx, id)
	if err != nil {
		return explainSession(err)
	}
	waiting := e.waitingDrafts(ctx)
	if e.JSON() {
		return e.PrintJSON(map[string]any{"session": sessionDocument{s, waiting, true}})
	}
	e.print("session %s with %s: %s, %s", s.SessionID, s.AgentID, s.State, lived(s))
	about := "channel " + letter.Escape(s.ChannelID)
	if s.GoalID != session.NoGoal {
		about += ", goal " + string(s.GoalID)
	}
	if !s.GoalCompleted().IsZero() {
		about += ", complete " + letter.Age(time.Now(), s.GoalCompleted())
	}
	e.print("%s", about)
	for _, d := range s.Drafts() {
		state := "answered"
		if waiting[d.ID] {
			state = "waits"
		}
		e.print("draft %s %s: %s", d.ID, state, letter.Clip(letter.Escape(d.Summary), 200))
	}
	entries, all := s.Entries(0)
	// The log is in the order of hearing, which may be another than that of saying.
	entries = slices.Clone(entries)
	slices.SortStableFunc(entries, func(a, b wire.SessionMessage) int { return a.Timestamp.Compare(b.Timestamp) })
	if n := e.Int("limit"); n > 0 {
		entries = entries[max(len(entries)-n, 0):]
	}
	if before := all - uint64(len(entries)); before > 0 {
		e.print("… %d before these", before)
	}
	for _, m := range entries {
		if err := e.print("%s", entryText(m, s.AgentID, e.terminal())); err != nil {
			return err
		}
	}
	return nil
}

// entryText is something that was said, for people: the time, who and the text.
// Further lines of the text stand indented, so that none looks like another's.
func entryText(m wire.SessionMessage, agent string, escape bool) string {
	who := m.Sender
	switch who {
	case session.SenderAgent:
		who = agent
	case session.SenderSystem:
		who = "--"
	}
	text := strings.TrimRight(m.Content, "\r\n")
	if escape {
		text = letter.EscapeBody(text)
	}
	text = strings.NewReplacer("\r\n", "\n    ", "\n", "\n    ", "\r", "\n    ", "\v", "\n    ", "\f", "\n    ", "\u0085", "\n    ", "\u2028", "\n    ", "\u2029", "\n    ").Replace(text)
	return stamp(m.Timestamp) + " " + letter.Escape(who) + ": " + text
}
