package teamdir

import (
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/wire"
)

// LaterDir has the messages of a team's members that are to be sent later. When one is due, whatever runs in the team
// delivers it (DeliverLater) under the id that it has, so a process that is killed then makes no second message.
//
//	.later/<time>.<sender>.<id>.json    due at that time: names alone say whether anything is
//	.later/withdrawn/                   taken back before it was sent
//	.later/bad/                         could not be delivered; <name>.reason says why
//	.later/….after.json, .later/after/  waits for other messages (package post)
const LaterDir = ".later"

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
