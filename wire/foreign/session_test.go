package foreign

import (
	"testing"
)

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
		{`{"input_type":5}`, "", false, false},
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
