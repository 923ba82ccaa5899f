package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// The types of the other vocabularies are records: structs that are read and
// written as their owner's serde does it. A member of the struct says how:
//
//	Name string  `wire:"name"`           must be there, null is an error
//	Name string  `wire:"name,default=x"` may be missing
//	Name *string `wire:"name"`           Option: null and missing are nil, nil is written as null
//	Name *string `wire:"name,omit"`      Option that is left out when nil; lists and maps when empty
//	Name json.RawMessage                 any value, also null; ",omit" and ",option" as for pointers
//	Kind string  `wire:"t" kinds:"a b"`  the tag of an enum with the variants a and b
//	Name string  `wire:"name" on:"a"`    a member of variant a alone
//	Sub  T       `wire:",flatten"`       T's members stand beside these
//
// A word that is one of a few is a type with variants. Members are written in
// the order in which they are declared. Unknown keys are passed over, a known
// key that stands twice is an error.

// Parse reads a record. The error is a *DecodeError, or ErrNotObject for an
// array or scalar where an object belongs.
func Parse[T any](data []byte) (T, error) {
	var out T
	v := reflect.ValueOf(&out).Elem()
	if i := firstInvalid(data); i >= 0 {
		return out, decodeError(data, i, true, "not UTF-8")
	}
	if !json.Valid(data) {
		return out, notJSON(data)
	}
	at := space(data, 0)
	d := decoder{data: data}
	if isRecord(v.Type()) && data[at] != '{' {
		return out, ErrNotObject
	}
	if err := d.value(Field{Raw: bytes.TrimRight(data[at:], " \t\r\n"), at: at}, v, member{}); err != nil {
		return *new(T), err
	}
	return out, nil
}

func notJSON(data []byte) error {
	if _, err := Object(data); err != nil && err != ErrNotObject {
		return err
	}
	var v any
	return syntaxError(data, json.Unmarshal(data, &v), len(data))
}

// word is a string that can be only one of a few.
type word interface{ variants() []string }

// own is a record that reads and writes itself.
type own interface {
	read(r *reading) error
	append(dst []byte) []byte
}

// is reports whether a type is T. (Variables of types would be filled at every
// start.)
func is[T any](t reflect.Type) bool { return t == reflect.TypeFor[T]() }

// Members is a map of any values, in the order of the wire.
type Members []Field

// member is what a struct's member says of itself.
type member struct {
	name     string
	index    int
	omit     bool
	option   bool
	optional bool // may be missing
	preset   string
	kinds    []string // of a tag
	on       []string
	flatten  bool
}

var plans sync.Map // reflect.Type to []member

func planOf(t reflect.Type) []member {
	if p, ok := plans.Load(t); ok {
		return p.([]member)
	}
	var plan []member
	for i := range t.NumField() {
		f := t.Field(i)
		m := member{index: i, kinds: strings.Fields(f.Tag.Get("kinds")), on: strings.Fields(f.Tag.Get("on"))}
		name, opts, _ := strings.Cut(f.Tag.Get("wire"), ",")
		m.name = name
		for o := range strings.SplitSeq(opts, ",") {
			key, preset, _ := strings.Cut(o, "=")
			switch key {
			case "omit":
				m.omit, m.optional = true, true
			case "option":
				m.option, m.optional = true, true
			case "default":
				m.optional, m.preset = true, preset
			case "flatten":
				m.flatten = true
			}
		}
		if f.Type.Kind() == reflect.Pointer {
			m.option, m.optional = true, true
		}
		plan = append(plan, m)
	}
	plans.Store(t, plan)
	return plan
}

func isRecord(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !is[time.Time](t)
}

// reading is an object whose members are asked for by name.
type reading struct {
	data   []byte
	fields []Field // all, also what stands twice
	at     int
}

// get is a member, which must not stand twice.
func (r *reading) get(key string) (f Field, ok bool, err error) {
	for i := range r.fields {
		if r.fields[i].Key != key {
			continue
		}
		if ok {
			return f, true, r.fail(r.fields[i].at, "%s stands twice", key)
		}
		f, ok = r.fields[i], true
	}
	return f, ok, nil
}

func (r *reading) fail(at int, format string, args ...any) error {
	return decodeError(r.data, at, false, format, args...)
}

// must is a member that has to be there.
func (r *reading) must(key string) (Field, error) {
	f, ok, err := r.get(key)
	if err == nil && !ok {
		err = r.fail(r.at, "%s is missing", key)
	}
	return f, err
}

// text is a string that has to be there, unless it is optional: then missing
// and null leave what was there before.
func (r *reading) text(key string, into *string, optional bool) error {
	f, ok, err := r.get(key)
	if err != nil {
		return err
	}
	if !ok || optional && string(f.Raw) == "null" {
		if optional {
			return nil
		}
		return r.fail(r.at, "%s is missing", key)
	}
	if *into, err = exactString(f.Raw); err != nil {
		return r.fail(f.at, "%s: %s", key, err)
	}
	return nil
}

// uint is a whole number that has to be there.
func (r *reading) uint(key string, into *uint64) error {
	f, err := r.must(key)
	if err != nil {
		return err
	}
	if *into, err = strconv.ParseUint(string(f.Raw), 10, 64); err != nil {
		return r.fail(f.at, "%s: must be a whole number from 0 to 18446744073709551615", key)
	}
	return nil
}

// exactString is decodeString for who may not lose anything: half of a
// surrogate pair is no text.
func exactString(raw json.RawMessage) (string, error) {
	s, err := decodeString(raw)
	if err == nil && strings.ContainsRune(s, utf8.RuneError) && lone(raw) {
		return "", fmt.Errorf("has half of a surrogate pair")
	}
	return s, err
}

// lone reports whether a JSON string has an escape of half a surrogate pair.
func lone(raw []byte) bool {
	high := false
	for i := 0; i < len(raw); i++ {
		code := -1
		step := 0
		if raw[i] == '\\' {
			step = 1
			if raw[i+1] == 'u' {
				n, _ := strconv.ParseUint(string(raw[i+2:i+6]), 16, 32)
				code, step = int(n), 5
			}
		}
		i += step
		low := code >= 0xdc00 && code < 0xe000
		if low != high {
			return true
		}
		high = code >= 0xd800 && code < 0xdc00
	}
	return false
}

// newOf is a place for a record.
func newOf[T any]() reflect.Value { return reflect.New(reflect.TypeFor[T]()).Elem() }

type decoder struct{ data []byte }

// record fills a struct from an object.
func (d *decoder) record(r *reading, v reflect.Value) error {
	if o, ok := v.Addr().Interface().(own); ok {
		return o.read(r)
	}
	kind := ""
	for _, m := range planOf(v.Type()) {
		if len(m.on) > 0 && !slices.Contains(m.on, kind) {
			continue
		}
		to := v.Field(m.index)
		if m.flatten {
			if err := d.record(r, to); err != nil {
				return err
			}
			continue
		}
		f, ok, err := r.get(m.name)
		switch {
		case err != nil:
			return err
		case !ok && !m.optional:
			return r.fail(r.at, "%s is missing", m.name)
		case !ok:
			preset(to, m.preset)
			continue
		}
		if err := d.value(f, to, m); err != nil {
			return inMember(m.name, err)
		}
		if len(m.kinds) > 0 {
			if kind = to.String(); !slices.Contains(m.kinds, kind) {
				return r.fail(f.at, "%s: %s", m.name, oneOf(m.kinds))
			}
		}
	}
	return nil
}

// inMember says of an error in which member it is.
func inMember(name string, err error) error {
	if e, ok := err.(*DecodeError); ok {
		e.Msg = name + ": " + e.Msg
	}
	return err
}

func oneOf(words []string) string {
	if len(words) > 1 {
		return "must be " + strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
	}
	return "must be " + words[0]
}

// preset is what a member is that was missing.
func preset(v reflect.Value, s string) {
	switch {
	case s == "":
	case v.Kind() == reflect.String:
		v.SetString(s)
	case v.Kind() == reflect.Bool:
		v.SetBool(s == "true")
	}
}

// value reads one value into a place of the type that it must have.
func (d *decoder) value(f Field, v reflect.Value, m member) error {
	null := string(f.Raw) == "null"
	fail := func(format string, args ...any) error { return decodeError(d.data, f.at, false, format, args...) }
	t := v.Type()
	switch {
	case null && m.option || null && m.omit && is[json.RawMessage](t):
		return nil
	case t.Kind() == reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		return d.value(f, v.Elem(), member{})
	case is[json.RawMessage](t):
		v.SetBytes(appendValue(nil, f.Raw))
		return nil
	case is[Members](t):
		if f.Raw[0] != '{' {
			return fail("must be an object")
		}
		fields := unique(members(d.data, f.at))
		for i := range fields {
			fields[i] = Field{Key: fields[i].Key, Raw: appendValue(nil, fields[i].Raw)}
		}
		v.Set(reflect.ValueOf(Members(fields)))
		return nil
	case is[time.Time](t):
		at, err := moment(f.Raw)
		if err != nil {
			return fail("%s", err)
		}
		v.Set(reflect.ValueOf(at))
		return nil
	case is[UUID](t):
		s, err := exactString(f.Raw)
		if err == nil {
			var id UUID
			id, err = ParseUUID(s)
			v.SetString(string(id))
		}
		if err != nil {
			return fail("%s", err)
		}
		return nil
	case isRecord(t):
		if f.Raw[0] != '{' {
			return fail("must be an object")
		}
		return d.record(&reading{data: d.data, fields: members(d.data, f.at), at: f.at}, v)
	}
	switch t.Kind() {
	case reflect.String:
		s, err := exactString(f.Raw)
		if err != nil {
			return fail("%s", err)
		}
		if w, ok := v.Interface().(word); ok && !slices.Contains(w.variants(), s) {
			return fail("%s", oneOf(w.variants()))
		}
		v.SetString(s)
	case reflect.Bool:
		if s := string(f.Raw); s != "true" && s != "false" {
			return fail("must be true or false")
		}
		v.SetBool(f.Raw[0] == 't')
	case reflect.Uint32, reflect.Uint64:
		n, err := strconv.ParseUint(string(f.Raw), 10, t.Bits())
		if err != nil {
			return fail("must be a whole number from 0 to %d", uint64(1)<<(t.Bits()-1)*2-1)
		}
		v.SetUint(n)
	case reflect.Int32, reflect.Int64:
		n, err := strconv.ParseInt(string(f.Raw), 10, t.Bits())
		if err != nil || string(f.Raw) == "-0" {
			return fail("must be a whole number of %d bits", t.Bits())
		}
		v.SetInt(n)
	case reflect.Float32:
		n, err := strconv.ParseFloat(string(f.Raw), 32)
		if err != nil {
			return fail("must be a number")
		}
		v.SetFloat(n)
	case reflect.Slice:
		if f.Raw[0] != '[' {
			return fail("must be an array")
		}
		list := reflect.MakeSlice(t, 0, 4)
		for at := space(d.data, f.at+1); d.data[at] != ']'; {
			end := valueEnd(d.data, at)
			item := reflect.New(t.Elem()).Elem()
			if err := d.value(Field{Raw: d.data[at:end], at: at}, item, member{}); err != nil {
				return err
			}
			list = reflect.Append(list, item)
			if at = space(d.data, end); d.data[at] == ',' {
				at = space(d.data, at+1)
			}
		}
		v.Set(list)
	default:
		panic("wire: no record has a member of type " + t.String())
	}
	return nil
}

// moment reads a time as chrono does, which takes lower-case letters and a
// space for the T as well.
func moment(raw json.RawMessage) (time.Time, error) {
	s, err := exactString(raw)
	if err != nil {
		return time.Time{}, err
	}
	if len(s) > 10 && (s[10] == ' ' || s[10] == 't') {
		s = s[:10] + "T" + s[11:]
	}
	if rest, ok := strings.CutSuffix(s, "z"); ok {
		s = rest + "Z"
	}
	return decodeTime(AppendString(nil, s))
}
