package mail

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/wire"
)

func TestStatesText(t *testing.T) {
	for _, tt := range []struct {
		want       string
		recipients []recipientState
	}{
		{"read", []recipientState{{State: "read"}}},
		{"read", []recipientState{{State: "read"}, {State: "read"}}},
		{"2 read, 1 unread", []recipientState{{State: "read"}, {State: "unread"}, {State: "read"}}},
		{"done", []recipientState{{State: "acked", Outcome: "done"}}}, // an outcome says more
		{"1 acked, 1 blocked", []recipientState{{State: "acked"}, {State: "acked", Outcome: "blocked"}}},
	} {
		if got := statesText(tt.recipients); got != tt.want {
			t.Errorf("%v: %s", tt.recipients, got)
		}
	}
}

// The JSON of a message has what its file has, also what atm does not know, and its state.
func TestMessageJSON(t *testing.T) {
	m, err := wire.Decode([]byte(`{"id":"01890000-0000-7000-8000-00000000abcd","from":"bob@main","to":["alice@main"],"body":"x","sent_at":"2026-01-01T00:00:00Z","x-custom":7}`))
	must(t, err)
	ack := *m
	ack.Type = wire.TypeAck
	ack.SetOutcome("blocked")
	lease := &wire.Lease{By: wire.Address{Agent: "bob", Team: "main"}, Until: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	for name, tt := range map[string]struct {
		m    message
		want map[string]any
	}{
		"received": {message{Item: &wire.Item{Message: m, State: wire.Owed}}, map[string]any{"state": "owed", "short": "00abcd"}},
		"long id":  {message{Item: &wire.Item{Message: m, State: wire.Unread}, digits: 8}, map[string]any{"state": "unread", "short": "0000abcd"}},
		"sent": {message{Item: &wire.Item{Message: m}, slowest: wire.Unread, recipients: []recipientState{{To: "alice@main", State: "unread"}}},
			map[string]any{"state": "unread", "short": "00abcd", "recipients": []any{map[string]any{"to": "alice@main", "state": "unread"}}}},
		"leased": {message{Item: &wire.Item{Message: m, State: wire.Unread, Lease: lease}},
			map[string]any{"state": "unread", "short": "00abcd", "lease": map[string]any{"by": "bob@main", "until": "2026-01-02T03:04:05Z"}}},
		"replaced": {message{Item: &wire.Item{Message: m, State: wire.Done}, supersededBy: m.ID},
			map[string]any{"state": "done", "short": "00abcd", "superseded_by": string(m.ID)}},
		"ack": {message{Item: &wire.Item{Message: &ack, State: wire.Done}}, map[string]any{"state": "done", "short": "00abcd", "outcome": "blocked"}},
	} {
		text, err := json.Marshal(tt.m)
		must(t, err)
		var got map[string]any
		must(t, json.Unmarshal(text, &got))
		if got["body"] != "x" || got["x-custom"] != 7.0 {
			t.Errorf("%s: %s", name, text)
		}
		for _, key := range []string{"id", "from", "to", "body", "sent_at", "x-custom", "type", "payload"} {
			delete(got, key)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// Beyond the limit messages are counted, and so are those that were left out before.
func TestPrintLinesLimit(t *testing.T) {
	s := newScope(t)
	var items []*wire.Item
	for range 5 {
		items = append(items, &wire.Item{Message: &wire.Message{ID: wire.NewID(), Body: "x"}, State: wire.Done})
	}
	for page, want := range map[[2]int][2]int{{0, 0}: {5, 2}, {0, 3}: {3, 4}, {0, 4}: {4, 3}, {0, 5}: {5, 2}, {0, 9}: {5, 2}, {2, 2}: {2, 3}, {4, 2}: {1, 2}, {9, 2}: {0, 2}} {
		p, out := newPrinter(s, true)
		l := newListing(p, items, nil)
		l.More = 2
		must(t, l.printLines(p, &letter.Renderer{}, page[0], page[1], "none"))
		var got struct {
			Messages []any
			More     int
			Owed     []any
		}
		must(t, json.Unmarshal(out.Bytes(), &got))
		if len(got.Messages) != want[0] || got.More != want[1] || got.Owed == nil {
			t.Errorf("offset and limit %v: %d messages, %d more, owed %v", page, len(got.Messages), got.More, got.Owed)
		}
	}
}
