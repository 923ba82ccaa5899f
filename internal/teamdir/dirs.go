package teamdir

import (
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/wire"
)

// SubscriptionsDir is in a team's directory. Usually it is not there.
const SubscriptionsDir = ".subscriptions"

// EditsDir has who edits what, and who has claimed it (package edits).
const EditsDir = ".edits"

// BadEnvelopes is the directory of the envelopes that a team's bridge has rejected: each under its SHA-256, with the
// reason in a second file. The bridge tries an envelope without a reason again.
const BadEnvelopes = maildir.BridgeDir + "/bad"

// ReceivedDir is the directory in which the bridge keeps what it knows of received mail.
const ReceivedDir = maildir.BridgeDir + "/received"

// RowsDir is the directory in which the bridge stores other hosts' rows, as <host>.json.
const RowsDir = maildir.BridgeDir + "/rows"

func SubscriberFile(name wire.Name) string { return SubscriptionsDir + "/" + string(name) + ".json" }
