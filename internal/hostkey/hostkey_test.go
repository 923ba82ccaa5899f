package hostkey

import (
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/agentteammail/atm/wire"
)

func TestKeys(t *testing.T) {
	laptop, build := Dir(filepath.Join(t.TempDir(), "atm")), Dir(t.TempDir())
	if hosts, err := laptop.Hosts(); err != nil || hosts != nil {
		t.Errorf("of a directory that is not there yet: %v, %v", hosts, err)
	}
	public, err := laptop.Generate("laptop")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := laptop.Generate("laptop"); err != nil || !again.Equal(public) {
		t.Errorf("generated again: %v, %v", again, err)
	}
	if info, err := os.Stat(filepath.Join(string(laptop), "keys", "laptop")); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the private key: %v, %v", info, err)
	}
	key, err := ParseKey(EncodeKey(public))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := build.Trust("laptop", key, false); err != nil {
			t.Fatal(err)
		}
	}
	private, err := laptop.Private("laptop")
	trusted, err2 := build.Key("laptop")
	if err != nil || err2 != nil || !ed25519.Verify(trusted, []byte("hi"), ed25519.Sign(private, []byte("hi"))) {
		t.Errorf("what laptop signs, build does not accept: %v, %v", err, err2)
	}
	other, err := build.Generate("build")
	if err != nil {
		t.Fatal(err)
	}
	if err := build.Trust("laptop", other, false); !errors.Is(err, ErrOtherKey) {
		t.Errorf("another key: %v", err)
	}
	if err := build.Trust("laptop", other, true); err != nil {
		t.Errorf("replaced: %v", err)
	}
	if now, err := build.Key("laptop"); err != nil || !other.Equal(now) {
		t.Errorf("after that: %v, %v", now, err)
	}
	if err := build.Trust("build", public, true); !errors.Is(err, ErrOwn) {
		t.Errorf("itself: %v", err)
	}
	hosts, err := build.Hosts()
	if err != nil || !slices.Equal(hosts, []wire.Name{"laptop"}) {
		t.Errorf("hosts %v: %v", hosts, err)
	}
	if _, err := build.Key("cloud"); !errors.Is(err, ErrNoKey) {
		t.Errorf("of a stranger: %v", err)
	}
}

func TestRefused(t *testing.T) {
	d := Dir(t.TempDir())
	for _, s := range []string{"", "../x", "bad", "rows", "received", "all", "A"} {
		if _, err := ParseHost(s); err == nil {
			t.Errorf("%q is a host", s)
		}
		if _, err := d.Private(wire.Name(s)); err == nil || errors.Is(err, ErrNoKey) {
			t.Errorf("the key of %q: %v", s, err)
		}
	}
	for _, s := range []string{"", "x", "aGk=", EncodeKey(make([]byte, 33))} {
		if _, err := ParseKey(s); err == nil {
			t.Errorf("%q is a key", s)
		}
	}
	if _, err := Dir("").Generate("laptop"); err == nil {
		t.Error("a key in no directory")
	}
	os.Mkdir(filepath.Join(string(d), "trusted"), 0o700)
	os.WriteFile(filepath.Join(string(d), "trusted", "build"), []byte("torn"), 0o600)
	if _, err := d.Key("build"); err == nil || errors.Is(err, ErrNoKey) {
		t.Errorf("a torn key: %v", err)
	}
	if err := d.Trust("build", make([]byte, 32), false); err == nil {
		t.Error("a torn key is replaced unasked")
	}
}
