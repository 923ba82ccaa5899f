package mail

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

const batchExample = `echo '{"to":"bob","body":"…","requires_ack":true}' | atm send --batch`

type batchResult struct {
	Line int `json:"line"`
	*app.Outcome
	Error *failure.Error `json:"error,omitempty"`
}

func sendBatch(ctx context.Context, s *app.Scope, p *command.Printer, isAlone bool) error {
	if !isAlone || !command.HasText(p.In) {
		return failure.Usage("--batch takes no other flag and no text: it reads messages from a pipe or a file on stdin").WithHint(batchExample)
	}
	if err := p.CheckStdin(); err != nil {
		return err
	}
	whole := ctx // also at an interrupt
	ctx, stop := app.Interruptible(ctx)
	defer stop()
	progress := func(int) {}
	if !p.IsTerminal() { // where each message gets its line
		progress = p.Progress("sent %d messages")
	}
	isAnyBad, last, sent := false, 0, 0
	var printErr error // the lines that follow are sent all the same
	err := command.EachLine(readUntil(ctx, p.In), func(n int, text []byte, err error) error {
		r := batchResult{Line: n, Outcome: s.NewOutcome("")}
		var m *app.Message
		if err == nil {
			m, err = batchMessage(s, text)
		}
		var out *app.Outcome
		if err == nil {
			out, err = s.Send(whole, m)
		}
		if err != nil {
			r.Error = s.Given.Explain(err)
		} else {
			r.Outcome = out
			warn(p, out)
		}
		last, sent = n, sent+min(len(r.Delivered), 1)
		progress(sent)
		isAnyBad = isAnyBad || err != nil || len(r.Failed) > 0
		printErr = cmp.Or(printErr, command.WriteJSON(p.Out, r))
		return ctx.Err()
	})
	if errors.Is(err, context.Canceled) {
		e := failure.Failed("interrupted: sent %s, of the first %s", letter.Many(sent, "message"), letter.Many(last, "line")).
			WithHint("to send the rest: tail -n +%d FILE | atm send --batch", last+1)
		e.Exit = failure.ExitInterrupted
		return e
	}
	if err = cmp.Or(err, printErr); err == nil && isAnyBad {
		return failure.Exit(failure.ExitFailed)
	}
	return err
}

// readUntil returns a reader of f that fails as soon as the context has ended, though f may be a pipe that stays open.
func readUntil(ctx context.Context, f io.Reader) io.Reader {
	r, w := io.Pipe()
	context.AfterFunc(ctx, func() { w.CloseWithError(ctx.Err()) })
	go func() { // ends with f, or the process
		_, err := io.Copy(w, f)
		w.CloseWithError(err)
	}()
	return r
}

func batchMessage(s *app.Scope, line []byte) (*app.Message, error) {
	m, to, err := wire.DecodeOutgoing(line, s.Team.Name)
	if err != nil {
		return nil, failure.Usage("%s", strings.TrimPrefix(err.Error(), "line 1, ")).WithHint(batchExample)
	}
	if len(to) == 0 {
		return nil, failure.Usage("\"to\" is missing").WithHint(batchExample)
	}
	if strings.TrimSpace(m.Body) == "" && m.Payload == nil {
		return nil, failure.Usage("\"body\" is missing or blank").WithHint(batchExample)
	}
	me, old := s.Me.Address(), teams.OwnMessage(s.Me, m.Supersedes)
	isForged := m.From != (wire.Address{}) && m.From != me || m.HasOurMeta()
	replacesOthers := m.Supersedes != "" && (old == nil || old.From != me)
	if isForged || replacesOthers {
		return nil, failure.Refused("\"from\", \"supersedes\" or \"meta.atm\" is not yours to set").WithHint("leave it out")
	}
	m.Hop, m.SentAt = 0, time.Time{}
	extra, _ := wire.ReadObject(m.Extra)
	once := extra.Text("once") // no field of a message
	if extra.Has("once") && (m.ID != "" || maildir.CheckKeyName(once) != nil) {
		return nil, failure.Usage("\"once\" must be one line of 1 to 200 bytes, without \"id\"").WithHint(batchExample)
	}
	m.Extra = slices.DeleteFunc(extra, func(f wire.Member) bool { return f.Name == "once" }).Encode()
	out := &app.Message{Content: m, To: to, Once: once, Again: "atm send … --id "}
	if m.InReplyTo != "" {
		out.Parent = teams.OwnMessage(s.Me, m.InReplyTo)
	}
	return out, nil
}
