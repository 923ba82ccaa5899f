// Package handover gives an agent's program its mail: with the answer to a call of one of its hooks, or pushed beside
// them. What later calls prove received is read; what may be lost is handed over once more, marked.
package handover

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/wire"
)

// sameMoment is how far apart the two calls of a hook that is installed twice may be.
const sameMoment = 2 * time.Second

// MaxPushed is how many pushed messages may wait in a session: Claude Code drops what is more than 30 at a time of one
// sender. The others go out with its hooks.
const MaxPushed = 20

// Call is one call of a hook of the agent's program, or one push beside them, and what it says of the mail that earlier
// ones gave to the program.
type Call struct {
	Session       string // the program's session; calls of other sessions prove nothing about this one
	Name          string // identifies the call in its session; a hook that is installed twice makes two calls of one name
	IsAmbiguous   bool   // a later call may have the same Name, so only calls at the same moment count as one
	ProvesReceipt bool   // the call proves that the session received the earlier answers
	IsNewProgram  bool   // the program has restarted: earlier answers may be lost
	EndsSession   bool   // the session ends, which proves nothing
	Forgets       string // what earlier calls whose Name starts so have answered may be lost; "": none
	CanCarryMail  bool   // the answer can carry mail
	Now           time.Time

	// IsPush says that the mail is not an answer to a hook, but is given to the program beside them. It may wait in the
	// program, so no other call proves that it was received than one that has it in its Shown.
	IsPush      bool
	KeepsPushed bool                      // with IsNewProgram: what was pushed is not lost, since a server has it
	Shown       []string                  // short ids (wire.ID.Short) of messages that the program shows its model with this call
	IsGone      func(session string) bool // reports whether the program of a session has ended; nil: that is not known
}

// A Handover is the mail for one call. The caller calls Sent or Release after it.
type Handover struct {
	*maildir.Handover
	IsFull   bool         // as many pushed messages as may wait in the session
	Repeated bool         // the same hook, installed twice, has just handed mail over: the program goes on
	Received []wire.Event // message_read of messages that this call proves received, for the caller to append
}

// HandOver settles what earlier calls gave to the program, and then claims unread mail for this one. The Handover is never
// nil; with an error it holds what was done before. Without mail and such claims no lock is taken.
func (call *Call) HandOver(ctx context.Context, box *maildir.Box, opt maildir.ReadOptions) (*Handover, error) {
	h := &Handover{Handover: &maildir.Handover{}}
	err := h.settle(ctx, box, call)
	if !call.CanCarryMail {
		return h, err
	}
	to := maildir.Recipient{Owner: maildir.OfSession(call.Session), Call: call.Name, Now: call.Now}
	if call.IsPush {
		to.Owner = maildir.PushedTo(call.Session)
		room := MaxPushed
		for _, g := range box.Given(call.Now) {
			if g.IsLive && g.To.Owner == to.Owner {
				room--
			}
		}
		if h.IsFull = room <= 0; h.IsFull {
			return h, err
		}
		if opt.Limit == 0 || opt.Limit > room {
			opt.Limit = room
		}
	}
	handover, handErr := box.HandOver(ctx, to, opt)
	h.Handover = handover
	for _, g := range box.Given(call.Now) {
		isNow := slices.ContainsFunc(h.Items, func(it *maildir.Item) bool { return it.ID == g.ID })
		h.Repeated = h.Repeated || g.IsLive && call.hasMade(g) && !isNow
	}
	return h, errors.Join(err, handErr)
}

// settle settles what earlier calls handed over. What the call proves received is read; what may be lost is handed over
// once more, also what a session has whose program has ended.
func (h *Handover) settle(ctx context.Context, box *maildir.Box, call *Call) (err error) {
	var received, lost []maildir.Given
	for _, g := range box.Given(call.Now) {
		switch _, effect := delivery.Next(delivery.Sent, call.eventOf(g)); effect {
		case delivery.Repeat:
			lost = append(lost, g)
		case delivery.MarkRead:
			received = append(received, g)
		}
	}
	err = box.Expire(ctx, lost, call.Now)
	events, settleErr := box.Settle(ctx, received)
	h.Received = events
	return errors.Join(err, settleErr)
}

// eventOf returns what the call says of a message that an earlier one gave to the program; "": nothing.
func (call *Call) eventOf(g maildir.Given) delivery.Event {
	switch {
	case call.mayLose(g):
		return delivery.Ended
	case call.proves(g):
		return delivery.Receipt
	}
	return ""
}

// hasMade reports whether this call handed it over, perhaps in another process.
func (call *Call) hasMade(g maildir.Given) bool {
	isNamed := call.isTo(g) && g.To.Call == call.Name && call.Name != ""
	isAtOnce := call.Now.Sub(g.To.Now).Abs() < sameMoment
	return isNamed && (isAtOnce || !call.IsAmbiguous)
}

func (call *Call) isTo(g maildir.Given) bool { return g.To.Session() == call.Session }

func isPushed(g maildir.Given) bool { return g.To.Owner == maildir.PushedTo(g.To.Session()) }

// proves reports whether the call proves that its session has received it.
func (call *Call) proves(g maildir.Given) bool {
	isShown := slices.ContainsFunc(call.Shown, func(short string) bool { return g.ID.Short(len(short)) == short })
	return call.isTo(g) && !call.hasMade(g) && (isShown || call.ProvesReceipt && g.IsSent && !isPushed(g))
}

// mayLose reports whether the call says that it may be lost.
func (call *Call) mayLose(g maildir.Given) bool {
	if !call.isTo(g) {
		return g.IsLive && call.IsGone != nil && call.IsGone(g.To.Session())
	}
	isLost := call.IsNewProgram && !(isPushed(g) && call.KeepsPushed)
	isForgotten := call.Forgets != "" && strings.HasPrefix(g.To.Call, call.Forgets)
	return !call.hasMade(g) && (isLost || isForgotten || call.EndsSession)
}
