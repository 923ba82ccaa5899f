package hook

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/agentteammail/atm/wire"
)

// object is a JSON object as a tool sent it, looked at leniently: what is
// absent, or of another type than expected, is the zero value.
type object wire.Object

// parse takes apart what a tool sent. What is no JSON object is an error.
func parse(raw []byte) (object, error) {
	o, err := wire.ReadObject(raw)
	return object(o), err
}

func (o object) raw(key string) json.RawMessage { return wire.Object(o).Get(key) }

// text is the first of these members that is a string, and not empty.
func (o object) text(keys ...string) string {
	for _, k := range keys {
		if s := text(o.raw(k)); s != "" {
			return s
		}
	}
	return ""
}

func text(raw json.RawMessage) (s string) {
	json.Unmarshal(raw, &s)
	return s
}

func (o object) is(key string) bool { return string(o.raw(key)) == "true" }

// within is a member that is an object.
func (o object) within(key string) object {
	raw := o.raw(key)
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	in, _ := parse(raw)
	return in
}

// each is the elements of a member that is an array.
func (o object) each(key string) (all []json.RawMessage) {
	raw := o.raw(key)
	if len(raw) > 0 && raw[0] == '[' {
		json.Unmarshal(raw, &all)
	}
	return all
}

// clip cuts a text to so many bytes, at a character's end.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
