package terminal

import (
	"fmt"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/internal/driver"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/ptyrun/internal/loop"
	"github.com/agentteammail/atm/ptyrun/internal/run"
	"github.com/agentteammail/atm/reducer"
)

// typing is what was typed of a text that is being given.
type typing struct {
	draft     string    // what the draft should show: the text, or its last line
	startedAt time.Time // of the first byte
	wroteAt   time.Time // of the last one; zero: it is being written
	failed    string    // why not all was written
	isSeen    bool      // in the draft
	isIn      bool      // or the draft had long enough to show it
	isMixed   bool      // with a person's keys, which were held too long
}

const (
	maxPasted  = 64 << 10        // bytes of a text
	maxKeyHold = 3 * time.Second // for a person's keys while a text is being typed
)

// Put types the text, without a return key behind it. (A plain program without bracketed paste gets each line but the
// last submitted.)
func (p *Terminal) Put(g *run.Text, _ func(error)) (e delivery.Event, why string) {
	r := p.r
	g.Words = letter.Typable(g.Words)
	t := &typing{draft: g.Words, startedAt: r.Now()}
	if p.driver.Plain && !p.takesText() {
		g.Words = strings.Trim(g.Words, "\n")
		t.draft = g.Words[strings.LastIndexByte(g.Words, '\n')+1:]
	}
	g.IsTyped = true
	if why = untypable(g.Words, p.takesText()); why != "" {
		return delivery.Moot, why
	}
	p.given, p.typing, p.keyVersion = g, t, p.emulator.Version()
	p.send(write{p.keysOf(g.Words), func(n int, err error) {
		r.Post(func() {
			if t.wroteAt = r.Now(); err != nil {
				t.failed = fmt.Sprintf("the program stopped reading after %d of %d bytes", n, len(g.Words))
			}
			if err != nil && n > 0 && p.typed() == t && p.emulator.Modes().Paste {
				p.sendKeys([]byte(pasteOff))
			}
		})
	}})
	return delivery.In, ""
}

// typed returns what was typed of the text that it is being given; nil: nothing. isSubmitted reports whether that was sent
// off.
func (p *Terminal) typed() *typing {
	if p.given == nil || p.given.State.IsOver() {
		return nil
	}
	return p.typing
}

func (p *Terminal) isSubmitted() bool { return p.typed() != nil && p.given.State == delivery.Sent }

// PassKeys types a person's keys, or what their terminal reports. While a text of ours is being typed they are held, so that
// the two do not mix.
func (p *Terminal) PassKeys(keys []byte, isPerson bool) {
	now := p.r.Now()
	if isPerson {
		p.r.LastKey = now
	}
	p.heldKeys = append(p.heldKeys, keys...)
	if t := p.typed(); t == nil || now.Sub(t.startedAt) >= maxKeyHold {
		p.ReleaseKeys()
	}
}

// ReleaseKeys types the keys that were held. If a text of ours is still being typed, it is mixed with them from now on.
func (p *Terminal) ReleaseKeys() {
	keys := p.heldKeys
	p.heldKeys = nil
	if len(keys) == 0 {
		return
	}
	if t := p.typed(); t != nil && !p.r.LastKey.Before(t.startedAt) { // a person's, not only terminal reports
		t.isMixed = true
	}
	p.sendKeys(keys)
}

// returnGate says why a text that it was given may not be sent off; "": it may.
func (p *Terminal) returnGate() string {
	switch r := p.r; {
	case r.IsStopping:
		return string(control.GateStopping)
	case r.Questions.Asked() != nil || p.isAsking():
		return "a dialog came up"
	case r.State.Session().Word() == reducer.WordBlocked:
		return "it is waiting for an answer"
	}
	return ""
}

// Has presses the return key, once, when it may, and reports whether the program accepts the text:
//
//	it does not read, or does not show the text     silent
//	a gate has shut, or a person's key came         moot
//	it shows the text, is quiet, takes a return     the key is pressed: off
//	the text has left the draft                     receipt
//	it stays in the draft                           not in
//	nothing tells                                   silent
func (p *Terminal) Has(g *run.Text, now time.Time) (e delivery.Event, why string) {
	r, t := p.r, p.typing
	p.Refresh()
	if now.Sub(t.startedAt) >= maxKeyHold {
		p.ReleaseKeys()
	}
	r.WakeAt(now.Add(2 * readDelay))
	switch {
	case g.State == delivery.Sent:
		return p.isAccepted(g, now)
	case t.failed != "":
		return delivery.Silent, t.failed
	case t.wroteAt.IsZero():
		return "", ""
	}
	if !t.isIn {
		if e, why := p.isInDraft(t, now); e != delivery.In {
			return e, why
		}
		t.isIn = true
	}
	if e, why = p.mayReturn(g, now); e == delivery.Off {
		p.pressReturn(g)
	}
	return e, why
}

// isInDraft says In if the draft shows the text and the screen is quiet. If it does not in time, it is enough that the
// screen has changed and no other draft is on it: a program may show a text in a way that its driver cannot read.
func (p *Terminal) isInDraft(t *typing, now time.Time) (e delivery.Event, why string) {
	r := p.r
	t.isSeen = p.driver.HasInBox(p.look(), t.draft)
	quiet := loop.Earlier(p.outputAt.Add(r.Timing.Quiet), t.wroteAt.Add(4*r.Timing.Quiet)) // something may blink for ever
	switch {
	case t.isSeen && !now.Before(quiet):
	case r.MustWait(t.wroteAt.Add(r.Timing.Render), now):
		return "", ""
	case p.isSilent():
		return delivery.Silent, "the screen did not change"
	case !t.isSeen && p.reading.Draft != "" && !p.driver.Plain && !isPartOf(p.reading.Draft, t.draft):
		return delivery.Silent, "its prompt shows different text"
	}
	return delivery.In, ""
}

// mayReturn says Off if the return key may be pressed: a program swallows it while it processes a paste, an open frame may
// be drawing a dialog, and what an agent shows instead of its box may be one that its driver does not know.
func (p *Terminal) mayReturn(g *run.Text, now time.Time) (e delivery.Event, why string) {
	r, t := p.r, p.typing
	if why = p.returnGate(); why == "" {
		why = p.o.Withheld(g)
	}
	switch {
	case why != "":
		return delivery.Moot, why
	case t.isMixed:
		return delivery.Moot, string(control.GateTyping)
	case !p.driver.Plain && p.reading.NotPromptReason == control.GateNoPrompt:
		if r.MustWait(t.wroteAt.Add(r.Timing.Render), now) {
			return "", ""
		}
		return delivery.Moot, string(control.GateNoPrompt)
	}
	at := t.wroteAt.Add(r.Timing.BeforeReturn + driver.SubmitDelay(len(g.Words)))
	if r.MustWait(at, now) || !p.frameSince.IsZero() && now.Sub(p.frameSince) < maxFrame {
		return "", ""
	}
	return delivery.Off, ""
}

func (p *Terminal) pressReturn(g *run.Text) {
	p.sendKeys([]byte(returnKey))
	g.Since, p.keyVersion = p.r.Now(), p.emulator.Version()
}

// isAccepted reports whether the program has accepted the text, behind its return key.
func (p *Terminal) isAccepted(g *run.Text, now time.Time) (e delivery.Event, why string) {
	r, t, look := p.r, p.typing, p.look()
	isInDraft := p.driver.HasInBox(look, t.draft)
	isStill := !look.Modes.Sync && !p.isSilent() && !r.MustWait(p.outputAt.Add(r.Timing.Quiet), now)
	switch d := p.reading.Dialog; {
	case p.driver.HasAccepted(look, t.draft):
		return p.accepted(g)
	case r.IsStopping:
		return delivery.Silent, string(control.GateStopping)
	case d != nil && reducer.IsForTerminal(d.Dialog):
		return delivery.Silent, "a dialog came up and may have got the return key"
	case p.returnGate() != "": // it was idle, so the dialog belongs to this text's turn
		return p.accepted(g)
	case t.isSeen && !isInDraft && isStill && !t.isMixed: // our return key took it out of the draft
		return p.accepted(g)
	case r.MustWait(g.Since.Add(r.Timing.Accept), now):
		return "", ""
	case isInDraft:
		return delivery.NotIn, "it is still in the prompt behind the return key"
	}
	return delivery.Silent, "its screen shows no sign that it arrived"
}
