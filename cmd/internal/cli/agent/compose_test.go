package agent

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// If a field has the name of a member that all events have, all fields go under wire.
func TestCompose(t *testing.T) {
	for typed, want := range map[string]string{
		"turn_started turn_id=t session=s event_id=e model=5": `{"seq":1,"kind":"turn_started","session":"s","turn_id":"t","event_id":"e","model":"5"}`,
		"session_start source=startup x=":                     `{"seq":1,"kind":"session_start","wire":{"kind":"session_start","source":"startup","x":""}}`,
		"status_update message=m at=x session=s":              `{"seq":1,"kind":"status_update","session":"s","wire":{"kind":"status_update","at":"x","message":"m"}}`,
		"spawned pid=42 started=5":                            `{"seq":1,"kind":"spawned","pid":42,"started":"5"}`,
		`confirm_required options=[1] o={"a":1} p={a`:         `{"seq":1,"kind":"confirm_required","options":[1],"o":{"a":1},"p":"{a"}`,
		"turn_complete status=failed":                         `{"seq":1,"kind":"turn_completed","status":"failed"}`,
		"error code=E1 message=boom":                          `{"seq":1,"kind":"stream_error","code":"E1","message":"boom","error_summary":"boom"}`,
		"Deploy":                                              "", "x kind=y": "", "x a=1 a=2": "", "x a": "", "x =1": "", "message_read id=5": "", "permission_result by=me": "",
		"exited code=007": "", "exited code=1.0": "", "exited code=": "",
		"turn_completed status=done": "", "turn_completed status=or": "",
		"agent_output stream=stdout": "", "goal_complete goal_id=x": "",
		"dropped_counters dropped=-1": "", "state_change new=busy": "",
	} {
		words := strings.Fields(typed)
		e, err := compose(words[0], words[1:])
		if (err != nil) != (want == "") {
			t.Errorf("%s: %v", typed, err)
		}
		if err != nil {
			continue
		}
		e.Seq = 1
		if diff := cmp.Diff(want, string(e.Append(nil))); diff != "" {
			t.Error(diff)
		}
	}
}
