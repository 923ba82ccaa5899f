package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// DecodeError says what is wrong with a text and where. Line and Column count
// from 1, the column in bytes.
type DecodeError struct {
	Line, Column int
	Msg          string
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Msg)
}

// ErrNotObject is returned for JSON that is no object.
var ErrNotObject = errors.New("not a JSON object")

// A fault says what is wrong with a value, and how many bytes into the text.
type fault struct {
	at  int
	msg string
}

func (f *fault) Error() string { return f.msg }

func faultAt(at int, format string, args ...any) *fault {
	return &fault{at, fmt.Sprintf(format, args...)}
}

// lenient is how all JSON is read and written. Half of a surrogate pair, which
// JavaScript writes where it cuts a text, is no error: it becomes U+FFFD in a string
// that we take, and stays in JSON that we keep. Bytes that are not UTF-8 were refused
// before. Of two members with one name the last counts.
var lenient = jsonv2.JoinOptions(
	jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(true))

// readers read the types that are strings in JSON.
var readers = jsonv2.JoinUnmarshalers(
	reader(ParseID), reader(ParseName), reader(ParseUUID), reader(parseTime), addressReader(""), listReader(""))

func addressReader(team Name) *jsonv2.Unmarshalers {
	return reader(func(s string) (Address, error) { return ParseAddress(s, team) })
}

func reader[T any](parse func(string) (T, error)) *jsonv2.Unmarshalers {
	return jsonv2.UnmarshalFunc(func(raw []byte, to *T) error { return readText(raw, to, parse) })
}

// readText parses a string; null gives the zero value.
func readText[T any](raw []byte, to *T, parse func(string) (T, error)) (err error) {
	if *to = *new(T); string(raw) == "null" {
		return nil
	}
	if raw[0] != '"' {
		return errors.New("must be a string")
	}
	*to, err = parse(unquote(raw))
	return err
}

func parseTime(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return t, errors.New("must be a time such as 2026-05-01T12:00:00Z")
	}
	// With its offset the time may lie outside of the years that can be written.
	if t = t.UTC(); t.Year() < 0 || t.Year() > 9999 {
		return t, errors.New("must be within the years 0 to 9999")
	}
	return t, nil
}

// messageWriters write a message and an event, chronoWriter the times of the other
// vocabularies.
var (
	messageWriters = jsonv2.WithMarshalers(jsonv2.JoinMarshalers(
		writer(Address.String), writer(func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) })))
	chronoWriter = writer(chronoTime)
)

// chronoTime is a time as Rust's chrono writes it: with 0, 3, 6 or 9 digits after the
// point.
func chronoTime(t time.Time) string {
	s := t.UTC().Format("2006-01-02T15:04:05.000000000")
	for range 3 {
		s = strings.TrimSuffix(s, "000")
	}
	return strings.TrimSuffix(s, ".") + "Z"
}

func writer[T any](text func(T) string) *jsonv2.Marshalers {
	return jsonv2.MarshalToFunc(func(enc *jsontext.Encoder, v T) error { return enc.WriteToken(jsontext.String(text(v))) })
}

// Marshal writes a value in one line of JSON, with nothing escaped that JSON does not
// ask for. A value of another vocabulary is written exactly as its owner would, and
// refused where its owner would. The same value always gives the same text.
func Marshal(v any) ([]byte, error) {
	out, err := jsonv2.Marshal(v, lenient, jsonv2.Deterministic(true), jsonv2.WithMarshalers(jsonv2.JoinMarshalers(recordWriter, chronoWriter)))
	var f *fault
	if errors.As(err, &f) {
		return nil, f
	}
	return out, err
}

// Unmarshal reads one JSON value. Names must have exactly this case. The error is a
// *DecodeError, or ErrNotObject for an array or scalar where an object belongs.
func Unmarshal(data []byte, v any) error { return unmarshal(data, v, recordReader) }

// unmarshal is Unmarshal with readers that are tried before the usual ones.
func unmarshal(data []byte, v any, first ...*jsonv2.Unmarshalers) error {
	if err := syntax(data); err != nil {
		return err
	}
	all := jsonv2.WithUnmarshalers(jsonv2.JoinUnmarshalers(append(first, readers)...))
	return placed(data, jsonv2.Unmarshal(data, v, lenient, all))
}

// Valid reports whether data is one JSON value, and UTF-8.
func Valid(data []byte) bool { return syntax(data) == nil }

// syntax is the error of a text that is not JSON in UTF-8.
func syntax(data []byte) error {
	for at := 0; at < len(data); {
		r, n := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && n == 1 {
			return decodeError(data, at, "not UTF-8")
		}
		at += n
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(data), lenient)
	_, err := dec.ReadValue()
	var s *jsontext.SyntacticError
	switch {
	case err == nil:
		rest := bytes.TrimLeft(data[dec.InputOffset():], " \t\r\n")
		if len(rest) == 0 {
			return nil
		}
		return decodeError(data, len(data)-len(rest), "something follows the object")
	case errors.Is(err, io.ErrUnexpectedEOF) || !errors.As(err, &s):
		return decodeError(data, len(data), "the text ends in the middle")
	}
	return decodeError(data, int(s.ByteOffset), s.Err.Error())
}

func decodeError(data []byte, at int, msg string) *DecodeError {
	before := data[:min(max(at, 0), len(data))]
	return &DecodeError{Line: 1 + bytes.Count(before, []byte{'\n'}), Column: len(before) - bytes.LastIndexByte(before, '\n'), Msg: msg}
}

// placed says in which line, column and member an error of reading data is.
func placed(data []byte, err error) error {
	if err == nil {
		return nil
	}
	at, path := 0, ""
	for {
		switch e := err.(type) {
		case *fault:
			return decodeError(data, at+e.at, path+e.msg)
		case *jsonv2.SemanticError:
			at += int(e.ByteOffset)
			for name := range e.JSONPointer.Tokens() {
				if strings.Trim(name, "0123456789") != "" { // the column says where in a list
					path += name + ": "
				}
			}
			if err = e.Err; err == nil || errors.Is(err, jsonv2.ErrUnknownName) || isNumber(e.GoType) {
				err = errors.New("must be " + typeWords(e.GoType))
				if e.JSONKind != '{' && e.GoType.Kind() == reflect.Struct {
					err = ErrNotObject
				}
			}
		default:
			if err == ErrNotObject && path == "" {
				return err
			}
			if err == ErrNotObject {
				err = errors.New("must be an object")
			}
			return decodeError(data, at, path+err.Error())
		}
	}
}

func isNumber(t reflect.Type) bool {
	return t != nil && t.Kind() >= reflect.Int && t.Kind() <= reflect.Float64
}

// typeWords is what JSON calls a type of Go.
func typeWords(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "an array"
	case reflect.Struct, reflect.Map, reflect.Pointer:
		return "an object"
	}
	return "a whole number"
}

// unquote is the text of a JSON string, "" for anything else.
func unquote(raw []byte) string {
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	text, _ := jsontext.AppendUnquote(nil, raw) // half of a surrogate pair is U+FFFD
	return string(text)
}

// Quote is the JSON string of a text. Bytes that are not UTF-8 become U+FFFD.
func Quote(s string) json.RawMessage {
	raw, _ := jsontext.AppendQuote(nil, s)
	return raw
}
