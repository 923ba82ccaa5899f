package ptyrun

import (
	"strings"
	"time"

	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/reducer"
)

// restoredDraft is a text of ours that may appear in the draft again, where it would block all mail: Claude Code puts
// the prompt back if its turn is interrupted before the first output. A text that failed may appear there late.
type restoredDraft struct {
	text          string
	since         time.Time // of the interrupt, or when typing began
	clearedAt     time.Time // when it was last removed from the draft
	clears        int
	silentVersion uint64 // the screen's at our last key: while it is unchanged, the program may not have read that
	isFailed      bool   // typing it failed: it began no turn
}

// maxClears limits how often a draft is cleared: a long text becomes visible part by part.
const maxClears = 50

// stepRestored clears the draft of a restored text. What a person has typed since is left alone.
func (r *runner) stepRestored(now time.Time) {
	d, p := r.restored, r.prog
	if d == nil || r.mail.typing != nil {
		return
	}
	rd := p.reading
	switch {
	case r.lastKey.After(d.since) || d.clears == maxClears:
		r.restored = nil
	case rd.Activity != reducer.Idle || !rd.HasDraft || r.question != nil || !isPartOf(rd.Draft, d.text):
	case d.silentVersion == p.screen.Version():
	case r.mustWait(later(p.outputAt.Add(r.timing.quiet), d.clearedAt.Add(r.timing.idle)), now):
	default:
		p.sendKeys(p.driver.ClearDraft(rd.Draft)...)
		d.clearedAt = now
		d.clears++
		r.wakeAt(now.Add(r.timing.idle))
	}
}

// hasLeftover reports whether a text that failed is in the draft, or will be when the program reads it.
func (r *runner) hasLeftover() bool {
	d := r.restored
	isInDraft := d != nil && d.isFailed && isPartOf(r.prog.reading.Draft, d.text)
	return isInDraft || r.isTextUnread()
}

// isTextUnread reports whether the program has shown nothing since a text was typed that failed: it may be suspended
// and read the text later. After retryLast the text counts as lost.
func (r *runner) isTextUnread() bool {
	d, p := r.restored, r.prog
	isSilent := d != nil && d.isFailed && !p.driver.Plain && d.silentVersion == p.screen.Version()
	return isSilent && r.mustWait(d.since.Add(retryLast), r.now())
}

// isPartOf reports whether a draft shows nothing but a text, a visible part of it, or its placeholder.
func isPartOf(draft, text string) bool {
	d := driver.RemoveBlanks(draft)
	return d != "" && strings.Contains(driver.RemoveBlanks(text), d) || strings.HasPrefix(draft, "[Pasted ") && strings.HasSuffix(draft, "]")
}
