package mail

import (
	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
)

// otherWords are what other programs call what the verbs here do.
var otherWords = []*cli.Command{
	cmdline.NoCommand("delete rm remove del trash dismiss", "a message needs no deleting once atm read has shown it; atm withdraw ID takes back what you sent; an agent: atm team retire NAME"),
	cmdline.NoCommand("mail email mailbox mailx mutt chat", `atm read reads, atm send NAME "…" writes, atm ls lists`),
	cmdline.NoCommand("forward fwd share resend bounce redirect", "atm show ID --raw | atm send NAME -"),
	cmdline.NoCommand("say mention push sendmail assign delegate handoff hand-off", `atm send NAME "…"`),
	cmdline.NoCommand("comment re followup follow-up reply-to reply-all replyall", `atm reply ID "…"; to everybody it went to: atm reply ID "…" --all`),
	cmdline.NoCommand("review react agree decline", `atm reply ID "…" says what you think; atm ack ID: I will act on it; atm ack ID --declined "…"`),
	cmdline.NoCommand("schedule scheduled delay cron later at", `atm send NAME "…" --at 14:00, or --in 2h, sends it later; atm ls --sent lists what waits`),
	cmdline.NoCommand("tag label annotate star flag", `atm send NAME "…" --meta K=V stores any label with the message`),
	cmdline.NoCommand("broadcast announce send-all wall", `atm send all "…" sends to everybody but you`),
	cmdline.NoCommand("done complete finish resolve close", `atm ack ID --done, or atm reply ID "Done."; a session: atm session complete ID`),
	cmdline.NoCommand("mark mark-read mark-all-read mark-as-read", "atm read ID marks it as read; atm unread ID puts it back"),
	cmdline.NoCommand("mark-unread nack unack return requeue undelete", "atm unread ID puts a message back"),
	cmdline.NoCommand("release", "a message: atm unread ID puts it back; a file: atm claim --release PATH"),
	cmdline.NoCommand("fail failed stuck", `atm ack ID --blocked "…" says that you cannot go on; what was not delivered: atm retry`),
	cmdline.NoCommand("bad dlq deadletter dead-letter dead-letters deadletters undelivered", "atm retry lists what was set aside"),
	cmdline.NoCommand("edit update amend replace supersede", `atm send NAME "…" --supersedes ID replaces what you sent`),
	cmdline.NoCommand("cancel revert revoke", "atm withdraw ID takes back what you sent; atm interrupt NAME ends a turn"),
	cmdline.NoCommand("sent outbox", "atm ls --sent lists what you sent, atm trace ID what became of it"),
	cmdline.NoCommand("receipt receipts delivery-status read-by seen-by", "atm trace ID"),
	cmdline.NoCommand("acks owed unacked", "those that you owe: atm ls --owed; those of what you sent: atm ls --sent"),
	cmdline.NoCommand("count unread-count", "atm ls --count"),
	cmdline.NoCommand("check-mail get-unread new-mail notifications", "atm ls lists unread mail, atm read reads it"),
	cmdline.NoCommand("head less more", "atm read shows new mail, atm show ID one message, atm ls a line for each"),
	cmdline.NoCommand("read-all", "atm read shows unread mail; atm ls --all lists read messages too"),
	cmdline.NoCommand("from", "atm read --from NAME"),
	cmdline.NoCommand("new", "new mail: atm read; a team: atm init NAME…; a session: atm session new --agent NAME"),
	cmdline.NoCommand("next pop dequeue", "atm read --limit 1 marks it, --peek does not; of a shared inbox: atm take NAME"),
	cmdline.NoCommand("threads conversations", "atm ls --all shows the ids; atm thread ID"),
	cmdline.NoCommand("lease leases extend renew", "atm take NAME leases the next message of a shared inbox; atm take --renew ID"),
	cmdline.NoCommand("await wait-for sleep", "atm wait waits for mail; atm wait --reply ID, atm wait --idle NAME"),
	cmdline.NoCommand("tail follow log logs stream listen monitor", "atm watch follows; atm watch --since 1h --no-follow shows the last hour; of one agent: atm watch NAME; from one: atm ls --from NAME"),
	cmdline.NoCommand("queue enqueue task tasks job jobs todo", `atm team add QUEUE --shared makes a shared inbox, atm send QUEUE "…" fills it, atm take QUEUE takes the next`),
	cmdline.NoCommand("subscribe subscription subscriptions alert alerts trigger on", "atm watch --mail-me 'idle NAME, error *' sends you mail about it; atm watch follows; a command: [[on]] in team.toml, and atm watch --run"),
	cmdline.NoCommand("unsubscribe", "atm watch --mail-me none"),
	cmdline.NoCommand("lock locks unlock reserve file-reservation-paths reservation reservations release-file-reservations", "atm claim PATH says that you edit it, atm claim --release PATH ends that; to wait for a lock: atm team add LOCK --shared, atm send LOCK README.md, atm take LOCK"),
	cmdline.NoCommand("unclaim", "atm claim --release PATH"),
	cmdline.NoCommand("channel channels room group groups", `atm send @GROUP "…" is to a group or a role of team.toml, which atm team shows, and [groups] in team.toml makes; else atm send bob,carol "…", or atm send all "…"`),
	cmdline.NoCommand("attachment attachments files download save", "atm show ID --save DIR saves the attachments"),
	cmdline.NoCommand("upload cp", "atm send NAME --attach FILE"),
	cmdline.NoCommand("ping", `atm status NAME; to wait until it has read: atm send NAME "…" --wait-read`),
	cmdline.NoCommand("nudge remind poke bump escalate", `atm send NAME "…" --thread ID; --urgent may end a turn`),
}
