package session

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

// A session is read with encoding/json as it was written, whole, by value and by pointer.
func TestEncodingJSON(t *testing.T) {
	at := time.Unix(1e9, 0).UTC()
	s := Session{
		InteractiveSession: InteractiveSession{
			SessionID: wire.UUID(wire.NewID()), GoalID: NoGoal, ChannelID: "cli:tty0", AgentID: "bob", State: Active, CreatedAt: at, UpdatedAt: at,
			Messages: []Entry{{Sender: SenderHuman, Content: "hi", Timestamp: at, Extra: json.RawMessage(`{"id":"x"}`)}},
		},
		Notes: Notes{Seq: 7, Runner: Binding{Owned: true, Extra: json.RawMessage(`{"b":1}`)}, Extra: json.RawMessage(`{"n":1}`)},
		Extra: json.RawMessage(`{"theirs":[1.10]}`),
	}
	for _, v := range []any{s, &s, []Session{s}[0]} {
		data, err := json.Marshal(v)
		var out Session
		if err == nil {
			err = json.Unmarshal(data, &out)
		}
		if err != nil || !reflect.DeepEqual(out, s) {
			t.Errorf("%v\n%+v\n%+v\n%s", err, s, out, data)
		}
	}
	var out Session
	if err := json.Unmarshal([]byte(`{"created_at":"yesterday"}`), &out); err == nil {
		t.Error("a bad time is read")
	}
}
