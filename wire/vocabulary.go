package wire

import "fmt"

// Vocabulary is one of the systems whose events are understood.
type Vocabulary string

// The vocabularies, named by who speaks them.
const (
	Daemon  Vocabulary = "daemon"  // tag "kind"
	Session Vocabulary = "session" // tag "event_type"
	ACP     Vocabulary = "acp"     // tags "update_type" and "sessionUpdate"
)

// Foreign says what an object of another vocabulary is: its vocabulary and its
// kind. An object that has a body or an addressee is a message, whatever else
// it carries. A "kind" that is no word of lower-case letters, digits and
// underscores is somebody else's (a Kubernetes manifest has one too).
func Foreign(fields []Field) (v Vocabulary, kind string, ok bool) {
	for _, f := range fields {
		switch f.Key {
		case "body", "to", "from", "subject":
			return "", "", false
		}
	}
	for _, tag := range []struct {
		key string
		v   Vocabulary
	}{{"event_type", Session}, {"sessionUpdate", ACP}, {"update_type", ACP}, {"kind", Daemon}} {
		for _, f := range fields {
			if f.Key != tag.key {
				continue
			}
			s, err := decodeString(f.Raw)
			if err == nil && isKind(s) {
				return tag.v, s, true
			}
		}
	}
	return "", "", false
}

func isKind(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_') {
			return false
		}
	}
	return true
}

// HumanInput says whether an object is what a person says to an interactive
// session (tag "input_type"), and the text that stands for it in a mailbox:
// the message's text, or the kind in words.
func HumanInput(fields []Field) (body string, ok bool, err error) {
	var kind, text, draft, reason string
	for _, f := range fields {
		var s string
		switch f.Key {
		case "input_type", "text", "draft_id", "reason":
			var e error
			if s, e = decodeString(f.Raw); e != nil && err == nil {
				err = fmt.Errorf("%s: %s", f.Key, e)
				ok = f.Key == "input_type"
			}
		}
		switch f.Key {
		case "input_type":
			kind = s
		case "text":
			text = s
		case "draft_id":
			draft = s
		case "reason":
			reason = s
		}
	}
	if err != nil {
		switch kind {
		case "message", "approve", "reject", "abort":
			ok = true
		}
		return "", ok, err
	}
	switch kind {
	case "message":
		return text, true, nil
	case "approve":
		return "approve draft " + draft, true, nil
	case "reject":
		if reason != "" {
			return "reject draft " + draft + ": " + reason, true, nil
		}
		return "reject draft " + draft, true, nil
	case "abort":
		return "abort", true, nil
	}
	return "", false, nil
}
