package session

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/agentteammail/atm/wire"
)

// A draft is in a session once, in the order of the announcements.
func TestDraftVector(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../testdata/wire/behaviour.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Function string
		Calls    []wire.UUID
		Result   json.RawMessage
	}
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, c := range all {
		if c.Function != "InteractiveSession.add_draft" {
			continue
		}
		n++
		s := &Session{}
		for _, id := range c.Calls {
			s.addDraft(Draft{ID: id})
		}
		var want []wire.UUID
		if json.Unmarshal(c.Result, &want); !slices.Equal(s.DraftIDs, want) {
			t.Errorf("%v, not %v", s.DraftIDs, want)
		}
	}
	if n != 1 {
		t.Errorf("%d cases, not one", n)
	}
}
