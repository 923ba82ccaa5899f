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

// batchResult is one line of what send --batch prints.
type batchResult struct {
	Line int `json:"line"`
	*result
	Error *command.Error `json:"error,omitempty"`
}

// sendBatch sends NDJSON messages of stdin, and prints each result once its message
// is durable.
func sendBatch(c *cli.Context, s *command.Scope) error {
	for _, f := range append(messageFlags(), &cli.StringSliceFlag{Name: "to"}) {
		if name := f.Names()[0]; c.IsSet(name) {
			return command.Usage("--batch takes no --%s: what it would say is in each line", name).
				WithHint(`echo '{"to":"bob","body":"…","subject":"…","requires_ack":true}' | atm send --batch`)
		}
	}
	if c.Args().Present() || !command.HasText(os.Stdin) {
		return command.Usage("--batch takes its messages from stdin alone").WithHint(`echo '{"to":"bob","body":"…"}' | atm send --batch`)
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
		r := batchResult{Line: n}
		var err error
		if r.result, err = sendLine(ctx, c, s, in.Bytes()); err != nil {
			r.result, r.Error = newResult(s, "", ""), command.Explain(c, err)
		}
		if err != nil || len(r.Failed) > 0 {
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
		return nil, command.Usage("%s", strings.TrimPrefix(err.Error(), "line 1, ")).WithHint(`a line is {"to":"bob","body":"…"}`)
	}
	if m.From != (wire.Address{}) && m.From != s.Me.Address() {
		return nil, command.Refused("from: you are %s", s.Me.Address()).WithHint("leave \"from\" out")
	}
	if m.Body == "" && m.Payload == nil {
		return nil, command.Usage("the line has no \"body\"").WithHint(`a line is {"to":"bob","body":"…"}`)
	}
	if m.HasOurMeta() {
		return nil, command.Usage("meta: atm is ours").WithHint("take another key")
	}
	if old := s.Root.OwnMessage(s.Me, m.Supersedes); m.Supersedes != "" && (old == nil || old.From != s.Me.Address()) {
		return nil, command.Refused("supersedes: %s is not a message of yours", m.Supersedes.Short(6)).WithHint("atm ls --sent")
	}
	m.Hop, m.Origin, m.SentAt = 0, s.Origin(), time.Time{}
	o := &teams.Outgoing{From: s.Me, Message: m, Given: m.ID != ""}
	if o.To, err = addresses(s, strings.Join(to, ",")); err != nil {
		return nil, err
	}
	if m.InReplyTo != "" {
		o.Parent = s.Root.OwnMessage(s.Me, m.InReplyTo)
	}
	if err := mayAbort(s, o); err != nil {
		return nil, err
	}
	if err := s.Root.Prepare(o); err != nil {
		return nil, err
	}
	return post(ctx, c, s, o), nil
}
