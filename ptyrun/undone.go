package ptyrun

import (
	"strings"
	"time"

	"github.com/agentteammail/atm/reducer"
)

// undone is a text of ours whose turn was interrupted. A program that had not
// begun to answer may undo the turn: Claude Code puts the prompt back into its
// box, where it would keep all mail out, and Gemini CLI forgets it.
type undone struct {
	text    string
	urgent  bool      // urgent mail did it: the text is to be done after that
	at      time.Time // of the interrupt
	cleared time.Time // when it was last taken out of the box
	tries   int
}

// maxClears bounds how often a box is cleared: a long text comes in sight part
// by part.
const maxClears = 50

// toldAgain stands above a text that goes in once more.
const toldAgain = "[atm: interrupted before it was begun, and still to be done]"

// takeBack clears the box of a text of ours that was put back. What a person
// has touched since is theirs.
func (r *runner) takeBack(now time.Time) (next time.Time) {
	u, p := r.undone, r.prog
	if u == nil || r.typing != nil {
		return next
	}
	if r.lastHuman.After(u.at) || u.tries == maxClears {
		r.undone = nil
		return next
	}
	rd := p.reading
	if rd.Prompt && u.urgent && p.driver.Forgets() && r.retell == "" && r.response() == "" {
		r.retell, r.undone = u.text, nil
		return next
	}
	if rd.Activity != reducer.Idle || !rd.HasDraft || r.question != nil || !partOf(rd.Draft, u.text) {
		return next
	}
	at := p.changed.Add(r.waits.Quiet)
	if again := u.cleared.Add(r.waits.Idle); again.After(at) {
		at = again
	}
	if now.Before(at) {
		return at
	}
	for _, k := range p.driver.ClearDraft(rd.Draft) {
		p.out.put(k)
	}
	u.cleared = now
	u.tries++
	if u.urgent {
		r.retell = u.text
	}
	return now.Add(r.waits.Idle)
}

// retold is what is to be told again, where that goes in by itself: what
// interrupted it has come in some other way.
func (r *runner) retold(now time.Time) bool {
	return r.retell != "" && len(r.queue) == 0 && (r.undone == nil || now.After(r.undone.cleared.Add(r.waits.Human)))
}

// partOf reports whether a draft is a text, or what of it is in sight, or
// stands for it.
func partOf(draft, text string) bool {
	d := squeezed(draft)
	return d != "" && strings.Contains(squeezed(text), d) || strings.HasPrefix(draft, "[Pasted ") && strings.HasSuffix(draft, "]")
}

// tellAgain adds what is to be told again to a text.
func (r *runner) tellAgain(t *typing) {
	if r.retell == "" {
		return
	}
	if t.text != "" {
		t.text += "\n"
	}
	t.text += toldAgain + "\n" + r.retell
	t.again = true
}
