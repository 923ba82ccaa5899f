package ptyrun

import (
	"strings"
	"time"

	"github.com/agentteammail/atm/reducer"
)

// restoredDraft is a text of ours that may come up in the draft again. A program that had not begun to
// answer undoes a turn that is interrupted: Claude Code puts the prompt back into its box, where it would
// keep all mail out, and Gemini CLI forgets it.
type restoredDraft struct {
	text      string
	isUrgent  bool      // urgent mail interrupted it: the text is to be done after that
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
	case rd.Prompt && d.isUrgent && p.driver.Forgets() && r.resend.text == "" && r.response() == "":
		r.resend.text, r.restored = d.text, nil
	case rd.Activity != reducer.Idle || !rd.HasDraft || r.question != nil || !isPartOf(rd.Draft, d.text):
	case r.awaits(later(p.changed.Add(r.Waits.Quiet), d.clearedAt.Add(r.Waits.Idle)), now):
	default:
		p.put(p.driver.ClearDraft(rd.Draft)...)
		d.clearedAt = now
		d.clears++
		if d.isUrgent {
			r.resend.text = d.text
		}
		r.wakeAt(now.Add(r.Waits.Idle))
	}
}

// isPartOf reports whether a draft is a text, or what of it is in sight, or stands for it.
func isPartOf(draft, text string) bool {
	d := withoutBlanks(draft)
	return d != "" && strings.Contains(withoutBlanks(text), d) || strings.HasPrefix(draft, "[Pasted ") && strings.HasSuffix(draft, "]")
}

// resend is a text that urgent mail interrupted before it was begun.
type resend struct {
	text  string // "": there is none
	tries int    // how often it was typed and perhaps not taken
}

// resendHeader stands above it.
const resendHeader = "[atm: interrupted before it was begun, and still to be done]"

// canResend reports whether the text goes in by itself: what interrupted it has come in some other way.
func (r *runner) canResend(now time.Time) bool {
	return r.resend.text != "" && len(r.mail.queue) == 0 && (r.restored == nil || now.After(r.restored.clearedAt.Add(r.Waits.Human)))
}

func (r *runner) addResend(t *typing) *typing {
	if r.resend.text != "" {
		t.text = strings.TrimPrefix(t.text+"\n"+resendHeader+"\n"+r.resend.text, "\n")
		t.isResend = true
	}
	return t
}

// noteResendFailed gives the text up after some tries: it is in nobody's inbox, and nothing else would
// bound them.
func (r *runner) noteResendFailed() {
	if r.resend.tries++; r.resend.tries == maxTried {
		r.Log.Error("typing again what was interrupted: given up", "text", clip(r.resend.text, 200))
		r.resend = resend{}
	}
}
