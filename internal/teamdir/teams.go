// Package teamdir opens a root, its teams and their members, and does everything that involves several mailboxes:
// sending, acknowledging, tracing, searching, asking. Package maildir handles a single mailbox, and package teams is this
// for programs that are not atm.
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
// The package reads neither the environment nor flags nor the working directory. Roots and Teams are safe for
// concurrent use.
//
// Where to look:
//
//	root, team, member       the root, its teams, their members; stats: how many do what
//	config, state, history   team.toml; a member's state and past, from its events
//	workdir, worktree        where members work; git worktrees of their own
//	restore                  that a backup is being restored
//	bridge                   members on other machines
//
//	send, ack, answer, ask   a message goes out; what counts as its ack and its answer; a question and its wait
//	trace, gate, search      how far a message got; why it waits, and when it will be seen; finding one
//	group                    whom @reviewers means
//	due, notify              answers that are overdue; mail of atm's own
//	subscribe, on            mail and commands of the user's on events
//	edits, claim             who edits a file; who has claimed it
//	later, retry             mail that is sent later; what was set aside is tried again
//	session                  sessions of members
//
//	runner                   members that atm runs
//	program, ways, push      programs that people started themselves; the ways into those; mail is given to them
//	says, thread             what a program says of itself; whose a conversation in a shared server is
//	conversation             who gives mail to one
//	pending, questiondir     what waits for an answer of a person; where a program's question is answered
package teamdir
