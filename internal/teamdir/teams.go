// Package teamdir opens a root, its teams and their members. What is done with them lies in packages below it, each of
// which may use those before it:
//
//	programs   the programs of members: what their hooks noted, the ways into them, the servers that they share
//	presence   how members are, and what each waits for; members on other machines; whom @reviewers means
//	push       mail is given to programs that people started themselves
//	search     what lies in all mailboxes: a thread, answers, a text
//	post       a message goes out, also later; its acks and answers; how far it got
//	reply      a question, and the wait for its answer
//	input      what people say in sessions, and what they think of drafts
//	notices    what happens is told: to those who asked for it, to their commands, to those who wait for an answer
//	edits      who edits a file; who has claimed it
//
// Package maildir handles a single mailbox, and package teams is this for programs that are not atm.
//
//	<root>/                              see package rootdir
//	<root>/<team>/                       a team: a directory with .locks
//	<root>/<team>/<agent>/               a member, see package maildir
//	<root>/<team>/.worktrees/<agent>/    a member's own git worktree
//	<root>/<team>/.bridge/<host>/        the outbox for members on another host, until a bridge sends it
//
// There is no roster file that could be damaged. What is in a root may be a stranger's: callers check
// Root.CheckAccepted before they start, type, approve or obey anything. Mailboxes check it before they hand anything
// over.
//
// The packages read neither the environment nor flags. Roots and Teams are safe for concurrent use.
package teamdir
