package mail

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

const batchExample = `echo '{"to":"bob","body":"…","requires_ack":true}' | atm send --batch`

// batchResult is one line of what send --batch prints.
type batchResult struct {
	Line int `json:"line"`
	*result
	Error *command.Error `json:"error,omitempty"`
}

// sendBatch sends NDJSON messages of stdin, and prints each result once its message
// is durable.
func sendBatch(c *cli.Context, s *command.Scope) error {
	if c.NumFlags() > 1 || c.Args().Present() || !command.HasText(os.Stdin) {
		return command.Usage("--batch takes its messages from stdin alone, and no other flag").WithHint(batchExample)
	}
	ctx, stop := command.Interruptible(c.Context)
	defer stop()
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, wire.MaxFile+1)
	bad := 0
	for n := 1; in.Scan(); n++ {
		if len(bytes.TrimSpace(in.Bytes())) == 0 {
			continue
		}
		sent, err := sendLine(ctx, c, s, in.Bytes())
		r := batchResult{Line: n, result: sent}
		if err != nil {
			r.result, r.Error = newResult(s, "", ""), command.Explain(c, err)
		}
		if err != nil || len(sent.Failed) > 0 {
			bad++
		}
		if err := command.PrintJSON(r); err != nil {
			return err
		}
	}
	if in.Err() == nil && bad > 0 {
		return command.Exit(command.ExitFailed)
	}
	return in.Err()
}

// sendLine sends one message of a batch.
func sendLine(ctx context.Context, c *cli.Context, s *command.Scope, text []byte) (*result, error) {
	m, to, err := wire.DecodeOutgoing(text, s.Team.Name)
	if err != nil {
		return nil, command.Usage("%s", strings.TrimPrefix(err.Error(), "line 1, ")).WithHint(batchExample)
	}
	if m.Body == "" && m.Payload == nil {
		return nil, command.Usage("the line has no \"body\"").WithHint(batchExample)
	}
	old := s.Root.OwnMessage(s.Me, m.Supersedes)
	if m.From != (wire.Address{}) && m.From != s.Me.Address() || m.Supersedes != "" && (old == nil || old.From != s.Me.Address()) || m.HasOurMeta() {
		return nil, command.Refused("from, supersedes and meta.atm: what is not yours").WithHint("leave them out")
	}
	m.Hop, m.Origin, m.SentAt = 0, s.Origin(), time.Time{}
	o := &teams.Outgoing{From: s.Me, Message: m, Given: m.ID != ""}
	if o.To, err = addresses(s, strings.Join(to, ",")); err != nil {
		return nil, err
	}
	if m.InReplyTo != "" {
		o.Parent = s.Root.OwnMessage(s.Me, m.InReplyTo)
	}
	if err := prepare(s, o); err != nil {
		return nil, err
	}
	return post(ctx, c, s, o), nil
}
