// Package holder says who has an unread message. The name of its directory tells:
//
//	inbox/new/<id>.json            nobody has it, and nobody has had it
//	inbox/held/<holder>/<id>.json  the holder has it, or had it last
//
// A holder is <kind>,<times>,<since>,<until>,<call>,<who>, as in lease,2,20261130T101500.000,20261130T104500.000,,bob. A message
// changes hands by a rename, so two never get it.
package holder

import (
	"crypto/sha256"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Kind is what a holder is.
type Kind string

const (
	Runner  Kind = "runner"  // the agent's; Who is its run
	Session Kind = "session" // of the agent's program, in a hook's answer; Who is its id
	Push    Kind = "push"    // likewise, beside its hooks: mail may wait in the program
	Lease   Kind = "lease"   // a member, Who; "": the message was given back
	Later   Kind = "later"   // nobody, and nobody is shown it before until, and before what it needs is done
	Aside   Kind = "aside"   // nobody: it was given out in vain too often, and is not any more
)

// A Holder has an unread message, and others pass over the message while the holder is live. Afterwards the message stays
// where it is until somebody else takes it: the holder may have received it. The zero value is nobody. Make one with New.
type Holder struct {
	Kind  Kind
	Times int       // how often the message was handed out, this time included
	Since time.Time // to the millisecond, as is Until
	Until time.Time // zero for a runner, which is live while its lock is held; Since: the holder's time was ended
	Call  string    // of a session: identifies the handover among those to the session
	Who   string
}

const (
	answerTime  = 10 * time.Second // how long it may take to show a message
	sessionTime = 10 * time.Minute // how long a session's program may be silent about what a hook has answered
	pushTime    = time.Hour        // likewise about what was pushed: it may wait for the end of a tool or for a person

	// MaxLease is the longest lease.
	MaxLease = 24 * time.Hour

	// maxHandovers is how often a message is handed to a program in vain before only a read shows it.
	maxHandovers = 2
)

// New returns a holder that is about to get a message. All but a runner have some seconds to show it; see Shown.
func New(kind Kind, who, call string, now time.Time) Holder {
	h := Holder{Kind: kind, Times: 1, Since: Moment(now), Call: clip(call), Who: clip(who)}
	if kind != Runner {
		h.Until = h.Since.Add(answerTime)
	}
	return h
}

// Waits returns the holder of a message that is not due before a time, or, with a zero one, only needs others to be done.
func Waits(notBefore time.Time) Holder {
	h := Holder{Kind: Later}
	if !notBefore.IsZero() {
		h.Until = Moment(notBefore).Add(time.Millisecond) // not a fraction too early
	}
	return h
}

// Moment returns a time as the name of a directory has it.
func Moment(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// clip shortens what would be too long for a name. Two texts stay apart.
func clip(s string) string {
	const most, begin = 80, 50 // of 255 bytes
	if len(url.QueryEscape(s)) <= most {
		return s
	}
	short, sum := s, sha256.Sum256([]byte(s))
	for len(url.QueryEscape(short)) > begin {
		short = short[:len(short)-1]
	}
	return fmt.Sprintf("%s~%x", short, sum[:10])
}

// Session returns the session of the program that has the message, "" for another holder.
func (h Holder) Session() string {
	if h.Kind == Session || h.Kind == Push {
		return h.Who
	}
	return ""
}

// IsSession reports whether it is this session.
func (h Holder) IsSession(id string) bool { return h.Session() != "" && h.Who == clip(id) }

// Shown returns the holder as it is once a session's program, or a member for a lease until then, got the message.
func (h Holder) Shown(until time.Time) Holder {
	switch h.Kind {
	case Session:
		h.Until = h.Since.Add(sessionTime)
	case Push:
		h.Until = h.Since.Add(pushTime)
	case Lease:
		h.Until = Moment(until)
	}
	return h
}

// IsShown reports whether a session's program got the message, and the holder's time was not ended.
func (h Holder) IsShown() bool { return h.Session() != "" && h.Until.Sub(h.Since) > answerTime }

// Ended returns the holder as one that may have received the message, and does not have it any more.
func (h Holder) Ended() Holder {
	h.Until = h.Since
	return h
}

// SetAside returns the holder of a message that is not given out any more.
func (h Holder) SetAside() Holder {
	h = h.Ended()
	h.Kind = Aside
	return h
}

// IsLive reports whether the holder has the message now. One from the future has not: the clock was set back since.
func (h Holder) IsLive(now time.Time, isRunning bool) bool {
	switch {
	case h.Kind == Runner && h.Until.IsZero():
		return isRunning
	case h.Kind == Later:
		return false
	}
	return now.Before(h.Until) && !h.Since.After(now.Add(time.Minute)) && !h.Until.After(now.Add(MaxLease+time.Minute))
}

// IsLiveLease reports whether a member has the message under a lease that has not ended.
func (h Holder) IsLiveLease(now time.Time) bool { return h.Kind == Lease && h.IsLive(now, false) }

// IsGivenUp reports whether the message was handed to programs in vain so often that only a read shows it.
func (h Holder) IsGivenUp() bool { return h.Kind != Lease && h.Times >= maxHandovers }

const stamp = "20060102T150405.000"

// Name returns the name of the holder's directory.
func (h Holder) Name() string {
	if h.Kind == "" {
		return h.Who
	}
	return strings.Join([]string{
		string(h.Kind), strconv.Itoa(h.Times), format(h.Since), format(h.Until), url.QueryEscape(h.Call), url.QueryEscape(h.Who),
	}, ",")
}

func format(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(stamp)
}

func parse(s string) (t time.Time, err error) {
	if s != "" {
		t, err = time.Parse(stamp, s)
	}
	return t, err
}

// Parse returns the holder with this directory. What is no name of a holder is somebody of no kind, who has had the message.
func Parse(name string) Holder {
	unknown := Holder{Times: 1, Who: name}
	part := strings.Split(name, ",")
	if len(part) != 6 {
		return unknown
	}
	h := Holder{Kind: Kind(part[0])}
	var errs [5]error
	h.Times, errs[0] = strconv.Atoi(part[1])
	h.Since, errs[1] = parse(part[2])
	h.Until, errs[2] = parse(part[3])
	h.Call, errs[3] = url.QueryUnescape(part[4])
	h.Who, errs[4] = url.QueryUnescape(part[5])
	if errs != [5]error{} || h.Name() != name {
		return unknown
	}
	return h
}
