package ptyrun

import (
	"strings"
	"time"

	"github.com/agentteammail/atm/reducer"
)

// restoredDraft is a text of ours that may come up in the draft again. Claude Code puts the prompt of a turn
// that is interrupted before its first word back into its box, where it would keep all mail out.
type restoredDraft struct {
	text      string
	at        time.Time // of the interrupt
	clearedAt time.Time // when it was last taken out of the box
	clears    int
}

// maxClears bounds how often a box is cleared: a long text comes in sight part by part.
const maxClears = 50

// stepRestored clears the box of a text of ours that was put back. What a person has touched since is
// theirs.
func (r *runner) stepRestored(now time.Time) {
	d, p := r.restored, r.prog
	if d == nil || r.mail.typing != nil {
		return
	}
	rd := p.reading
	switch {
	case r.lastKey.After(d.at) || d.clears == maxClears:
		r.restored = nil
	case rd.Activity != reducer.Idle || !rd.HasDraft || r.question != nil || !isPartOf(rd.Draft, d.text):
	case r.awaits(later(p.changed.Add(r.Waits.Quiet), d.clearedAt.Add(r.Waits.Idle)), now):
	default:
		p.put(p.driver.ClearDraft(rd.Draft)...)
		d.clearedAt = now
		d.clears++
		r.wakeAt(now.Add(r.Waits.Idle))
	}
}

// isPartOf reports whether a draft is a text, or what of it is in sight, or stands for it.
func isPartOf(draft, text string) bool {
	d := withoutBlanks(draft)
	return d != "" && strings.Contains(withoutBlanks(text), d) || strings.HasPrefix(draft, "[Pasted ") && strings.HasSuffix(draft, "]")
}
