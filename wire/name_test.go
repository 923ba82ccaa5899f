package wire

import (
	"strings"
	"testing"
)

func TestParseName(t *testing.T) {
	for _, s := range []string{"a", "0", "bob", "a-b_c", strings.Repeat("a", 64)} {
		if n, err := ParseName(s); err != nil || string(n) != s {
			t.Errorf("%q: %v", s, err)
		}
	}
	for _, s := range []string{
		"", "A", "-a", "_a", "a b", "a.b", ".", "..", "../a", "a/b", `a\b`, "a\x00", "a\n", "é", "all", "drop",
		strings.Repeat("a", 65), ".locks", "bob@main",
	} {
		if _, err := ParseName(s); err == nil {
			t.Errorf("%q is a name", s)
		}
	}
}

func TestParseAddress(t *testing.T) {
	for s, want := range map[string]Address{
		"bob": {"bob", "main", ""}, "bob@other": {"bob", "other", ""}, "drop@main": {"drop", "main", ""}, "drop": {"drop", "main", ""},
		"bob@main.build": {"bob", "main", "build"}, "drop@main.build": {"drop", "main", "build"},
	} {
		a, err := ParseAddress(s, "main")
		if err != nil || a != want {
			t.Errorf("%q: %v, %v", s, a, err)
		}
		if again, err := ParseAddress(a.String(), ""); err != nil || again != a {
			t.Errorf("%q is read back as %v, %v", s, again, err)
		}
	}
	for _, s := range []string{"", "@", "bob@", "@main", "all", "bob@all", "bob@drop", "bob@main@x", "../x@main", "bob@../x",
		"bob.build", "bob@.build", "bob@main.", "bob@main.all", "bob@main.build.x", "bob@main.build@x", "bob@main./x",
	} {
		if a, err := ParseAddress(s, "main"); err == nil {
			t.Errorf("%q is %v", s, a)
		}
	}
}

func TestMessageBetweenHosts(t *testing.T) {
	alice, bob, there := Address{"alice", "main", ""}, Address{"bob", "main", ""}, Address{"bob", "main", "build"}
	m := &Message{ID: NewID(), From: alice, To: []Address{bob, there}, Body: "hi"}
	id := m.ID
	m.ReplaceHost("", "laptop")
	if m.ID != id || m.From.String() != "alice@main.laptop" || m.To[0].Host != "laptop" || m.To[1] != there {
		t.Errorf("on its way: %v", m)
	}
	m.ReplaceHost("build", "")
	if m.From.Host != "laptop" || m.To[0].Host != "laptop" || m.To[1] != bob {
		t.Errorf("at build: %v", m)
	}
	ack := &Message{ID: AckID(id, bob, 0), Type: TypeAck, From: bob, To: []Address{m.From}, InReplyTo: id}
	ack.ReplaceHost("", "build")
	if ack.ID != AckID(id, there, 0) || ack.ID == AckID(id, bob, 0) || !IsID(string(ack.ID)) {
		t.Errorf("the ack of bob at build has the id %s", ack.ID)
	}
	if later := AckID(id, bob, 1); later == AckID(id, bob, 0) || later.onHost("build") != AckID(id, there, 1) {
		t.Errorf("his second ack has the id %s", later)
	}
}
