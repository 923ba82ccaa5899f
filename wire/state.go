package wire

// State is where a message is in a mailbox.
type State string

// The states of a message. A done one may be in the archive.
const (
	Unread    State = "unread"
	Later     State = "later" // unread, and not due yet: no reader is shown it
	Owed      State = "owed"  // read, and its sender waits for an acknowledgement
	Done      State = "done"
	Withdrawn State = "withdrawn" // by its sender, before it was read
)
