package wire

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Parts are the members of a JSON object that this program wrote, for who
// takes them into variables one by one. A member that is missing or null is the
// zero value; one of another type, or one that encoding/json would not have
// written so, is an error, which Err tells and after which all is zero.
//
// What a command reads whenever it starts is read so: the first value that
// encoding/json decodes into a struct takes a fifth of a millisecond, a tenth of
// an `atm send`. Not for concurrent use.
type Parts struct {
	fields []Field
	err    *error // of the whole text
}

// ReadParts takes an object apart, as Object does. The values stay parts of
// data.
func ReadParts(data []byte) Parts {
	fields, err := taken(data, nil)
	return Parts{fields, &err}
}

// Err is what is wrong with the object, or with the first member that was not
// what it was asked for as.
func (p Parts) Err() error { return *p.err }

// Fail has Err tell what is wrong with a member, unless something was before.
func (p Parts) Fail(key, what string) {
	if *p.err == nil {
		*p.err = fmt.Errorf("%s: %s", key, what)
	}
}

// Raw is a member's value, nil when it is missing or null.
func (p Parts) Raw(key string) json.RawMessage {
	if *p.err != nil {
		return nil
	}
	return find(p.fields, key)
}

// Text is a string.
func (p Parts) Text(key string) string {
	raw := p.Raw(key)
	if raw == nil {
		return ""
	}
	s, err := decodeString(raw)
	if err != nil {
		p.Fail(key, "no string")
	}
	return s
}

// Bool is true or false.
func (p Parts) Bool(key string) bool {
	raw := p.Raw(key)
	if raw != nil && string(raw) != "true" && string(raw) != "false" {
		p.Fail(key, "neither true nor false")
	}
	return string(raw) == "true"
}

// Uint is a whole number of 64 bits, not below 0.
func (p Parts) Uint(key string) uint64 {
	raw := p.Raw(key)
	if raw == nil {
		return 0
	}
	n, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil {
		p.Fail(key, "no whole number from 0")
	}
	return n
}

// Int is a whole number of 64 bits.
func (p Parts) Int(key string) int64 {
	raw := p.Raw(key)
	if raw == nil {
		return 0
	}
	n, err := decodeInt64(raw)
	if err != nil {
		p.Fail(key, "no whole number")
	}
	return n
}

// Time is a time in UTC.
func (p Parts) Time(key string) time.Time {
	raw := p.Raw(key)
	if raw == nil {
		return time.Time{}
	}
	t, err := decodeTime(raw)
	// time.Parse takes more than RFC 3339 allows: a comma, an hour of one digit.
	if s := string(raw); err != nil || len(s) < len(`"2006-01-02T15:04:05Z"`) || !strings.HasSuffix(s, `Z"`) || strings.Contains(s, ",") {
		p.Fail(key, "no time in UTC")
		return time.Time{}
	}
	return t
}

// Object is an object; false when it is missing or null.
func (p Parts) Object(key string) (Parts, bool) {
	raw := p.Raw(key)
	if raw == nil {
		return Parts{err: p.err}, false
	}
	return p.within(key, raw), true
}

// Objects is a list of objects.
func (p Parts) Objects(key string) []Parts {
	raw := p.Raw(key)
	if raw == nil {
		return nil
	}
	list, ok := elements(raw)
	if !ok {
		p.Fail(key, "no list")
		return nil
	}
	out := make([]Parts, len(list))
	for i, raw := range list {
		out[i] = p.within(key, raw)
	}
	return out
}

// within is an object inside of this one, which shares its error.
func (p Parts) within(key string, raw json.RawMessage) Parts {
	if raw[0] != '{' {
		p.Fail(key, ErrNotObject.Error())
		return Parts{err: p.err}
	}
	return Parts{unique(members(raw, 0)), p.err}
}
