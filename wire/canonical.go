package wire

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"time"
)

// Encode writes a record in one line, exactly as its owner would.
func Encode(record any) []byte { return appendRecord(nil, reflect.ValueOf(record)) }

// appendMoment writes a time as chrono does: with Z, and no, 3, 6 or 9 digits
// of a second's fraction.
func appendMoment(dst []byte, t time.Time) []byte {
	format := "2006-01-02T15:04:05.000000000Z"
	switch n := t.Nanosecond(); {
	case n == 0:
		format = "2006-01-02T15:04:05Z"
	case n%1e6 == 0:
		format = "2006-01-02T15:04:05.000Z"
	case n%1e3 == 0:
		format = "2006-01-02T15:04:05.000000Z"
	}
	return t.UTC().AppendFormat(dst, format)
}

// appendFloat writes a float of 32 bits as Rust's ryu does: in full from 1e-5
// to 1e13, always with a point there.
func appendFloat(dst []byte, f float32) []byte {
	s := strconv.AppendFloat(nil, float64(f), 'e', -1, 32)
	i := slices.Index(s, 'e')
	exp, _ := strconv.Atoi(string(s[i+1:]))
	if f != 0 && (exp < -6 || exp >= 13) {
		return strconv.AppendInt(append(append(dst, s[:i]...), 'e'), int64(exp), 10)
	}
	s = strconv.AppendFloat(nil, float64(f), 'f', -1, 32)
	if !slices.Contains(s, '.') {
		s = append(s, ".0"...)
	}
	return append(dst, s...)
}

func appendRecord(dst []byte, v reflect.Value) []byte {
	t := v.Type()
	switch {
	case t.Kind() == reflect.Pointer:
		if v.IsNil() {
			return append(dst, "null"...)
		}
		return appendRecord(dst, v.Elem())
	case reflect.PointerTo(t).Implements(reflect.TypeFor[own]()):
		o := reflect.New(t)
		o.Elem().Set(v)
		return o.Interface().(own).append(dst)
	case is[json.RawMessage](t):
		if v.Len() == 0 {
			return append(dst, "null"...)
		}
		return appendValue(dst, v.Bytes())
	case is[Members](t):
		w := objectWriter{b: dst}
		for _, f := range v.Interface().(Members) {
			w.key(f.Key)
			w.b = appendValue(w.b, f.Raw)
		}
		return w.end()
	case is[time.Time](t):
		return append(appendMoment(append(dst, '"'), v.Interface().(time.Time)), '"')
	case isRecord(t):
		w := objectWriter{b: dst}
		w.record(v)
		return w.end()
	}
	switch t.Kind() {
	case reflect.String:
		return AppendString(dst, v.String())
	case reflect.Bool:
		return strconv.AppendBool(dst, v.Bool())
	case reflect.Uint32, reflect.Uint64:
		return strconv.AppendUint(dst, v.Uint(), 10)
	case reflect.Int32, reflect.Int64:
		return strconv.AppendInt(dst, v.Int(), 10)
	case reflect.Float32:
		return appendFloat(dst, float32(v.Float()))
	case reflect.Slice:
		dst = append(dst, '[')
		for i := range v.Len() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendRecord(dst, v.Index(i))
		}
		return append(dst, ']')
	}
	panic("wire: no record has a member of type " + t.String())
}

func (w *objectWriter) record(v reflect.Value) {
	kind := ""
	for _, m := range planOf(v.Type()) {
		f := v.Field(m.index)
		switch {
		case len(m.on) > 0 && !slices.Contains(m.on, kind):
			continue
		case m.flatten:
			w.record(f)
			continue
		case m.omit && (f.Kind() == reflect.Pointer && f.IsNil() || f.Kind() == reflect.Slice && f.Len() == 0):
			continue
		}
		if len(m.kinds) > 0 {
			kind = f.String()
		}
		w.key(m.name)
		w.b = appendRecord(w.b, f)
	}
}

// appendValue writes any valid JSON value anew: without spaces, its strings as
// AppendString has them, its numbers and the order of its keys as they were.
func appendValue(dst []byte, raw []byte) []byte {
	for at := 0; at < len(raw); {
		switch c := raw[at]; c {
		case ' ', '\t', '\n', '\r':
			at++
		case '"':
			end := valueEnd(raw, at)
			s, err := exactString(raw[at:end])
			if err != nil {
				dst = append(dst, raw[at:end]...) // what no string of ours can hold stays as it is
			} else {
				dst = AppendString(dst, s)
			}
			at = end
		default:
			dst = append(dst, c)
			at++
		}
	}
	return dst
}
