package terminal

import (
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/internal/driver"
	"github.com/agentteammail/atm/ptyrun/internal/loop"
	"github.com/agentteammail/atm/ptyrun/internal/run"
	"github.com/agentteammail/atm/reducer"
)

// leftover is a text of ours that may be in the draft, or appear there late, although it is not being typed any more.
// There it would block all mail. Either typing it failed, or its turn was interrupted: Claude Code puts the prompt back
// into the draft if it has not shown any output.
type leftover struct {
	text   string
	since  time.Time // of the first byte, or of the interrupt: keys of a person after that make the draft theirs
	clears int       // how often it was removed from the draft
}

// maxClears limits how often a draft is cleared: a long text becomes visible part by part.
const maxClears = 50

// stepDraft clears the draft if it is ours: a leftover, or a terminal's reply that the program took for typed keys.
func (p *Terminal) stepDraft(now time.Time) {
	r, rd, l := p.r, p.reading, p.leftover
	if l != nil && (r.LastKey.After(l.since) || l.clears == maxClears) {
		l, p.leftover = nil, nil
	}
	if p.o.UsesPrompt() || rd.Draft == "" {
		return
	}
	at := loop.Later(p.outputAt.Add(r.Timing.Quiet), p.clearedAt.Add(r.Timing.Idle))
	switch {
	case p.driver.IsTerminalAnswer(rd.Draft):
		at = loop.Later(at, loop.Later(p.readingSince.Add(r.Timing.Idle), r.LastKey.Add(r.Timing.PersonQuiet)))
	case l == nil || !isPartOf(rd.Draft, l.text) || rd.Activity != reducer.Idle || r.Questions.Asked() != nil || p.isSilent():
		return
	}
	if r.MustWait(at, now) {
		return
	}
	if p.eraseDraft() && l != nil {
		l.clears++
	}
	p.clearedAt = now
	r.WakeAt(now.Add(r.Timing.Idle))
}

// TakeBack removes a text from the draft. If it cannot now, the text is a leftover. It never removes a person's text, nor
// lines that were run.
func (p *Terminal) TakeBack(g *run.Text) delivery.Event {
	t := p.typing
	if !t.isMixed {
		p.leftover = &leftover{text: t.draft, since: t.startedAt}
	}
	mayErase := !p.isSilent() && p.returnGate() == "" // if silent, it may ask something before it reads the keys
	if mayErase && p.driver.HasInBox(p.look(), t.draft) && isPartOf(p.reading.Draft, t.draft) && p.eraseDraft() && t.draft == g.Words {
		return delivery.Gone
	}
	return delivery.Kept
}

// eraseDraft deletes the draft, unless it has changed by now, or the program asks something or is about to draw it.
func (p *Terminal) eraseDraft() bool {
	draft := p.reading.Draft
	p.Refresh()
	if p.isAsking() || !p.frameSince.IsZero() || p.reading.Draft != draft {
		return false
	}
	p.sendKeys(p.driver.ClearDraft(draft)...)
	return true
}

// isUnread reports whether the program has shown nothing since a text was typed that failed: it may be suspended, and read
// that when it resumes.
func (p *Terminal) isUnread() bool { return p.leftover != nil && !p.driver.Plain && p.isSilent() }

// isPartOf reports whether a draft shows nothing but a text, a visible part of it, or its placeholder.
func isPartOf(draft, text string) bool {
	d := driver.RemoveBlanks(draft)
	return driver.IsPaste(draft) || d != "" && strings.Contains(driver.RemoveBlanks(text), d)
}
