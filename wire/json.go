package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"sync"
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

// MemberError says what is wrong with a member of an object. Locate adds the place.
type MemberError struct{ Name, Msg string }

func (e *MemberError) Error() string { return e.Name + ": " + e.Msg }

// errorIn has the place of a member of an object; if there is no member of that name, that of the object.
func errorIn(object []byte, member, msg string) *DecodeError {
	o, offset := parseObject(object), 0
	if i := o.index(member); i >= 0 {
		offset = o[i].offset
	}
	return errorAt(object, offset, msg)
}

func errorAt(data []byte, offset int, msg string) *DecodeError {
	before := data[:offset]
	return &DecodeError{1 + bytes.Count(before, []byte{'\n'}), offset - bytes.LastIndexByte(before, '\n'), msg}
}

// Locate returns a *DecodeError for an error of decoding data. An error within a member has the place of that member. nil
// and ErrNotObject stay as they are.
func Locate(data []byte, err error) error {
	if err == ErrNotObject {
		return err
	}
	switch e := err.(type) {
	case nil, *DecodeError:
		return err
	case *MemberError:
		return errorIn(data, e.Name, e.Error())
	case *jsonv2.SemanticError:
		member, _, _ := strings.Cut(strings.TrimPrefix(string(e.JSONPointer), "/"), "/")
		return errorIn(data, member, describe(e))
	case *jsontext.SyntacticError:
		switch e.Err {
		case io.ErrUnexpectedEOF:
			return errorAt(data, len(data), "the text ends in the middle")
		case jsontext.ErrDuplicateName:
			return errorAt(data, int(e.ByteOffset), e.JSONPointer.LastToken()+" appears twice")
		}
		return errorAt(data, int(e.ByteOffset), e.Err.Error())
	}
	return errorAt(data, 0, err.Error())
}

// describe says what is wrong with a value that does not fit its Go type, after the names of the members that it is in.
func describe(e *jsonv2.SemanticError) string {
	text := ""
	for name := range e.JSONPointer.Tokens() {
		if _, err := strconv.Atoi(name); err != nil { // else it is an element of a list
			text += name + ": "
		}
	}
	if inner, ok := e.Err.(*jsonv2.SemanticError); ok {
		return text + describe(inner)
	}
	isInteger := e.GoType != nil && e.GoType.Kind() >= reflect.Int && e.GoType.Kind() <= reflect.Uint64
	if e.Err != nil && !isInteger {
		return text + e.Err.Error()
	}
	switch e.GoType.Kind() {
	case reflect.String:
		return text + "must be a string"
	case reflect.Bool:
		return text + "must be true or false"
	case reflect.Uint64:
		return text + "must be a whole number from 0 to 18446744073709551615"
	case reflect.Slice, reflect.Array:
		return text + "must be an array"
	case reflect.Struct, reflect.Map:
		return text + "must be an object"
	}
	return text + "must be a whole number"
}

// lenient are the options for all JSON. JavaScript writes half of a surrogate pair where it cuts a text: that becomes
// U+FFFD in a string that we decode, and stays in JSON that we keep. (Bytes that are not UTF-8 are refused elsewhere.)
var lenient = jsonv2.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(true))

// reading and writing add the Go types that are strings in JSON, and have an error name the place within a message.
var (
	reading = sync.OnceValue(func() jsonv2.Options {
		return jsonv2.JoinOptions(lenient, jsonv2.WithUnmarshalers(jsonv2.JoinUnmarshalers(
			stringReader(ParseName), stringReader(ParseUUID), stringReader(ParseID), stringReader(parseTime), stringReader(readAddress),
			jsonv2.UnmarshalFromFunc(readAddresses),
			jsonv2.UnmarshalFromFunc(func(dec *jsontext.Decoder, o *Origin) error { return jsonv2.UnmarshalDecode(dec, o.object()) }),
			jsonv2.UnmarshalFromFunc(func(dec *jsontext.Decoder, a *Attachment) error { return jsonv2.UnmarshalDecode(dec, a.object()) }))))
	})
	writing = sync.OnceValue(func() jsonv2.Options {
		return jsonv2.JoinOptions(lenient, jsonv2.Deterministic(true), jsonv2.WithMarshalers(jsonv2.MarshalToFunc(
			func(enc *jsontext.Encoder, t time.Time) error { return enc.WriteToken(jsontext.String(formatTime(t))) })))
	})
)

func stringReader[T any](parse func(string) (T, error)) *jsonv2.Unmarshalers {
	return jsonv2.UnmarshalFunc(func(raw []byte, to *T) (err error) {
		*to = *new(T)
		switch {
		case string(raw) == "null":
		case raw[0] != '"':
			err = errors.New("must be a string")
		default:
			*to, err = parse(Unquote(raw))
		}
		return err
	})
}

// readAddress accepts a bare name too, which is completed later.
func readAddress(s string) (Address, error) {
	a, err := ParseAddress(s, "any")
	if !strings.Contains(s, "@") {
		a.Team = ""
	}
	return a, err
}

// readAddresses accepts one address in place of a list.
func readAddresses(dec *jsontext.Decoder, to *[]Address) error {
	if dec.PeekKind() != '"' {
		return errors.ErrUnsupported // as any list
	}
	*to = make([]Address, 1)
	return jsonv2.UnmarshalDecode(dec, &(*to)[0])
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
// text.
func Marshal(v any) ([]byte, error) { return jsonv2.Marshal(v, writing()) }

// Unmarshal reads one JSON value. The error is a *DecodeError.
func Unmarshal(data []byte, v any) error { return Locate(data, read(data, v)) }

func read(data []byte, v any) error {
	return jsonv2.Unmarshal(data, v, reading(), jsontext.AllowInvalidUTF8(utf8.Valid(data)))
}

// readObject reads an object, which null is not. What is wrong with the JSON is said first.
func readObject(data []byte, v any) error {
	err := ErrNotObject
	if jsontext.Value(data).Kind() == '{' {
		err = read(data, v)
	}
	if err != nil {
		if _, first := ReadObject(data); first != nil {
			return first
		}
	}
	return err
}

// Unquote decodes a JSON string; it returns "" for any other JSON.
func Unquote(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	if text := raw[1 : len(raw)-1]; bytes.IndexByte(text, '\\') < 0 && utf8.Valid(text) {
		return string(text)
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

// fieldNames returns the names of a struct's members.
func fieldNames[T any]() (names []string) {
	for f := range reflect.TypeFor[T]().Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// Compact returns JSON without white space, nil if raw is not JSON.
func Compact(raw []byte) json.RawMessage {
	v := jsontext.Value(bytes.Clone(raw))
	if v.Compact(lenient) != nil {
		return nil
	}
	return json.RawMessage(v)
}
