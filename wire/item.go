package wire

import (
	"encoding/json"
	"time"
)

// Item is a message in a mailbox. Its JSON has two members, "message" and "state".
type Item struct {
	*Message
	State State

	Lease          *Lease // the live lease of an unread message; nil: nobody has it
	TimesHandedOut int    // how often an unread message was handed out before, without being finished
	IsAside        bool   // it is not given out any more, after several of these
	IsWaiting      bool   // it was delivered to wait until it is due

	File string // the path of its file; another state has another one
	Size int64  // of the file, in bytes
}

// Lease is who has taken a job, and until when: then it is given out again.
type Lease struct {
	By    Address
	Until time.Time
}

// IsRead reports whether its owner has read it.
func (it *Item) IsRead() bool { return it.State == Owed || it.State == Done }

// itemJSON is an Item without the methods of its message.
type itemJSON struct {
	Message *Message `json:"message"`
	State   State    `json:"state"`
}

// MarshalJSON writes the message and its state.
func (it Item) MarshalJSON() ([]byte, error) { return json.Marshal(itemJSON{it.Message, it.State}) }

// UnmarshalJSON reads a message and its state. After an error the item is as it was.
func (it *Item) UnmarshalJSON(data []byte) error {
	var read itemJSON
	err := json.Unmarshal(data, &read)
	if err == nil {
		*it = Item{Message: read.Message, State: read.State}
	}
	return err
}

// Receipt says what became of a message at one of its recipients.
type Receipt struct {
	ID           ID      // of the message; "": nobody has such a mailbox
	Address      Address // of the recipient
	IsStored     bool    // it is in the mailbox, whatever Err says
	WasDelivered bool    // it was there before, from an earlier call
	Err          error   // such as mailbox.ErrNoMailbox, ErrIDTaken, or ErrNotDurable: then send it again, under its key or id
}
