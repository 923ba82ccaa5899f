package post

import (
	"context"
	"strings"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/headers"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/wire"
)

// MayBeAcked returns which of the messages that a mailbox's owner has sent may be acknowledged or withdrawn: there is an
// ack, a recipient has finished with it, or one is on another host. All recipients of the others owe an ack, if one was
// asked for. It opens no message whose header is kept.
func MayBeAcked(ctx context.Context, r *teamdir.Root, sender *maildir.Box) map[wire.ID]bool {
	may, recipients := map[wire.ID]bool{}, map[string]bool{}
	acks := maildir.Range{Unread: true, Owed: true, Done: true, Archive: true, With: headers.IsAck | headers.IsReply}
	acks.Keep = func(h *headers.Header) bool {
		may[h.InReplyTo.ID()] = true
		return false
	}
	asked := maildir.Range{Sent: true, With: headers.WantsAck, Texts: true}
	asked.Keep = func(h *headers.Header) bool {
		for _, to := range strings.Fields(h.About)[2:] {
			recipients[to] = true
			if a, err := wire.ParseAddress(to, ""); err != nil || a.Host != "" {
				may[h.ID.ID()] = true
			}
		}
		return false
	}
	none := func(*wire.Item) bool { return true }
	inbox.Walk(ctx, sender, acks, none)
	sender.Walk(asked, none)
	for to := range recipients {
		a, err := wire.ParseAddress(to, "")
		if err != nil || a.Host != "" {
			continue
		}
		if box, err := r.Mailbox(a); err == nil {
			box.Entries(maildir.Range{Done: true, Archive: true, Withdrawn: true}, func(_ maildir.Folder, id wire.ID) bool {
				may[id] = true
				return true
			})
		}
	}
	return may
}
