package control

import (
	"bytes"
	"regexp"
	"sync"
	"time"
)

// DetachKey is what a person types to leave, as help writes it.
const DetachKey = `Ctrl-\ d`

const keysLine = "\x18\x1b7\x1b[9999;1H\x1b[2K\x1b[7m[atm: Ctrl-\\ d leaves; Ctrl-\\ and any other key are both sent]\x1b[m\x1b8"

// What a terminal says by itself, as regular expressions: reports of focus and the mouse, and answers to
// queries. (A shifted F3 looks like the place of a cursor in the first row.) x/ansi's decoder is not used for
// what a terminal sends: it ends a string at the byte 0x9C, which is a part of "✳", and atm would start
// later for it (measured: 0.16 ms).
const (
	reports = `\x1b\[[IO]|\x1b\[<[\d;]*[Mm]|\x1b\[M...`
	replies = `\x1b\[[?>=]?[\d;$]*[cnyt]|\x1b\[\d+;\d+R|\x1b\[[?>=][\d;]*[Ru]|\x1b[]P_^X][^\a\x1b]*(?:\a|\x1b\\)`
)

// keyPattern is the first key, or what the terminal says, in some input. Programs have keys written as
// sequences: by the kitty protocol (64 and 128: locks) or xterm's modifyOtherKeys.
var keyPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?s)^(?:` +
		`(\x1c|\x1b\[92[:\d]*;(?:5|69|133|197)(?::1)?u|\x1b\[27;5;92~)` + // 1: Ctrl-\
		`|(d|\x1b\[100[:\d]*(?:;(?:1|65|129|193)?(?::1)?)?u)` + // 2: d
		`|(\?|\x1b\[(?:\d+:)?63(?:;\d+(?::1)?)?u|\x1b\[27;2;63~)` + // 3: ?
		`|(\x1b\[[\d:;]*:3[~A-Su]|\x1b\[574[45][^u]*u)` + // 4: no key; the release of one, or Shift and the like alone
		`|(` + reports + `)|(` + replies + `)` + // 5 and 6
		`|(\x1b(?:\[[ -?]*|\[M.{0,2}|[]P_^X][^\a\x1b]*\x1b?)?$)` + // 7: not finished
		`|\x1b\[200~.*?(?:\x1b\[201~|$)|\x1b\[[ -?]*[@-~]|\x1bO.|.)`) // a paste, and any other key
})

// A sequence that is not finished is no terminal's when it gets too long, or its end does not come soon:
// somebody has pressed Alt and [ or P, or Escape alone.
const (
	maxSequence  = 256
	sequenceWait = 200 * time.Millisecond
	escapeWait   = 50 * time.Millisecond
)

// A keyScanner finds the detach key in what a terminal sends, and says what of it a person typed: no report and no
// answer. Ctrl-\ is held until the next key: a d or ? takes it away, any other goes on together with it. A sequence
// may come in pieces; a paste that does is not known as one.
type keyScanner struct {
	heldKey      []byte    // Ctrl-\
	partial      []byte    // the beginning of a sequence whose end has not come
	partialUntil time.Time // that is waited for
}

// scan returns what is to be sent of a piece of input, and whether the keys are to be shown or the viewer
// leaves; what follows that key is dropped. So are answers: the runner has given its own.
func (k *keyScanner) scan(p []byte, now time.Time) (in Input, help, detach bool) {
	if len(k.partial) > 0 && !now.Before(k.partialUntil) {
		in = k.release()
	}
	in.IsReport = in.Bytes == nil
	for p, k.partial = append(k.partial, p...), nil; len(p) > 0; {
		found := keyPattern().FindSubmatch(p)
		key, armed := found[0], len(k.heldKey) > 0
		p = p[len(key):]
		switch {
		case armed && found[2] != nil:
			return in, false, true
		case armed && found[3] != nil:
			k.heldKey = nil
			return in, true, false
		case found[5] != nil || armed && found[4] != nil:
			in.Bytes = append(in.Bytes, key...)
		case found[6] != nil:
		case found[7] != nil && len(key) <= maxSequence:
			k.partial, k.partialUntil = bytes.Clone(key), now.Add(sequenceWait)
			if len(key) == 1 {
				k.partialUntil = now.Add(escapeWait)
			}
		default:
			in.Bytes, in.IsReport = append(in.Bytes, k.heldKey...), false
			if k.heldKey = nil; found[1] != nil {
				k.heldKey = bytes.Clone(key)
			} else {
				in.Bytes = append(in.Bytes, key...)
			}
		}
	}
	return in, false, false
}

// release is what was held, since its end has not come.
func (k *keyScanner) release() Input {
	in := Input{Bytes: append(k.heldKey, k.partial...)}
	k.heldKey, k.partial = nil, nil
	return in
}
