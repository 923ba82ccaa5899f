package ptyrun

import (
	"fmt"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/reducer"
)

// typing is what was typed of a text that is being given.
type typing struct {
	draft       string    // what the draft should show: the text, or its last line
	startedAt   time.Time // of the first byte
	wroteAt     time.Time // of the last one; zero: it is being written
	failed      string    // why not all was written
	isSeen      bool      // in the draft
	isIn        bool      // or the draft had long enough to show it
	isMixed     bool      // with a person's keys, which were held too long
	returns     int       // return keys pressed
	isReturnDue bool      // another one seems to be needed
}

const (
	maxReturns = 3        // for a text
	maxPasted  = 64 << 10 // bytes of a text
)

// put types the text, without a return key behind it. (A plain program without bracketed paste gets each line but the
// last submitted: the text must not be given again.)
func (p *terminal) put(g *giving) {
	r := p.r
	g.text = Clean(g.text)
	t := &typing{draft: g.text, startedAt: r.now()}
	if p.driver.Plain && !p.takesText() {
		g.text = strings.Trim(g.text, "\n")
		t.draft = g.text[strings.LastIndexByte(g.text, '\n')+1:]
	}
	why := untypable(g.text, p.takesText())
	if why != "" || t.draft != g.text {
		r.giveUp(g)
	}
	if why != "" {
		r.happened(delivery.Moot, why)
		return
	}
	g.typing, p.keyVersion = t, p.emulator.Version()
	r.happened(delivery.In, "")
	r.follower.HandleTyped(g.text)
	end := ""
	if g.claim != nil && !p.driver.Plain {
		end = " " // behind @name, an agent's return key would first pick a file or a skill for it
	}
	p.typeKeys(p.keysOf(g.text+end), func(n int, err error) {
		r.post(func() {
			if t.wroteAt = r.now(); err != nil {
				t.failed = fmt.Sprintf("the program stopped reading after %d of %d bytes", n, len(g.text))
			}
			if err != nil && n > 0 && r.mail.giving == g && p.emulator.Modes().Paste {
				p.sendKeys([]byte(pasteOff))
			}
		})
	})
}

// has presses the return key when it may, and reports whether the program accepts the text:
//
//	it does not read, or does not show the text     silent
//	a gate has shut, or a person's key came         moot
//	it shows the text, is quiet, takes a return     the key is pressed: off
//	it still shows the text behind the key          not in
//	the text has left the draft                     receipt
//	nothing tells                                   silent
func (p *terminal) has(g *giving, now time.Time) (e delivery.Event, why string) {
	r, t := p.r, g.typing
	p.refresh()
	if now.Sub(t.startedAt) >= maxKeyHold {
		r.releaseKeys()
	}
	r.wakeAt(now.Add(2 * readDelay))
	switch {
	case g.state == delivery.Sent:
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
func (p *terminal) isInDraft(t *typing, now time.Time) (e delivery.Event, why string) {
	r := p.r
	t.isSeen = p.driver.HasInBox(p.look(), t.draft)
	quiet := earlier(p.outputAt.Add(r.timing.quiet), t.wroteAt.Add(4*r.timing.quiet)) // something may blink for ever
	switch {
	case t.isSeen && !now.Before(quiet):
	case r.mustWait(t.wroteAt.Add(r.timing.render), now):
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
func (p *terminal) mayReturn(g *giving, now time.Time) (e delivery.Event, why string) {
	r, t := p.r, g.typing
	if why = r.returnGate(); why == "" {
		_, why = r.typable(g.items())
	}
	switch {
	case why != "":
		return delivery.Moot, why
	case t.isMixed:
		return delivery.Moot, string(control.GateTyping)
	case !p.driver.Plain && p.reading.NotPromptReason == control.GateNoPrompt:
		if r.mustWait(t.wroteAt.Add(r.timing.render), now) {
			return "", ""
		}
		return delivery.Moot, string(control.GateNoPrompt)
	}
	at := t.wroteAt.Add(r.timing.beforeReturn + driver.SubmitDelay(len(g.text)))
	if r.mustWait(at, now) || !p.frameSince.IsZero() && now.Sub(p.frameSince) < maxFrame {
		return "", ""
	}
	return delivery.Off, ""
}

func (p *terminal) pressReturn(g *giving) {
	t := g.typing
	if t.returns == 0 {
		p.turn.startRow = p.emulator.Scrolled()
	}
	t.returns++
	keys := p.driver.SubmitKeys()
	if t.draft != g.text && strings.TrimLeft(t.draft, " \t") != t.draft {
		keys += keys // Python's prompt ends a block with an empty line
	}
	p.keys([]byte(keys))
	g.since, p.keyVersion = p.r.now(), p.emulator.Version()
}

// isAccepted reports whether the program has accepted the text, and presses the return key again if it seems lost.
func (p *terminal) isAccepted(g *giving, now time.Time) (e delivery.Event, why string) {
	r, t := p.r, g.typing
	if p.driver.HasAccepted(p.look(), t.draft) {
		return p.accepted(g)
	}
	if r.stopping != nil {
		return delivery.Silent, string(control.GateStopping)
	}
	if r.returnGate() != "" {
		if d := p.reading.Dialog; d != nil && reducer.IsForTerminal(d.Dialog) {
			return delivery.Silent, "a dialog came up and may have got the return key"
		}
		return p.accepted(g) // it was idle, so the dialog belongs to this text's turn
	}
	isInDraft := p.driver.HasInBox(p.look(), t.draft)
	wait := r.timing.accept
	if p.isSilent() {
		wait *= 3
	}
	isLate := now.After(g.since.Add(wait))
	switch {
	case isLate && isInDraft:
		return delivery.NotIn, fmt.Sprintf("it is still in the prompt after %d return keys", t.returns)
	case isLate && t.isSeen && !t.isMixed:
		return p.accepted(g) // our return key took it out of the draft
	case isLate:
		return delivery.Silent, "its screen shows no sign that it arrived"
	case !isInDraft || !p.mayPressAgain(g, now):
		return "", ""
	}
	// Only at the second look: on a busy machine a dialog may have been drawn whose output is not here yet.
	if t.isReturnDue = !t.isReturnDue; !t.isReturnDue {
		p.pressReturn(g)
	}
	return "", ""
}

// mayPressAgain reports whether a return key seems to be lost. If the program is silent, another return key might
// answer what it asks next.
func (p *terminal) mayPressAgain(g *giving, now time.Time) bool {
	isEnough := g.typing.isMixed || g.typing.returns >= maxReturns
	return !isEnough && !p.isSilent() && !now.Before(g.since.Add(p.r.timing.retryReturn))
}
