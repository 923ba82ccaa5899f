package foreign

import (
	"bytes"
	"errors"
	"testing"

	"github.com/agentteammail/atm/wire"
)

const idA = "01900000-0000-7000-8000-00000000000a"

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// located fails unless a decoding error points into the text.
func located(t *testing.T, data []byte, err error) {
	t.Helper()
	if err == nil || errors.Is(err, wire.ErrNotObject) {
		return
	}
	var de *wire.DecodeError
	if !errors.As(err, &de) {
		t.Fatalf("no place: %v", err)
	}
	lines := bytes.Split(data, []byte{'\n'})
	if de.Line < 1 || de.Line > len(lines) || de.Column < 1 || de.Column > len(lines[de.Line-1])+1 {
		t.Fatalf("%v, in a text of %d lines", de, len(lines))
	}
}
