package watcher

import (
	"encoding/hex"

	"github.com/agentteammail/atm/wire"
)

// key is the id of a message as sixteen bytes: what is kept of every message
// seen.
type key [16]byte

func keyOf(id wire.ID) (k key) {
	var digits [32]byte
	n := 0
	for i := 0; i < len(id) && n < len(digits); i++ {
		if id[i] != '-' {
			digits[n] = id[i]
			n++
		}
	}
	hex.Decode(k[:], digits[:])
	return k
}

// keyOfName is the key of a message's file name.
func keyOfName(name string) (key, bool) {
	if len(name) != 41 || name[36:] != ".json" || !wire.IsID(name[:36]) {
		return key{}, false
	}
	return keyOf(wire.ID(name[:36])), true
}

func (k key) id() wire.ID {
	b := make([]byte, 0, 36)
	b = hex.AppendEncode(b, k[0:4])
	for _, part := range [][]byte{k[4:6], k[6:8], k[8:10], k[10:16]} {
		b = hex.AppendEncode(append(b, '-'), part)
	}
	return wire.ID(b)
}
