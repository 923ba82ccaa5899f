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

	offset int // in bytes
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Msg)
}

func errorAt(offset int, msg string) *DecodeError { return &DecodeError{offset: offset, Msg: msg} }

// locate fills in line and column from the text that was decoded. A nil *DecodeError becomes a nil error.
func (e *DecodeError) locate(data []byte) error {
	if e == nil {
		return nil
	}
	before := data[:min(e.offset, len(data))]
	e.Line, e.Column = 1+bytes.Count(before, []byte{'\n'}), len(before)-bytes.LastIndexByte(before, '\n')
	return e
}

// ErrNotObject is returned for JSON that is not an object.
var ErrNotObject = errors.New("not a JSON object")

// lenient are the options for all JSON. JavaScript writes half of a surrogate pair where it cuts a text: that becomes
// U+FFFD in a string that we decode, and stays in JSON that we keep. (Bytes that are not UTF-8 are refused elsewhere.)
// Of two members with one name the last counts.
var lenient = jsonv2.JoinOptions(
	jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(true))

// reading and writing add the Go types that are strings in JSON.
var (
	reading = jsonv2.JoinOptions(lenient, jsonv2.WithUnmarshalers(jsonv2.JoinUnmarshalers(
		stringReader(ParseName), stringReader(ParseUUID), stringReader(parseTime), stringReader(splitAddress))))
	writing = jsonv2.JoinOptions(lenient, jsonv2.Deterministic(true), jsonv2.WithMarshalers(jsonv2.JoinMarshalers(
		stringWriter(Address.String), stringWriter(formatTime))))
)

func stringReader[T any](parse func(string) (T, error)) *jsonv2.Unmarshalers {
	return jsonv2.UnmarshalFunc(func(raw []byte, to *T) (err error) {
		*to = *new(T)
		if string(raw) != "null" {
			*to, err = parse(unquote(raw))
		}
		return err
	})
}

func stringWriter[T any](format func(T) string) *jsonv2.Marshalers {
	return jsonv2.MarshalToFunc(func(enc *jsontext.Encoder, v T) error { return enc.WriteToken(jsontext.String(format(v))) })
}

func parseTime(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, strings.ToUpper(s)) // RFC 3339 allows "t" and "z"
	if err != nil {
		return t, errors.New("must be a time such as 2026-05-01T12:00:00Z")
	}
	// In UTC the year may be one that RFC 3339 cannot write.
	if t = t.UTC(); t.Year() < 0 || t.Year() > 9999 {
		return t, errors.New("must be within the years 0 to 9999")
	}
	return t, nil
}

// formatTime writes a time as Rust's chrono does: with 0, 3, 6 or 9 digits after the point.
func formatTime(t time.Time) string {
	s := t.UTC().Format("2006-01-02T15:04:05.000000000")
	for range 3 {
		s = strings.TrimSuffix(s, "000")
	}
	return strings.TrimSuffix(s, ".") + "Z"
}

// Marshal writes a value as one line of JSON and escapes only what JSON requires; the same value always gives the same
// text. See MarshalAs for the types of other vocabularies.
func Marshal(v any) ([]byte, error) { return jsonv2.Marshal(v, writing) }

// MarshalAs writes a value exactly as its owner would write it, and refuses it where its owner would refuse it. The
// type is one of vocabularies.txt.
func MarshalAs(typeName string, v any) (json.RawMessage, error) {
	raw, err := Marshal(v)
	if err != nil {
		return nil, err
	}
	known, wrong := schemas()[typeName].canonical(0, raw)
	if wrong != nil {
		return nil, errors.New(wrong.Msg)
	}
	return known, nil
}

// Unmarshal reads one JSON value. For a malformed text the error is a *DecodeError.
func Unmarshal(data []byte, v any) error {
	if err := checkSyntax(data); err != nil {
		return err
	}
	return jsonv2.Unmarshal(data, v, reading)
}

// UnmarshalAs reads a value of another vocabulary. It fails as Canonical does.
func UnmarshalAs(typeName string, data []byte, v any) error {
	raw, err := Canonical(typeName, data)
	if err != nil {
		return err
	}
	return jsonv2.Unmarshal(raw, v, reading)
}

// checkSyntax returns a *DecodeError unless data is JSON in UTF-8.
func checkSyntax(data []byte) error {
	var value jsontext.Value
	err := jsonv2.Unmarshal(data, &value, lenient, jsontext.AllowInvalidUTF8(utf8.Valid(data)))
	if err == nil {
		return nil
	}
	if wrong, ok := errors.AsType[*jsontext.SyntacticError](err); ok && wrong.Err != io.ErrUnexpectedEOF {
		return errorAt(int(wrong.ByteOffset), wrong.Err.Error()).locate(data)
	}
	return errorAt(len(data), "the text ends in the middle").locate(data)
}

// unquote decodes a JSON string; it returns "" for any other JSON.
func unquote(raw []byte) string {
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	text, _ := jsontext.AppendUnquote(nil, raw) // half of a surrogate pair becomes U+FFFD
	return string(text)
}

// Clip cuts a text to at most n bytes, between characters. Bytes that are not UTF-8 become U+FFFD.
func Clip(s string, n int) string {
	if s = strings.ToValidUTF8(s, "\uFFFD"); len(s) > n {
		s = strings.ToValidUTF8(s[:n], "")
	}
	return s
}

// Quote returns a text as a JSON string. Bytes that are not UTF-8 become U+FFFD.
func Quote(s string) json.RawMessage {
	raw, _ := jsontext.AppendQuote(nil, s)
	return raw
}

// compact returns JSON without white space, nil if raw is not JSON.
func compact(raw []byte) json.RawMessage {
	v := jsontext.Value(bytes.Clone(raw))
	if v.Compact(lenient) != nil {
		return nil
	}
	return json.RawMessage(v)
}
