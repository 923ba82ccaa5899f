package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// DecodeError says what is wrong with a text and where. Line and Column count from 1, the column in bytes.
type DecodeError struct {
	Line, Column int
	Msg          string

	at int // bytes into the text
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Msg)
}

func errorAt(at int, msg string) *DecodeError { return &DecodeError{at: at, Msg: msg} }

// in is the error with its line and column in a text; nil for none.
func (e *DecodeError) in(data []byte) error {
	if e == nil {
		return nil
	}
	before := data[:min(e.at, len(data))]
	e.Line, e.Column = 1+bytes.Count(before, []byte{'\n'}), len(before)-bytes.LastIndexByte(before, '\n')
	return e
}

// ErrNotObject is returned for JSON that is no object.
var ErrNotObject = errors.New("not a JSON object")

// lenient is how all JSON is read and written. Half of a surrogate pair, which JavaScript writes where it
// cuts a text, is no error: it becomes U+FFFD in a string that we take, and stays in JSON that we keep.
// Bytes that are not UTF-8 are refused before. Of two members with one name the last counts.
var lenient = jsonv2.JoinOptions(
	jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(true))

// reading and writing know the types that are strings in JSON.
var (
	reading = jsonv2.JoinOptions(lenient, jsonv2.WithUnmarshalers(jsonv2.JoinUnmarshalers(
		reader(ParseName), reader(ParseUUID), reader(parseTime), reader(splitAddress))))
	writing = jsonv2.JoinOptions(lenient, jsonv2.Deterministic(true), jsonv2.WithMarshalers(jsonv2.JoinMarshalers(
		writer(Address.String), writer(chronoTime))))
)

func reader[T any](parse func(string) (T, error)) *jsonv2.Unmarshalers {
	return jsonv2.UnmarshalFunc(func(raw []byte, to *T) (err error) {
		*to = *new(T)
		if string(raw) != "null" {
			*to, err = parse(unquote(raw))
		}
		return err
	})
}

func writer[T any](text func(T) string) *jsonv2.Marshalers {
	return jsonv2.MarshalToFunc(func(enc *jsontext.Encoder, v T) error { return enc.WriteToken(jsontext.String(text(v))) })
}

func parseTime(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, strings.ToUpper(s)) // "t" and "z" are right as well
	if err != nil {
		return t, errors.New("must be a time such as 2026-05-01T12:00:00Z")
	}
	// With its offset the time may lie outside of the years that can be written.
	if t = t.UTC(); t.Year() < 0 || t.Year() > 9999 {
		return t, errors.New("must be within the years 0 to 9999")
	}
	return t, nil
}

// chronoTime is a time as Rust's chrono writes it, and we do: with 0, 3, 6 or 9 digits after the point.
func chronoTime(t time.Time) string {
	s := t.UTC().Format("2006-01-02T15:04:05.000000000")
	for range 3 {
		s = strings.TrimSuffix(s, "000")
	}
	return strings.TrimSuffix(s, ".") + "Z"
}

// A record is a Go type of a vocabulary. It has the members of all its kinds; those of the one that it is
// are read and written.
type record interface{ typeName() string }

// Marshal writes a value in one line of JSON, with nothing escaped that JSON does not ask for. A record is written
// exactly as its owner would, and refused where its owner would. The same value always gives the same text.
func Marshal(v any) ([]byte, error) {
	out, err := jsonv2.Marshal(v, writing)
	r, isRecord := v.(record)
	if err != nil || !isRecord {
		return out, err
	}
	known, wrong := schemas()[r.typeName()].canonical(0, out)
	if wrong != nil {
		return nil, errors.New(wrong.Msg)
	}
	return known, nil
}

// Unmarshal reads one JSON value. Names must have exactly this case. What is wrong with the text or with
// a record is a *DecodeError, or ErrNotObject.
func Unmarshal(data []byte, v any) (err error) {
	if r, isRecord := v.(record); isRecord {
		data, err = Canonical(r.typeName(), data)
	} else {
		err = syntax(data)
	}
	if err != nil {
		return err
	}
	return jsonv2.Unmarshal(data, v, reading)
}

// syntax is the error, a *DecodeError, of a text that is not JSON in UTF-8.
func syntax(data []byte) error {
	var value jsontext.Value
	err := jsonv2.Unmarshal(data, &value, lenient, jsontext.AllowInvalidUTF8(utf8.Valid(data)))
	var wrong *jsontext.SyntacticError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong) && wrong.Err != io.ErrUnexpectedEOF:
		return errorAt(int(wrong.ByteOffset), wrong.Err.Error()).in(data)
	}
	return errorAt(len(data), "the text ends in the middle").in(data)
}

// unquote is the text of a JSON string, "" for anything else.
func unquote(raw []byte) string {
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	text, _ := jsontext.AppendUnquote(nil, raw) // half of a surrogate pair is U+FFFD
	return string(text)
}

// Clip cuts a text to at most so many bytes, at a character's end. What is not UTF-8 becomes U+FFFD.
func Clip(s string, most int) string {
	if s = strings.ToValidUTF8(s, "\uFFFD"); len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return s
}

// Quote is the JSON string of a text. Bytes that are not UTF-8 become U+FFFD.
func Quote(s string) json.RawMessage {
	raw, _ := jsontext.AppendQuote(nil, s)
	return raw
}

func compact(raw []byte) json.RawMessage {
	v := jsontext.Value(bytes.Clone(raw))
	if v.Compact(lenient) != nil {
		return nil
	}
	return json.RawMessage(v)
}
