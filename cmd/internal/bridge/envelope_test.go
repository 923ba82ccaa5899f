package bridge

import (
	"bytes"
	"crypto/ed25519"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/hostkey"
	"github.com/agentteammail/atm/wire"
)

// Open accepts only what the named host has signed as a whole.
func FuzzOpen(f *testing.F) {
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte("k"), ed25519.SeedSize))
	key := func(host wire.Name) (ed25519.PublicKey, error) {
		if host != "laptop" {
			return nil, hostkey.ErrNoKey
		}
		return private.Public().(ed25519.PublicKey), nil
	}
	made := func(change func(*Envelope)) []byte {
		e := &Envelope{
			Kind: KindMail, ID: "01a1f859-f5a6-728f-8e26-bc745809e3b2", Team: "main", FromHost: "laptop", ToHost: "build",
			At: time.Date(2026, 11, 20, 9, 46, 47, 5, time.UTC), Content: []byte("hi\n"),
		}
		change(e)
		return e.Sign(private)
	}
	plain := made(func(*Envelope) {})
	if e, err := Open(plain, key); err != nil || string(e.Content) != "hi\n" {
		f.Fatal(e, err)
	}
	genuine := map[string]bool{}
	for _, change := range []func(*Envelope){
		func(*Envelope) {}, func(e *Envelope) { e.Object = true }, func(e *Envelope) { e.Content = nil }, func(e *Envelope) { e.FromHost = "cloud" },
	} {
		data := made(change)
		genuine[string(data)] = true
		f.Add(data)
		f.Add(data[:len(data)/2])
		f.Add([]byte(strings.Replace(string(data), "build", "desk", 1)))
		f.Add([]byte(strings.Replace(string(data), "{", `{"version":2,"x":1,`, 1)))
	}
	f.Add([]byte(`{"version":1,"size":-1,"at":"9999-12-31T23:59:60Z"}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := Open(data, key)
		if err != nil || genuine[string(data)] {
			return
		}
		// A header may be formatted differently; its values and the content are those that were signed.
		if e.FromHost != "laptop" || !bytes.Equal(ed25519.Sign(private, e.signed()), e.Signature) || !e.Object && e.checkContent() != nil {
			t.Errorf("accepted: %q", data)
		}
	})
}
