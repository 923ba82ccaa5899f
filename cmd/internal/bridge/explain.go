package bridge

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentteammail/atm/cmd/internal/failure"
)

// explain names the way out of an error of the server, which is not on this machine.
func explain(err error) error {
	is := func(known ...error) bool {
		for _, k := range known {
			if errors.Is(err, k) {
				return true
			}
		}
		return false
	}
	hint := failure.Hint("")
	switch {
	case err == nil:
		return nil
	case is(nats.ErrNoResponders, jetstream.ErrJetStreamNotEnabled, jetstream.ErrJetStreamNotEnabledForAccount):
		err = fmt.Errorf("the server has no JetStream (%w)", err)
		hint = "start it with nats-server -js, or enable jetstream in its configuration and for this account; waiting mail then goes out"
	case is(nats.ErrNoServers):
		hint = "start one there with nats-server -js; waiting mail then goes out"
	case is(nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked):
		hint = "`atm bridge --creds FILE`, or --nats nats://USER:PASSWORD@HOST:4222"
	case is(fs.ErrNotExist, fs.ErrPermission):
		hint = "`atm bridge --creds FILE`, or creds under [bridge] in team.toml"
	case is(context.DeadlineExceeded, nats.ErrTimeout):
		err = fmt.Errorf("the server does not answer (%w)", err)
		hint = "look into its log: it may be busy, or this login may not use $JS.API.>, $KV.>, $O.> and atm.>"
	default:
		hint = "look into the server's log; what is not sent waits in the outbox"
	}
	return failure.Failed("%w", err).WithHint("%s", hint)
}

// line renders an error with its way out on one line.
func line(err error) string {
	if e, ok := errors.AsType[*failure.Error](err); ok && e.Hint != "" {
		return err.Error() + "; " + e.Hint.String()
	}
	return err.Error()
}
