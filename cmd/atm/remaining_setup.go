package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/internal/outlet"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/config"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
	"golang.org/x/term"
)

// What is left of the set-up and session verbs for as long as other verbs here use it.

// namesOf checks names before anything is made of them.
func namesOf(words []string) ([]wire.Name, error) {
	var out []wire.Name
	for _, w := range words {
		for _, part := range strings.Split(w, ",") {
			n, err := wire.ParseName(part)
			if err != nil {
				return nil, cmdline.Usage("%v", err)
			}
			out = append(out, n)
		}
	}
	return out, nil
}

// addAll makes the mailboxes that are not there yet.
func addAll(ctx context.Context, t *teams.Team, names []wire.Name) ([]wire.Name, error) {
	added := []wire.Name{}
	for _, n := range names {
		err := t.Create(ctx, n)
		if errors.Is(err, mailbox.ErrExists) {
			continue
		}
		if err != nil {
			return added, err
		}
		added = append(added, n)
	}
	return added, nil
}

// table is how rows are shown here.
func (e *env) table() *teams.Table {
	t := &teams.Table{Now: time.Now()}
	if e.terminal() {
		t.Colour = e.Getenv("NO_COLOR") == "" && e.Getenv("TERM") != "dumb"
		if w, _, err := term.GetSize(int(e.Stdout.Fd())); err == nil {
			t.Width = w
		}
	}
	return t
}

// answerDraft says yes or no to a draft, or to one artifact of it, as human
// input to the agent that made it. Who may answer was asked before.
func (e *env) answerDraft(ctx context.Context, q policy.Question, deny bool, reason string, artifact *string) (teams.SessionResult, error) {
	d, err := e.team.FindDraft(ctx, q.Agent, wire.UUID(q.ID))
	if err != nil {
		return teams.SessionResult{}, err
	}
	in := wire.HumanInput{Kind: "approve", DraftID: d.ID, ArtifactURI: artifact}
	if deny {
		in.Kind, in.Reason = "reject", reason
	}
	out, err := e.team.AnswerDraft(ctx, d, e.saying(in))
	return out, explainSession(err)
}

// answerDraftVerb is approve and reject of a draft.
func (e *env) answerDraftVerb(ctx context.Context, q policy.Question, deny bool) error {
	if len(e.Args) > 1 {
		return cmdline.Usage("a draft has no options").WithHint("atm approve %s, or atm reject %s --reason \"…\"", q.ID, q.ID)
	}
	var artifact *string
	if e.Given("artifact") {
		uri := e.String("artifact")
		artifact = &uri
	}
	reason := ""
	if deny {
		reason = e.String("reason")
	}
	out, err := e.answerDraft(ctx, q, deny, reason, artifact)
	if err != nil {
		return err
	}
	if out.Unlogged != nil {
		e.Warn("delivered; the session's log could not be written: %v", out.Unlogged)
	}
	did := "approved"
	if deny {
		did = "rejected"
	}
	if e.JSON() {
		doc := map[string]any{"id": q.ID, "agent": q.Agent, "kind": teams.KindDraft, "done": did, "message": out.Message.ID}
		if artifact != nil {
			doc["artifact_uri"] = *artifact
		}
		return e.PrintJSON(doc)
	}
	what := "draft " + q.ID
	if artifact != nil {
		what = letter.Clip(letter.Escape(*artifact), 200) + " in " + what
	}
	return e.print("%s: %s %s (sent %s)", q.Agent, did, what, out.Message.ID.Short(6))
}

// explainSession gives an error of a session its exit code and the way out.
func explainSession(err error) error {
	var many *session.ManyError
	var file *session.FileError
	var refused *wire.SessionError
	var answered *teams.DraftAnsweredError
	switch {
	case errors.As(err, &many):
		ids := make([]string, len(many.IDs))
		quoted := make([]wire.ID, len(many.IDs))
		for i, id := range many.IDs {
			ids[i], quoted[i] = string(id), wire.ID(id)
		}
		return cmdline.Ambiguous("%s", err).WithHint("one of these: %s", shorts(quoted)).WithCandidates(ids...)
	case errors.As(err, &file):
		return cmdline.Failed("%s", err).WithHint("look at it, and move it away or mend it: what wrote it there was not atm")
	case errors.Is(err, session.ErrNotFound):
		return cmdline.NotFound("%s", err).WithHint("atm session ls --all lists them")
	case errors.As(err, &answered):
		return cmdline.Refused("%s", err).WithHint("atm show %s shows the answer", answered.Answer.ID.Short(6))
	case errors.As(err, &refused):
		return cmdline.Refused("%s", refused.Reason).WithHint("atm session ls --all shows the state of each")
	case errors.Is(err, teams.ErrNoSessions), errors.Is(err, teams.ErrNoHumanInput):
		return cmdline.Refused("%s", err).WithHint("team.toml is for a person to change")
	}
	return err
}

// saying is what I say to a session.
func (e *env) saying(in wire.HumanInput) teams.SessionInput {
	return teams.SessionInput{From: e.me, Input: in, Origin: e.origin(), Person: e.person()}
}

// tomlMistakes is the error of who needs a team.toml that has some: all are said.
func (e *env) tomlMistakes(wrong *config.Error) error {
	lines := mistakeLines(wrong)
	if e.JSON() {
		return cmdline.Failed("%s: %s", wrong.Path, strings.Join(lines, "; ")).WithHint("atm doctor")
	}
	for _, line := range lines {
		e.Warn("team.toml, %s", line)
	}
	return cmdline.Failed("%s is not in order", wrong.Path).WithHint("atm doctor names the same")
}

// mistakeLines are the mistakes of a team.toml, a line each.
func mistakeLines(wrong *config.Error) (lines []string) {
	for _, m := range wrong.Mistakes {
		line := fmt.Sprintf("line %d: %s", m.Line, letter.Escape(m.Text))
		if near, ok := nearest(m); ok {
			line += fmt.Sprintf("; did you mean %q?", near)
		}
		lines = append(lines, line)
	}
	return lines
}

func nearest(m config.Mistake) (string, bool) {
	if m.Word == "" {
		return "", false
	}
	return cmdline.Nearest(m.Word, m.Known)
}

// eachLook calls look, again whenever a mailbox or a log changed, a member came
// or went, and every so often besides (0: only as often as what no file tells,
// such as a runner's lock, needs).
func (e *env) eachLook(ctx context.Context, every time.Duration, look func() error) error {
	if every == 0 {
		every = 2 * time.Second
	}
	var w *watcher.Watcher
	var watched []wire.Name
	defer func() {
		if w != nil {
			w.Close()
		}
	}()
	for {
		names, err := e.team.Agents()
		if err != nil {
			return err
		}
		if w == nil || !slices.Equal(names, watched) {
			if w != nil {
				w.Close()
			}
			boxes, err := e.team.Boxes()
			if err != nil {
				return err
			}
			if w, err = watcher.Open(ctx, boxes, watcher.Options{Messages: true, Events: true}); err != nil {
				return err
			}
			watched = names
		}
		if err := look(); err != nil {
			return err
		}
		if err := settle(ctx, w, every); err != nil {
			return err
		}
	}
}

// settle waits for something to happen, at most so long, and then until
// nothing has for a moment: a burst is one repainting.
func settle(ctx context.Context, w *watcher.Watcher, most time.Duration) error {
	limit, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for wait := most; ; wait = 30 * time.Millisecond {
		c, stop := context.WithTimeout(limit, wait)
		_, err := w.Next(c) // an entry's error is one of looking, which Rows has as well
		stop()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, context.DeadlineExceeded):
			return nil
		case err != nil:
			return err
		}
	}
}

// eachChange calls show with the rows at every look (eachLook).
func (e *env) eachChange(ctx context.Context, every time.Duration, show func([]teams.Member, teams.Stats) error) error {
	return e.eachLook(ctx, every, func() error {
		rows, stats, err := e.team.Members(ctx)
		if err != nil {
			return err
		}
		return show(rows, stats)
	})
}

// paintTeam shows the team on a screen of its own, until q or an interrupt; the
// last table stays below what was there.
func (e *env) paintTeam(ctx context.Context) error {
	s := outlet.Screen{Out: e.Stdout}
	if e.Stdin != nil && term.IsTerminal(int(e.Stdin.Fd())) {
		s.In = e.Stdin
	}
	s.Open()
	var last []string
	defer func() { s.Close(last) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	typed := make(chan struct{})
	go func() {
		defer close(typed)
		select {
		case <-s.Quit():
			cancel()
		case <-ctx.Done():
		}
	}()
	err := e.eachChange(ctx, time.Second, func(rows []teams.Member, _ teams.Stats) error {
		t := e.table()
		last = t.Lines(rows)
		if _, h, err := term.GetSize(int(e.Stdout.Fd())); err == nil {
			t.Height = h
		}
		return s.Paint(t.Lines(rows))
	})
	cancel()
	<-typed
	select {
	case <-s.Quit():
		return nil
	default:
		return err
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
