package failure

import "testing"

func TestNearest(t *testing.T) {
	known := []string{"bob", "alice", "read", "unread", "withdraw", "up", "pm"}
	for word, want := range map[string]string{"bbo": "bob", "alcie": "alice", "raed": "read", "Bob": "bob", "UP": "up", "nuread": "unread", "withdrwa": "withdraw", "ui": "", "x": "", "dave": "", "ps": "", "": "", "reading": "read", "bobby": "bob", "stop": ""} {
		if got, _ := Nearest(word, known); got != want {
			t.Errorf("%s: %q, not %q", word, got, want)
		}
	}
}

func TestIsSlip(t *testing.T) {
	for pair, want := range map[[2]string]bool{
		{"aprove", "approve"}: true, {"rejcet", "reject"}: true, {"stpo", "stop"}: true, {"claims", "claim"}: true, {"dare", "read"}: false,
		{"resume", "reject"}: false, {"config", "confirm"}: false, {"start", "restart"}: false, {"unclaim", "claim"}: false,
	} {
		if got := IsSlip(pair[0], pair[1]); got != want {
			t.Errorf("%v: %v", pair, got)
		}
	}
}
