package ptyrun

import (
	"strings"
	"time"

	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/reducer"
)

// leftover is a text of ours that may be in the draft, or appear there late, although it is not being typed any more.
// There it would block all mail. Either typing it failed, or its turn was interrupted: Claude Code puts the prompt back
// into the draft if it has not shown any output.
type leftover struct {
	text     string
	since    time.Time // of the first byte, or of the interrupt: keys of a person after that make the draft theirs
	isFailed bool      // typing it failed
	clears   int       // how often it was removed from the draft
}

// maxClears limits how often a draft is cleared: a long text becomes visible part by part.
const maxClears = 50

// stepDraft clears the draft if it is ours: a leftover, or a terminal's reply that the program took for typed keys.
func (r *runner) stepDraft(now time.Time) {
	p, rd, l := r.prog, r.prog.reading, r.leftover
	if l != nil && (r.lastKey.After(l.since) || l.clears == maxClears) {
		l, r.leftover = nil, nil
	}
	if r.mail.typing != nil || !rd.HasDraft {
		return
	}
	at := later(p.outputAt.Add(r.timing.quiet), p.clearedAt.Add(r.timing.idle))
	switch {
	case p.driver.IsTerminalAnswer(rd.Draft):
		at = later(at, later(p.readingSince.Add(r.timing.idle), r.lastKey.Add(r.timing.personQuiet)))
	case l == nil || !isPartOf(rd.Draft, l.text) || rd.Activity != reducer.Idle || r.question != nil || p.isSilent():
		return
	}
	if r.mustWait(at, now) {
		return
	}
	if r.eraseDraft() && l != nil {
		l.clears++
	}
	p.clearedAt = now
	r.wakeAt(now.Add(r.timing.idle))
}

// removeFailed removes a text that failed from the draft and reports whether it did. If it cannot now, the text is a
// leftover. It never removes a person's text.
func (r *runner) removeFailed(t *typing) bool {
	if !t.isMixed {
		r.leftover = &leftover{text: t.draft, since: t.startedAt, isFailed: true}
	}
	p := r.prog
	mayErase := p != nil && !p.isSilent() && r.returnGate() == "" // if silent, it may ask something before it reads the keys
	return mayErase && p.driver.HasInBox(p.look(), t.draft) && isPartOf(p.reading.Draft, t.draft) && r.eraseDraft()
}

// eraseDraft deletes the draft, unless it has changed by now, or the program asks something or is about to draw it.
func (r *runner) eraseDraft() bool {
	p, draft := r.prog, r.prog.reading.Draft
	r.refresh(r.now())
	if p.asks() || !p.frameSince.IsZero() || p.reading.Draft != draft {
		return false
	}
	p.sendKeys(p.driver.ClearDraft(draft)...)
	return true
}

// hasLeftover reports whether a text that failed is in the draft, or will be when the program reads it.
func (r *runner) hasLeftover() bool {
	l := r.leftover
	isInDraft := l != nil && l.isFailed && isPartOf(r.prog.reading.Draft, l.text)
	return isInDraft || r.isTextUnread()
}

// isTextUnread reports whether the program has shown nothing since a text was typed that failed: it may be suspended
// and read the text later. After retryLast the text counts as lost.
func (r *runner) isTextUnread() bool {
	l, p := r.leftover, r.prog
	isUnread := l != nil && l.isFailed && !p.driver.Plain && p.isSilent()
	return isUnread && r.mustWait(l.since.Add(retryLast), r.now())
}

// isPartOf reports whether a draft shows nothing but a text, a visible part of it, or its placeholder.
func isPartOf(draft, text string) bool {
	d := driver.RemoveBlanks(draft)
	isPlaceholder := strings.HasPrefix(draft, "[Pasted ") && strings.HasSuffix(draft, "]")
	return isPlaceholder || d != "" && strings.Contains(driver.RemoveBlanks(text), d)
}
