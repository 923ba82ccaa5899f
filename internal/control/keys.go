package control

import "bytes"

// DetachKey is what a person types to leave, as help writes it.
const DetachKey = `Ctrl-\ d`

// keys finds the detach key in what a terminal sends, however that is cut into
// pieces, and passes on everything else as it is.
//
// Ctrl-\ is held back until the next key: after a d both are gone, after
// anything else both are passed on, after another Ctrl-\ the first is. What is
// no key leaves it held: the terminal's answers to queries, mouse and focus
// reports, the release of a key. Nothing inside a bracketed paste is a key.
//
// Programs may switch the terminal to writing keys as sequences (the kitty
// protocol, as Codex does, or xterm's modifyOtherKeys): both forms of Ctrl-\
// and d count. The beginning of a sequence is therefore held until its end, at
// most for the moment after which the caller calls settle: an Escape key alone
// is the beginning of one.
type keys struct {
	state keyState
	seq   []byte // the sequence being read
	sent  int    // how much of it was passed on already
	match int    // how much of the paste's end, or of a mouse report, was seen

	armed bool   // Ctrl-\ was typed
	held  []byte // as these bytes
	out   []byte
}

type keyState uint8

const (
	ground keyState = iota
	escape
	control  // ESC [
	overlong // the same, longer than any key
	single   // ESC O
	mouse    // three bytes after ESC [ M
	text     // an answer that is a string: OSC, DCS, APC, PM, SOS
	textEnd  // ESC inside one
	paste
)

// keyKind is what a piece of input is to the detach key.
type keyKind uint8

const (
	otherKey  keyKind = iota
	noKey             // a report, or a key's release
	prefixKey         // Ctrl-\
	prefixUp          // its release or repetition
	detachKey         // d
)

const (
	esc      = 0x1b
	ctrlBack = 0x1c
	// longestKey is more than any key's sequence takes.
	longestKey = 64
	pasteEnd   = "\x1b[201~"
)

// feed takes what was read and returns what is to be passed on, good until the
// next call, and whether the detach key was in it. What follows that is
// dropped.
func (k *keys) feed(p []byte) (out []byte, detach bool) {
	k.out = k.out[:0]
	for _, b := range p {
		if k.step(b) {
			k.armed, k.held = false, nil
			return k.out, true
		}
	}
	return k.out, false
}

// unsettled reports whether the beginning of a sequence waits for its rest.
func (k *keys) unsettled() bool { return len(k.seq) > k.sent }

// settle passes on the beginning of a sequence whose rest has not come.
func (k *keys) settle() []byte {
	k.out = k.out[:0]
	if k.unsettled() {
		k.disarm()
		k.out = append(k.out, k.seq[k.sent:]...)
		k.sent = len(k.seq)
	}
	return k.out
}

// step takes a byte and reports whether it completes the detach key.
func (k *keys) step(b byte) (detach bool) {
	switch k.state {
	case ground:
		return k.key(b)
	case escape, textEnd:
		switch {
		case b == '\\' && k.state == textEnd:
			k.seq = append(k.seq, b)
			k.end(noKey)
		case b == '[':
			k.seq, k.state = append(k.seq, b), control
		case b == 'O':
			k.seq, k.state = append(k.seq, b), single
		case b == ']', b == 'P', b == '_', b == '^', b == 'X':
			k.seq = append(k.seq, b)
			k.end(noKey)
			k.state = text
		case b == esc, b == ctrlBack: // an Escape key, and the next
			k.end(otherKey)
			return k.key(b)
		default:
			k.seq = append(k.seq, b)
			k.end(otherKey) // with Alt
		}
	case single:
		if b < 0x20 {
			k.end(otherKey)
			return k.key(b)
		}
		k.seq = append(k.seq, b)
		k.end(otherKey)
	case control:
		switch {
		case b < 0x20 || b >= 0x7f: // no sequence after all
			k.end(otherKey)
			return k.key(b)
		case b < 0x40:
			k.seq = append(k.seq, b)
			if len(k.seq) >= longestKey {
				k.end(noKey)
				k.state = overlong
			}
		default:
			k.seq = append(k.seq, b)
			kind, next := sequence(k.seq)
			detach = k.end(kind)
			k.state, k.match = next, 0
		}
	case overlong:
		if b < 0x20 || b >= 0x7f {
			k.state = ground
			return k.key(b)
		}
		k.out = append(k.out, b)
		if b >= 0x40 {
			k.state = ground
		}
	case mouse:
		k.out = append(k.out, b)
		if k.match++; k.match == 3 {
			k.state = ground
		}
	case text:
		switch {
		case b == esc:
			k.seq, k.sent, k.state = append(k.seq[:0], b), 0, textEnd
		case b < 0x20 && b != '\a': // no answer after all: Alt and ] were typed
			k.state = ground
			return k.key(b)
		default:
			k.out = append(k.out, b)
			if b == '\a' {
				k.state = ground
			}
		}
	case paste:
		k.out = append(k.out, b)
		switch {
		case b == pasteEnd[k.match]:
			k.match++
		case b == pasteEnd[0]:
			k.match = 1
		default:
			k.match = 0
		}
		if k.match == len(pasteEnd) {
			k.state = ground
		}
	}
	return detach
}

// key takes a byte that begins something.
func (k *keys) key(b byte) (detach bool) {
	k.seq, k.sent = append(k.seq[:0], b), 0
	switch b {
	case esc:
		k.state = escape
		return false
	case ctrlBack:
		return k.end(prefixKey)
	case 'd':
		return k.end(detachKey)
	}
	return k.end(otherKey)
}

// end is the end of what stands in seq.
func (k *keys) end(kind keyKind) (detach bool) {
	rest := k.seq[k.sent:]
	switch {
	case kind == detachKey && k.armed:
		detach = true
	case kind == prefixKey:
		k.disarm()
		k.armed = true
		if k.sent > 0 { // its beginning is gone: nothing of it is held
			k.out = append(k.out, rest...)
		} else {
			k.held = append(k.held, rest...)
		}
	case kind == prefixUp && k.armed && len(k.held) > 0:
		k.held = append(k.held, rest...)
	default:
		if kind == otherKey || kind == detachKey {
			k.disarm()
		}
		k.out = append(k.out, rest...)
	}
	k.seq, k.sent, k.state = k.seq[:0], 0, ground
	return detach
}

// disarm passes on the Ctrl-\ that was held.
func (k *keys) disarm() {
	k.out = append(k.out, k.held...)
	k.armed, k.held = false, k.held[:0]
}

// sequence says what a whole sequence that begins with ESC [ is, and what
// comes after it.
func sequence(seq []byte) (keyKind, keyState) {
	final := seq[len(seq)-1]
	params := seq[2 : len(seq)-1]
	private := len(params) > 0 && params[0] >= '<' && params[0] <= '?'
	first, second, third := fields(params)
	switch final {
	case 'M':
		if len(params) == 0 {
			return noKey, mouse
		}
		return noKey, ground
	case 'm', 'R', 'c', 'n', 't', 'y':
		return noKey, ground
	case 'I', 'O':
		if len(params) == 0 {
			return noKey, ground
		}
	case '~':
		switch {
		case first.number == 200 && second.number == 0:
			return otherKey, paste
		case first.number == 201:
			return noKey, ground
		case first.number == 27 && third.number > 0: // modifyOtherKeys
			return press(third.number, second), ground
		}
	case 'u':
		if !private {
			return press(first.number, second), ground
		}
	}
	if private || second.event == released {
		return noKey, ground
	}
	return otherKey, ground
}

// press says what a key is, by its code and the field of its modifiers.
func press(code int, with field) keyKind {
	const (
		ctrl  = 4
		locks = 64 | 128 // Caps Lock and Num Lock
	)
	modifiers := max(with.number-1, 0) &^ locks
	switch {
	case code == '\\' && modifiers == ctrl && with.event <= pressed:
		return prefixKey
	case code == '\\' && with.event > pressed:
		return prefixUp
	case with.event == released, code >= 57441 && code <= 57454: // Shift, Ctrl and the like alone
		return noKey
	case code == 'd' && modifiers == 0:
		return detachKey
	}
	return otherKey
}

// A field is a parameter: its number, and in the kitty protocol the event.
type field struct{ number, event int }

const (
	pressed  = 1
	released = 3
)

// fields reads the first three parameters.
func fields(params []byte) (a, b, c field) {
	var all [3]field
	for i := range all {
		var one []byte
		one, params, _ = bytes.Cut(params, []byte{';'})
		number, event, _ := bytes.Cut(one, []byte{':'})
		all[i] = field{digits(number), digits(event)}
	}
	return all[0], all[1], all[2]
}

// digits reads a number up to the first other byte; too large ones are cut.
func digits(p []byte) int {
	n := 0
	for _, b := range p {
		if b < '0' || b > '9' || n > 1_000_000 {
			break
		}
		n = 10*n + int(b-'0')
	}
	return n
}
