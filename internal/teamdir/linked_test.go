package teamdir

import (
	"strings"
	"testing"
	"time"
)

// A disk that hangs under another root holds up nothing here, however often it is asked.
func TestHangingRoot(t *testing.T) {
	stuck := &opening{began: time.Now().Add(-openWithin), done: make(chan struct{})}
	r := &Root{others: map[string]*opening{"/web/.atm": stuck}}
	for range 100 {
		if _, err := r.other("/web/.atm"); err == nil || !strings.Contains(err.Error(), "does not answer") {
			t.Fatal(err)
		}
	}
	if r.others["/web/.atm"] != stuck {
		t.Error("it was asked again")
	}
}
