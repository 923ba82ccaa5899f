package failure

import "testing"

func TestNearest(t *testing.T) {
	known := []string{"bob", "alice", "read", "unread", "withdraw", "up"}
	for word, want := range map[string]string{"bbo": "bob", "alcie": "alice", "raed": "read", "Bob": "bob", "UP": "up", "nuread": "unread", "withdrwa": "withdraw", "ui": "", "x": "", "dave": "", "": "", "reading": "read", "bobby": "bob", "stop": ""} {
		if got, _ := Nearest(word, known); got != want {
			t.Errorf("%s: %q, not %q", word, got, want)
		}
	}
}
