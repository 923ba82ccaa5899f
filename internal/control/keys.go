package control

import (
	"bytes"
	"regexp"
	"sync"
	"time"
)

// DetachKey is how help texts write the detach key.
const DetachKey = `Ctrl-\ d`

const keysLine = "\x18\x1b7\x1b[9999;1H\x1b[2K\x1b[7m[atm: Ctrl-\\ d detaches; the program gets Ctrl-\\ with any other key]\x1b[m\x1b8"

// What a terminal sends by itself: reports of focus and the mouse, and replies to queries. (A shifted F3 looks like a
// cursor position in the first row.) x/ansi's decoder is not used, because it ends strings at the byte 0x9C, which is
// part of "✳", and costs 0.16 ms at each start of atm.
const (
	reports = `\x1b\[[IO]|\x1b\[<[\d;]*[Mm]|\x1b\[M...`
	replies = `\x1b\[[?>=]?[\d;$]*[cnyt]|\x1b\[\d+;\d+R|\x1b\[[?>=][\d;]*[Ru]|\x1b[]P_^X][^\a\x1b]*(?:\a|\x1b\\)`
)

// keyPattern matches the first key, report or reply in the input. Keys may come as sequences of the kitty protocol (64
// and 128 are locks) or of xterm's modifyOtherKeys.
var keyPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?s)^(?:` +
		`(\x1c|\x1b\[92[:\d]*;(?:5|69|133|197)(?::1)?u|\x1b\[27;5;92~)` + // 1: Ctrl-\
		`|(d|\x1b\[100[:\d]*(?:;(?:1|65|129|193)?(?::1)?)?u)` + // 2: d
		`|(\?|\x1b\[(?:\d+:)?63(?:;\d+(?::1)?)?u|\x1b\[27;2;63~)` + // 3: ?
		`|(\x1b\[[\d:;]*:3[~A-Su]|\x1b\[574[45][^u]*u)` + // 4: no key, but a release or a modifier alone
		`|(` + reports + `)|(` + replies + `)` + // 5, 6
		`|(\x1b(?:\[[ -?]*|\[M.{0,2}|[]P_^X][^\a\x1b]*\x1b?)?$)` + // 7: an incomplete sequence
		`|\x1b\[200~.*?(?:\x1b\[201~|$)|\x1b\[[ -?]*[@-~]|\x1bO.|.)`) // a paste, and any other key
})

// An incomplete sequence that gets too long, or whose rest does not come soon, is no sequence: somebody pressed Escape,
// or Alt with [ or P.
const (
	maxSequence  = 256
	sequenceWait = 200 * time.Millisecond
	escapeWait   = 50 * time.Millisecond
)

// A keyScanner finds the detach key in a terminal's input, and tells typed keys from reports and replies. Ctrl-\ is
// held until the next key: d or ? consumes it, any other key is sent with it. Only a paste must not come in pieces.
type keyScanner struct {
	heldKey      []byte // Ctrl-\
	partial      []byte // an incomplete sequence
	partialUntil time.Time
}

// scan returns the bytes of p to send, whether to show the help line, and whether to detach. What follows the detach
// key is dropped, and so are replies, because the runner answers queries itself.
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
			k.heldKey = nil
			if found[1] != nil {
				k.heldKey = bytes.Clone(key)
			} else {
				in.Bytes = append(in.Bytes, key...)
			}
		}
	}
	return in, false, false
}

// release returns the held bytes, because no more came.
func (k *keyScanner) release() Input {
	in := Input{Bytes: append(k.heldKey, k.partial...)}
	k.heldKey, k.partial = nil, nil
	return in
}
