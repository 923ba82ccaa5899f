package wire

import (
	"strings"
	"testing"
)

func TestDetect(t *testing.T) {
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
		o, err := ReadObject([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		name, kind := detect(o)
		if v, _, _ := strings.Cut(name, "."); v != string(c.v) || kind != c.kind {
			t.Errorf("%s: %q, %q", c.text, name, kind)
		}
	}
}

func TestHumanText(t *testing.T) {
	const draft = `"draft_id":"6f1c2a34-0b7e-4c1d-9a55-0123456789ab"`
	for _, c := range []struct {
		text, body string
		ok, err    bool
	}{
		{`{"input_type":"message","text":"hi"}`, "hi", true, false},
		{`{"text":"hi","input_type":"message"}`, "hi", true, false},
		{`{"input_type":"approve",` + draft + `,"artifact_uri":null}`, "approve draft 6f1c2a34-0b7e-4c1d-9a55-0123456789ab", true, false},
		{`{"input_type":"approve",` + draft + `,"artifact_uri":"fs://a"}`, "approve fs://a in draft 6f1c2a34-0b7e-4c1d-9a55-0123456789ab", true, false},
		{`{"input_type":"reject",` + draft + `,"reason":"no"}`, "reject draft 6f1c2a34-0b7e-4c1d-9a55-0123456789ab: no", true, false},
		{`{"input_type":"reject",` + draft + `,"reason":""}`, "reject draft 6f1c2a34-0b7e-4c1d-9a55-0123456789ab", true, false},
		{`{"input_type":"abort"}`, "abort session", true, false},
		{`{"input_type":"theirs"}`, "", false, false},
		{`{"input_type":5}`, "", true, true},
		{`{"input_type":"message","text":5}`, "", true, true},
		{`{"text":5,"input_type":"message"}`, "", true, true},
		{`{"input_type":"approve","draft_id":"d"}`, "", true, true},
		{`{"input_type":"reject",` + draft + `}`, "", true, true},
		{`{"text":5}`, "", false, false},
		{`{"text":"hi"}`, "", false, false},
	} {
		body, ok, err := HumanText([]byte(c.text))
		if body != c.body || ok != c.ok || (err != nil) != c.err {
			t.Errorf("%s: %q, %v, %v", c.text, body, ok, err)
		}
	}
}
