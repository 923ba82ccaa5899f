package wire

import "testing"

func TestForeign(t *testing.T) {
	for _, c := range []struct {
		text, kind string
		v          Vocabulary
	}{
		{`{"kind":"turn_started"}`, "turn_started", Daemon},
		{`{"kind":"not_known_yet"}`, "not_known_yet", Daemon},
		{`{"event_type":"agent_output","kind":"x"}`, "agent_output", Session},
		{`{"update_type":"message_delta"}`, "message_delta", ACP},
		{`{"sessionUpdate":"agent_message_chunk","kind":"read"}`, "agent_message_chunk", ACP},
		{`{"kind":"Deployment","apiVersion":"v1"}`, "", ""},
		{`{"kind":5}`, "", ""}, {`{"kind":""}`, "", ""}, {`{"Kind":"x"}`, "", ""}, {`{}`, "", ""},
		{`{"kind":"turn_started","body":"x"}`, "", ""}, {`{"kind":"turn_started","to":"bob"}`, "", ""},
	} {
		fields, err := Object([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		v, kind, ok := Foreign(fields)
		if v != c.v || kind != c.kind || ok != (c.kind != "") {
			t.Errorf("%s: %q, %q, %v", c.text, v, kind, ok)
		}
	}
}

func TestHumanInput(t *testing.T) {
	for _, c := range []struct {
		text, body string
		ok, err    bool
	}{
		{`{"input_type":"message","text":"hi"}`, "hi", true, false},
		{`{"text":"hi","input_type":"message"}`, "hi", true, false},
		{`{"input_type":"approve","draft_id":"d","artifact_uri":null}`, "approve draft d", true, false},
		{`{"input_type":"reject","draft_id":"d","reason":"no"}`, "reject draft d: no", true, false},
		{`{"input_type":"reject","draft_id":"d","reason":""}`, "reject draft d", true, false},
		{`{"input_type":"abort"}`, "abort", true, false},
		{`{"input_type":"theirs"}`, "", false, false},
		{`{"input_type":5}`, "", true, true},
		{`{"input_type":"message","text":5}`, "", true, true},
		{`{"text":5,"input_type":"message"}`, "", true, true},
		{`{"text":5}`, "", false, true},
		{`{"text":"hi"}`, "", false, false},
	} {
		fields, err := Object([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		body, ok, err := HumanInput(fields)
		if body != c.body || ok != c.ok || (err != nil) != c.err {
			t.Errorf("%s: %q, %v, %v", c.text, body, ok, err)
		}
	}
}
