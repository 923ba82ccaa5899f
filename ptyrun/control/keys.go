package control

import (
	"bytes"
	"regexp"
	"sync"
)

// DetachKey is what a person types to leave, as help writes it.
const DetachKey = `Ctrl-\ d`

const keysLine = "\x18\x1b7\x1b[9999;1H\x1b[2K\x1b[7m[atm: Ctrl-\\ d leaves; Ctrl-\\ and any other key are both sent]\x1b[m\x1b8"

// What a terminal says by itself, as regular expressions: reports of focus and the mouse, and answers to
// queries. (A shifted F3 looks like the place of a cursor in the first row.) x/ansi's decoder is not used for
// what a terminal sends: it ends a string at the byte 0x9C, which is a part of "✳", and atm would start
// later for it (measured: 0.16 ms).
const (
	Report = `\x1b\[[IO]|\x1b\[<[\d;]*[Mm]|\x1b\[M...`
	Answer = `\x1b\[[?>=]?[\d;$]*[cnyt]|\x1b\[\d+;\d+R|\x1b\[[?>=][\d;]*[Ru]|\x1b[]P_^X][^\a\x1b]*(?:\a|\x1b\\)`
)

// keyPattern is the first key, or report of the terminal, in some input. Programs have keys written as
// sequences: by the kitty protocol (64 and 128: locks) or xterm's modifyOtherKeys.
var keyPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?s)^(?:` +
		`(\x1c|\x1b\[92[:\d]*;(?:5|69|133|197)(?::1)?u|\x1b\[27;5;92~)` + // 1: Ctrl-\
		`|(d|\x1b\[100[:\d]*(?:;(?:1|65|129|193)?(?::1)?)?u)` + // 2: d
		`|(\?|\x1b\[(?:\d+:)?63(?:;\d+(?::1)?)?u|\x1b\[27;2;63~)` + // 3: ?
		// 4: no key; the release of one, or Shift and the like alone
		`|(` + Report + `|` + Answer + `|\x1b\[[\d:;]*:3[~A-Su]|\x1b\[574[45][^u]*u)` +
		`|\x1b\[200~.*?(?:\x1b\[201~|$)|\x1b\[[ -?]*[@-~]|\x1bO.|.)`) // a paste, and any other key
})

// A keyScanner finds the detach key in what a terminal sends. Ctrl-\ is held until the next key: a d or ? takes it
// away, any other goes on together with it. A sequence, or a paste, that comes in two pieces is not known as one.
type keyScanner struct{ held []byte }

// scan returns what is to be sent of a piece of input, and whether the keys are to be shown or the viewer
// leaves; what follows that key is dropped.
func (k *keyScanner) scan(p []byte) (out []byte, help, detach bool) {
	for len(p) > 0 {
		found := keyPattern().FindSubmatch(p)
		key, armed := found[0], len(k.held) > 0
		p = p[len(key):]
		switch {
		case armed && found[2] != nil:
			return out, false, true
		case armed && found[3] != nil:
			k.held = nil
			return out, true, false
		case armed && found[4] != nil:
			out = append(out, key...)
		case found[1] != nil:
			out, k.held = append(out, k.held...), bytes.Clone(key)
		default:
			out, k.held = append(append(out, k.held...), key...), nil
		}
	}
	return out, false, false
}
