package wire

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A field is one member of an object.
type field struct {
	name string
	use  use
	is   shape
}

// use says who has a field.
type use int

const (
	must  use = iota // its owner always writes it
	may              // its owner can do without it: missing and null are the same
	lacks            // its owner can do without it, and null is wrong
	ours             // its owner does not know it, atm understands it
)

// A shape is what a value has to be.
type shape struct {
	words  string        // as errors say it: must be a string
	kind   jsontext.Kind // 0: any value
	fits   func(json.RawMessage) bool
	whole  bool    // a string that has no half of a surrogate pair
	fields []field // of an object
	each   *shape  // of an array
}

var (
	anything = shape{}
	str      = shape{words: "a string", kind: '"'}
	text     = shape{words: "a string", kind: '"', whole: true}
	array    = shape{words: "an array", kind: '['}
	uuids    = shape{words: "an array", kind: '[', each: &uuidText}
	uuidText = shape{words: "a UUID", fits: func(raw json.RawMessage) bool { _, err := ParseUUID(unquote(raw)); return err == nil }}
	moment   = shape{words: "a time", fits: func(raw json.RawMessage) bool { _, err := parseTime(unquote(raw)); return err == nil }}
	number   = shape{words: "a whole number", fits: func(raw json.RawMessage) bool {
		_, err := strconv.ParseInt(string(raw), 10, 64)
		return err == nil
	}}
	count = shape{words: "a whole number from 0 to 18446744073709551615", fits: func(raw json.RawMessage) bool {
		_, err := strconv.ParseUint(string(raw), 10, 64)
		return err == nil
	}}

	turnEnd    = oneOf("completed", "interrupted", "failed")
	activities = oneOf("unknown", "starting", "idle", "thinking", "responding", "tool_running", "awaiting_input", "confirming", "exited", "error")
	slotStates = oneOf("starting", "idle", "thinking", "responding", "tool_running", "confirming", "error", "exited")

	toolCall = object(field{"id", must, text}, field{"name", must, text}, field{"arguments", must, anything},
		field{"result", may, anything}, field{"timestamp", must, text})
	toolRequest = object(field{"request_id", must, text}, field{"tool_call", must, toolCall})
)

func oneOf(words ...string) shape {
	last := len(words) - 1
	return shape{words: strings.Join(words[:last], ", ") + " or " + words[last], fits: func(raw json.RawMessage) bool {
		return slices.Contains(words, unquote(raw))
	}}
}

func object(fields ...field) shape { return shape{words: "an object", kind: '{', fields: fields} }

// check looks whether an object that begins at an offset of the text has the
// fields that it must have, each once and of its shape.
func (o Object) check(at int, fields ...field) error {
	for _, f := range fields {
		var found *Member
		for i := range o {
			if o[i].Name != f.name {
				continue
			}
			if found != nil {
				return faultAt(at+o[i].at, "%s stands twice", f.name)
			}
			found = &o[i]
		}
		switch {
		case found == nil && f.use == must:
			return faultAt(at, "%s is missing", f.name)
		case found == nil || (f.use == may || f.use == ours) && string(found.Value) == "null":
			continue
		}
		if err := f.is.check(at+found.at, found.Value); err != nil {
			err.msg = f.name + ": " + err.msg
			return err
		}
	}
	return nil
}

func (s shape) check(at int, value json.RawMessage) *fault {
	switch {
	case s.kind != 0 && jsontext.Value(value).Kind() != s.kind, s.fits != nil && !s.fits(value):
		return faultAt(at, "must be %s", s.words)
	case s.whole:
		if _, err := jsontext.AppendUnquote(nil, value); err != nil {
			return faultAt(at, "has half of a surrogate pair")
		}
	case s.fields != nil:
		if err := members(value).check(at, s.fields...); err != nil {
			return err.(*fault)
		}
	case s.each != nil:
		for _, e := range elements(value) {
			if err := s.each.check(at+e.at, e.Value); err != nil {
				return err
			}
		}
	}
	return nil
}

// A record is a type of another vocabulary, which is read and written as its
// owner does it. It has the fields of all kinds of its form.
type record interface{ form() *group }

// plainly is the form of what has no kinds.
func plainly(fields ...field) *group { return &group{kinds: []kind{{fields: fields}}} }

var (
	recordReader = jsonv2.UnmarshalFunc(readRecord)
	recordWriter = jsonv2.MarshalFunc(func(r record) ([]byte, error) {
		raw, err := jsonv2.Marshal(r, lenient, jsonv2.WithMarshalers(chronoWriter))
		if g := r.form(); err == nil && g.tag != "" {
			o := members(raw)
			return o.only(g.fields(o.Text(g.tag)), false).MarshalJSON()
		}
		return raw, err
	})
)

// readRecord reads a record. Null leaves in it what was there before.
func readRecord(raw []byte, r record) error {
	g, o := r.form(), members(raw)
	if o == nil {
		return ErrNotObject
	}
	fields := g.kinds[0].fields
	if g.tag != "" {
		if err := o.check(0, field{g.tag, must, oneOf(g.names()...)}); err != nil {
			return err
		}
		fields = g.fields(o.Text(g.tag))
	}
	if err := o.check(0, fields...); err != nil {
		return err
	}
	known, err := o.only(fields, true).MarshalJSON()
	if err != nil {
		return err
	}
	err = jsonv2.Unmarshal(known, r, lenient, jsonv2.WithUnmarshalers(readers))
	var s *jsonv2.SemanticError
	if errors.As(err, &s) { // a number that is too large, since all else was checked
		name := s.JSONPointer.LastToken()
		return faultAt(o.place(name), "%s: must be %s", name, typeWords(s.GoType))
	}
	return err
}

// fields are those of a kind, its tag first.
func (g *group) fields(name string) []field {
	fields := []field{{g.tag, must, text}}
	if k := g.find(name); k != nil {
		fields = append(fields, k.fields...)
	}
	return fields
}

// only are the members that its owner gives an object of these fields; what may
// be null is left out where it is, if so wanted.
func (o Object) only(fields []field, noNull bool) (kept Object) {
	for _, m := range o {
		i := index(fields, m.Name)
		if i >= 0 && fields[i].use != ours && !(noNull && fields[i].use == may && string(m.Value) == "null") {
			kept = append(kept, m)
		}
	}
	return kept
}

func index(fields []field, name string) int {
	return slices.IndexFunc(fields, func(f field) bool { return f.name == name })
}
