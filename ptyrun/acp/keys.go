package acp

import (
	"bytes"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/process"
)

// keys splits terminal input into keys: a control character, a character, or a pasted text, which keeps no control
// characters but tabs and line feeds. Input may be split anywhere except after an escape: an escape at the end of a
// piece is the Escape key.
type keys struct {
	rest []byte // an incomplete key
}

// keyPattern matches the first key. Group 1 is a pasted text, group 2 an incomplete key.
var keyPattern = regexp.MustCompile(`(?s)^(?:\x1b\[200~(.*?)\x1b\[201~|(\x1b(?:\[[0-?]{0,32}[ -/]{0,4}|O|\[200~.*)?$)` +
	`|\x1b(?:\[[0-?]{0,32}[ -/]{0,4}[@-~]|O[ -~]|[^\[O\x1b])?|.)`)

// controls maps the control characters that an agent knows.
var controls = map[string]string{"\r": "\r", "\n": "\r", "\b": "\x7f", "\x7f": "\x7f", "\x03": "\x03", "\x04": "\x04", "\x15": "\x15"}

// feed returns the complete keys so far, without those that an agent does not know.
func (k *keys) feed(p []byte) (out []string) {
	for k.rest = append(k.rest, p...); len(k.rest) > 0; {
		if string(k.rest) == "\x1b" {
			k.rest = nil
			return append(out, "\x1b")
		}
		found := keyPattern.FindSubmatch(k.rest)
		if len(k.rest) > 2*maxDraft { // a paste without an end
			k.rest = nil
			break
		}
		if found[2] != nil || !utf8.FullRune(bytes.TrimPrefix(k.rest, []byte("\x1b"))) {
			break
		}
		k.rest = k.rest[len(found[0]):]
		key := string(found[0])
		switch {
		case found[1] != nil:
			key = letter.Typable(string(found[1]))
		case key[0] == 0x1b:
			continue
		case key < " " || key == "\x7f":
			key = controls[key]
		default:
			key = letter.Typable(key)
		}
		if key != "" {
			out = append(out, key)
		}
	}
	return out
}

// pause is how long no key was pressed before one that answers: a person who is typing does not mean the question.
const pause = 500 * time.Millisecond

// Keys takes what a person types at a terminal. Enter begins a turn with the draft, the key of an option chooses it if
// there is no draft, Ctrl-C and Escape cancel, and Ctrl-D leaves an idle agent.
func (a *Agent) Keys(p []byte) {
	a.do(func() {
		for _, k := range a.keys.feed(p) {
			a.press(k)
			a.keyAt = time.Now()
		}
	})
}

// maxDraft is how many bytes a draft may have.
const maxDraft = maxResponse

func (a *Agent) press(k string) {
	q := a.question
	switch {
	case k == "\x03" || k == "\x1b":
		if a.turn == nil {
			a.draft = ""
		}
		a.cancel()
	case q != nil && a.draft == "":
		i := strings.Index(optionKeys, k)
		isMeant := time.Since(q.shownAt) >= settle && time.Since(a.keyAt) >= pause // else it was for another question, or is typing
		if len(k) == 1 && i >= 0 && i < len(q.options) && isMeant {
			a.tell(Event{Chosen: &Choice{Question: q.ID, Option: q.Dialog.Options[i].ID}})
		}
	case k == "\r":
		if text := strings.TrimSpace(a.draft); text != "" && a.mayPrompt() == nil {
			a.draft = ""
			a.begin(text, nil)
		}
	case k == "\x7f":
		r := []rune(a.draft)
		a.draft = string(r[:max(0, len(r)-1)])
	case k == "\x15":
		a.draft = ""
	case k == "\x04" && a.draft == "" && a.turn == nil:
		a.leave(process.Exit{}, "left")
	case k != "\x04" && len(a.draft)+len(k) <= maxDraft:
		a.draft += k
	}
}

// Draft returns what a person has typed into the prompt line and not submitted.
func (a *Agent) Draft() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.draft
}
