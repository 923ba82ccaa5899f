// Package delivery is what happens to a message between "unread" and "read": one table for all who carry mail to an
// agent's program, and one interface for the ways into it. It is pure: the carrier carries the effects out.
//
// Three carry: a runner, which types and pushes; whoever sends, who pushes; and a hook, whose answer has the mail. Each claims
// a message, so that nobody else gives it, gives it by a Way, and waits for a receipt: something
// that the program's own hook, server, protocol or screen shows. Only then is the message read.
//
//	unread → claimed → put → sent → read
//	            ↓        ↓      ↓
//	         given back  or  unsure
//
// What is given back is unread as it was before. What is unsure is unread, and is given once more, marked as a possible
// repeat.
package delivery

import (
	"context"
	"errors"
	"time"

	"github.com/agentteammail/atm/wire"
)

// A State says how far a message has come.
type State string

const (
	Unread  State = "unread"
	Claimed State = "claimed"    // one carrier has it, and the program has nothing of it
	Put     State = "put"        // it lies where the program keeps what it has not acted on: its draft, its queue
	Sent    State = "sent"       // the program acts on it as soon as it can
	Read    State = "read"       // its model has it
	Back    State = "given back" // the program does not have it, and never will
	Unsure  State = "unsure"     // the program may have it
)

// An Event is what a carrier learns.
type Event string

const (
	Got     Event = "got"     // the claim
	Moot    Event = "moot"    // it may not be given now: it was withdrawn, or a gate has shut
	In      Event = "in"      // it lies before the program: see Put
	Off     Event = "off"     // it was sent off, or the way cannot tell: see Sent
	NotIn   Event = "not in"  // the way did not take it
	Receipt Event = "receipt" // the model has it
	Silent  Event = "silent"  // no receipt in time
	Gone    Event = "gone"    // what was put was taken back
	Kept    Event = "kept"    // and that was not possible
	Ended   Event = "ended"   // the program has ended, or has forgotten its conversation
)

// An Effect is what the carrier does then.
type Effect string

const (
	Nothing  Effect = ""
	Give     Effect = "give"      // by the way
	Await    Effect = "await"     // a receipt
	TakeBack Effect = "take back" // and say Gone or Kept
	MarkRead Effect = "mark read"
	Release  Effect = "release" // the claim
	Repeat   Effect = "repeat"  // release the claim; whoever gives it next marks it as a possible repeat
)

type step struct {
	State
	Effect
}

// table has what each event means in each state. What it does not have changes nothing.
var table = map[State]map[Event]step{
	Unread: {
		Got: {Claimed, Give},
	},
	Claimed: {
		In:      {Put, Await},
		Off:     {Sent, Await},
		Receipt: {Read, MarkRead}, // the program is faster than its way
		Moot:    {Back, Release},
		NotIn:   {Back, Release},
		Ended:   {Back, Release},
	},
	Put: {
		Off:     {Sent, Await},
		Receipt: {Read, MarkRead},
		Moot:    {Put, TakeBack},
		NotIn:   {Put, TakeBack},
		Silent:  {Put, TakeBack},
		Gone:    {Back, Release},
		Kept:    {Unsure, Repeat},
		Ended:   {Unsure, Repeat},
	},
	Sent: {
		Receipt: {Read, MarkRead},
		NotIn:   {Sent, TakeBack},
		Silent:  {Sent, TakeBack},
		Gone:    {Unsure, Repeat}, // it may have acted before
		Kept:    {Unsure, Repeat},
		Ended:   {Unsure, Repeat},
	},
}

// Next returns what an event changes, and what is to be done.
func Next(s State, e Event) (State, Effect) {
	to, ok := table[s][e]
	if !ok {
		return s, Nothing
	}
	return to.State, to.Effect
}

// IsOver reports whether the carrier has nothing more to do with the message.
func (s State) IsOver() bool { return s == Read || s == Back || s == Unsure }

// A Text is what a program is given: messages as a frame each, of which the first has ID.
type Text struct {
	ID   wire.ID
	From string // whom the program may name as its sender: a member's name
	Body string

	IsUrgent bool // it may break into what the program does
}

// A Way is a way into the conversation that a program shows. Its methods return soon, or when ctx ends. They are called one
// at a time.
type Way interface {
	// Look returns nil if the way is open now, else why not.
	Look(ctx context.Context) error
	// Put gives the program a text. After ErrUnsure it may have it; after another error it has not.
	Put(ctx context.Context, t Text) error
	// Has reports whether the program has the message that a text began with. ErrSilent: this way cannot tell.
	Has(ctx context.Context, id wire.ID) (bool, error)
	// TakeBack takes a text back that began with that message, and reports whether the program has not acted on it and never
	// will.
	TakeBack(ctx context.Context, id wire.ID) (bool, error)
}

// Patience is how long an idle program may be silent about what it was given, before that is Silent.
const Patience = 15 * time.Second

// ErrUnsure is among the causes of an error of Put if the program may have the text.
var ErrUnsure = errors.New("the program may have got it")

// ErrSilent is Has's error for a way that tells nothing: then the program's hooks do.
var ErrSilent = errors.New("this way tells nothing")

// EventOf returns the event that Put's error means.
func EventOf(err error) Event {
	if err == nil || errors.Is(err, ErrUnsure) {
		return Off
	}
	return NotIn
}
