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
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Msg)
}

// ErrNotObject is returned for JSON that is not an object.
var ErrNotObject = errors.New("not a JSON object")

// memberError says what is wrong with a member of an object.
type memberError struct{ name, msg string }

func (e *memberError) Error() string { return e.name + ": " + e.msg }

// locate returns a *DecodeError for what went wrong when data was decoded, and nil for nil. What is wrong within a
// member has the place of that member.
func locate(data []byte, err error) error {
	if err == nil || err == ErrNotObject {
		return err
	}
	offset, msg := 0, err.Error()
	switch e := err.(type) {
	case *DecodeError:
		return err
	case *memberError:
		o := parseObject(data)
		offset = o[o.index(e.name)].offset
	case *jsontext.SyntacticError:
		offset, msg = int(e.ByteOffset), e.Err.Error()
		switch e.Err {
		case io.ErrUnexpectedEOF:
			offset, msg = len(data), "the text ends in the middle"
		case jsontext.ErrDuplicateName:
			msg = e.JSONPointer.LastToken() + " appears twice"
		}
	}
	before := data[:offset]
	return &DecodeError{1 + bytes.Count(before, []byte{'\n'}), offset - bytes.LastIndexByte(before, '\n'), msg}
}

// lenient are the options for all JSON. JavaScript writes half of a surrogate pair where it cuts a text: that becomes
// U+FFFD in a string that we decode, and stays in JSON that we keep. (Bytes that are not UTF-8 are refused elsewhere.)
var lenient = jsonv2.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(true))

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
	s, err := schemaOf(typeName)
	if err != nil {
		return nil, err
	}
	return s.canonical(raw)
}

// Unmarshal reads one JSON value. The error is a *DecodeError.
func Unmarshal(data []byte, v any) error {
	return locate(data, jsonv2.Unmarshal(data, v, reading, jsontext.AllowInvalidUTF8(utf8.Valid(data))))
}

// UnmarshalAs reads a value of another vocabulary. It fails as Canonical does.
func UnmarshalAs(typeName string, data []byte, v any) error {
	raw, err := Canonical(typeName, data)
	if err != nil {
		return err
	}
	return Unmarshal(raw, v)
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
	n = max(n, 0)
	if s = strings.ToValidUTF8(s, "\uFFFD"); len(s) > n {
		s = strings.ToValidUTF8(s[:n], "")
	}
	return s
}

// ClipStart cuts the start of a text, so that a line "…" and its end have at most n bytes; nothing if even that line has
// more.
func ClipStart(s string, n int) string {
	const mark = "…\n"
	if s = strings.ToValidUTF8(s, "\uFFFD"); len(s) > n && n < len(mark) {
		return ""
	}
	if len(s) > n {
		s = mark + strings.ToValidUTF8(s[len(s)-n+len(mark):], "")
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
