package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"
)

// Field is one member of a JSON object, its value kept as it was written.
type Field struct {
	Key string
	Raw json.RawMessage

	at int // where the value begins in the text
}

// DecodeError says what is wrong with a text and where. Line and Column count
// from 1, the column in bytes.
type DecodeError struct {
	Line, Column int
	Msg          string
	Syntax       bool // not JSON at all, rather than JSON that is no message
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Msg)
}

func decodeError(data []byte, at int, syntax bool, format string, args ...any) *DecodeError {
	if at > len(data) {
		at = len(data)
	}
	if at < 0 {
		at = 0
	}
	before := data[:at]
	return &DecodeError{
		Line:   1 + bytes.Count(before, []byte{'\n'}),
		Column: at - bytes.LastIndexByte(before, '\n'),
		Msg:    fmt.Sprintf(format, args...),
		Syntax: syntax,
	}
}

// ErrNotObject is returned for JSON that is no object.
var ErrNotObject = errors.New("not a JSON object")

// Object takes a JSON object apart into its members, in order. A key that
// stands twice counts as it stands last. The error is a *DecodeError, or
// ErrNotObject for an array or a scalar.
func Object(data []byte) ([]Field, error) {
	// The caller's bytes may change; all values keep one copy of them.
	return taken(bytes.Clone(data), nil)
}

// taken is Object with values that are parts of data, in room if that is enough.
func taken(data []byte, room []Field) ([]Field, error) {
	if i := firstInvalid(data); i >= 0 {
		return nil, decodeError(data, i, true, "not UTF-8")
	}
	if validJSON(data) {
		at := space(data, 0)
		if data[at] != '{' {
			return nil, ErrNotObject
		}
		return unique(appendMembers(room, data, at)), nil
	}
	dec := json.NewDecoder(bytes.NewReader(data)) // for the place of the error
	tok, err := dec.Token()
	if err != nil {
		return nil, syntaxError(data, err, int(dec.InputOffset()))
	}
	if tok != json.Delim('{') {
		if !json.Valid(data) {
			var v json.RawMessage
			return nil, syntaxError(data, json.Unmarshal(data, &v), 0)
		}
		return nil, ErrNotObject
	}
	var fields []Field
	var seen keys
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, syntaxError(data, err, int(dec.InputOffset()))
		}
		key, ok := tok.(string)
		if !ok {
			return nil, decodeError(data, int(dec.InputOffset()), true, "a key must be a string")
		}
		begin := int(dec.InputOffset())
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, syntaxError(data, err, int(dec.InputOffset()))
		}
		for begin < len(data) && (data[begin] == ':' || data[begin] == ' ' || data[begin] == '\t' || data[begin] == '\n' || data[begin] == '\r') {
			begin++
		}
		f := Field{Key: key, Raw: raw, at: begin}
		if i := seen.index(fields, key); i >= 0 {
			fields[i] = f
		} else {
			fields = append(fields, f)
		}
	}
	if _, err := dec.Token(); err != nil {
		return nil, syntaxError(data, err, int(dec.InputOffset()))
	}
	if rest := bytes.TrimLeft(data[dec.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return nil, decodeError(data, len(data)-len(rest), true, "something follows the object")
	}
	return fields, nil
}

// members takes an object apart that is known to be valid JSON: data[at] is the
// brace. Each member is there, also where a key stands twice, and its value is
// a part of data. (json.Decoder takes three times as long and five times the
// allocations.)
func members(data []byte, at int) []Field { return appendMembers(make([]Field, 0, 12), data, at) }

func appendMembers(fields []Field, data []byte, at int) []Field {
	for at = space(data, at+1); data[at] != '}'; {
		end := valueEnd(data, at)
		key := keyOf(data[at:end])
		at = space(data, space(data, end)+1) // past the colon
		end = valueEnd(data, at)
		fields = append(fields, Field{Key: key, Raw: json.RawMessage(data[at:end:end]), at: at})
		if at = space(data, end); data[at] == ',' {
			at = space(data, at+1)
		}
	}
	return fields
}

// keyOf is a key as text. Those that all messages have take no memory.
func keyOf(raw []byte) string {
	switch string(raw) {
	case `"id"`:
		return "id"
	case `"type"`:
		return "type"
	case `"from"`:
		return "from"
	case `"to"`:
		return "to"
	case `"body"`:
		return "body"
	case `"sent_at"`:
		return "sent_at"
	case `"origin"`:
		return "origin"
	}
	key, _ := decodeString(raw)
	return key
}

// elements takes an array apart that is known to be valid JSON; false for
// anything else.
func elements(raw json.RawMessage) (list []json.RawMessage, ok bool) {
	if len(raw) == 0 || raw[0] != '[' {
		return nil, false
	}
	for at := space(raw, 1); raw[at] != ']'; {
		end := valueEnd(raw, at)
		list = append(list, raw[at:end:end])
		if at = space(raw, end); raw[at] == ',' {
			at = space(raw, at+1)
		}
	}
	return list, true
}

// unique leaves of several members with one key the last, in the first's place.
func unique(all []Field) []Field {
	fields := all[:0]
	var seen keys
	for _, f := range all {
		if i := seen.index(fields, f.Key); i >= 0 {
			fields[i] = f
		} else {
			fields = append(fields, f)
		}
	}
	return fields
}

// valueEnd is where the value ends that begins at an offset of valid JSON.
func valueEnd(data []byte, at int) int {
	depth := 0
	for ; ; at++ {
		switch data[at] {
		case '"':
			for at = plainEnd(data, at+1); data[at] != '"'; at = plainEnd(data, at+1) {
				at++ // what a backslash stands before
			}
			if depth == 0 {
				return at + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return at // of the object around a number or a word
			}
			if depth--; depth == 0 {
				return at + 1
			}
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return at
			}
		}
	}
}

func space(data []byte, at int) int {
	for data[at] == ' ' || data[at] == '\t' || data[at] == '\n' || data[at] == '\r' {
		at++
	}
	return at
}

// keys finds a key among fields that grow: by looking at each while they are
// few, as they nearly always are, else by a map. (Four MiB hold half a million.)
type keys map[string]int

func (k *keys) index(fields []Field, key string) int {
	if len(fields) < 32 {
		return slices.IndexFunc(fields, func(f Field) bool { return f.Key == key })
	}
	if *k == nil {
		*k = make(keys, 2*len(fields))
	}
	for i := len(*k); i < len(fields); i++ {
		(*k)[fields[i].Key] = i
	}
	if i, ok := (*k)[key]; ok {
		return i
	}
	return -1
}

func syntaxError(data []byte, err error, at int) *DecodeError {
	var syn *json.SyntaxError
	switch {
	case errors.As(err, &syn):
		// Offset counts the bytes read before the error, the offending one
		// included.
		off := int(syn.Offset) - 1
		if json.Valid(data) {
			off = at
		} else {
			var v json.RawMessage
			if e := json.Unmarshal(data, &v); errors.As(e, &syn) {
				off = int(syn.Offset) - 1
			}
		}
		return decodeError(data, off, true, "%s", syn.Error())
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return decodeError(data, len(data), true, "the text ends in the middle")
	case err == nil:
		return decodeError(data, at, true, "not JSON")
	}
	return decodeError(data, at, true, "%s", err.Error())
}

func firstInvalid(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// AppendString appends s as a JSON string, escaping what JSON demands and no
// more. Bytes that are not UTF-8 become U+FFFD.
func AppendString(dst []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(dst, s[start:i]...)
				dst = append(dst, "\ufffd"...)
				i++
				start = i
				continue
			}
			i += n
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// appendRaw appends a JSON value without its line breaks and indentation, so
// that one document stays one line.
func appendRaw(dst []byte, raw json.RawMessage) []byte {
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return append(dst, raw...)
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return append(dst, raw...)
	}
	return append(dst, b.Bytes()...)
}

// objectWriter writes the members of one object, with the commas.
type objectWriter struct {
	b     []byte
	begun bool
}

func (w *objectWriter) key(k string) {
	if w.begun {
		w.b = append(w.b, ',')
	} else {
		w.b = append(w.b, '{')
		w.begun = true
	}
	w.b = AppendString(w.b, k)
	w.b = append(w.b, ':')
}

func (w *objectWriter) str(k, v string) {
	if v != "" {
		w.key(k)
		w.b = AppendString(w.b, v)
	}
}

func (w *objectWriter) raw(k string, v json.RawMessage) {
	if len(v) > 0 {
		w.key(k)
		w.b = appendRaw(w.b, v)
	}
}

func (w *objectWriter) fields(fs []Field) {
	for _, f := range fs {
		w.raw(f.Key, f.Raw)
	}
}

func (w *objectWriter) end() []byte {
	if !w.begun {
		w.b = append(w.b, '{')
	}
	return append(w.b, '}')
}
