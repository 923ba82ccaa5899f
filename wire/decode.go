package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"
)

// Decode reads a message as it lies on disk: everything that delivery fills
// in must be there. The error is a *DecodeError or ErrNotObject.
//
// data is the message's from then on: its body shares that memory, and nobody
// may change it.
func Decode(data []byte) (*Message, error) {
	var room [16]Field
	fields, err := taken(data, room[:0])
	if err != nil {
		return nil, err
	}
	m, err := FromFields(data, fields, "")
	if err != nil {
		return nil, err
	}
	switch {
	case m.ID == "":
		return nil, decodeError(data, 0, false, "the message has no id")
	case m.From == Address{}:
		return nil, decodeError(data, 0, false, "the message has no sender")
	}
	return m, nil
}

// FromFields reads a message that may be incomplete, as people drop it: bare
// names are completed with team, "to" may be one string. data is the text that
// the fields were taken from, for the position of errors (may be nil). The
// error is a *DecodeError. A null in a field of ours counts as absent. The
// message's body shares the memory of the fields, which nobody may change.
func FromFields(data []byte, fields []Field, team Name) (*Message, error) {
	m := &Message{}
	for _, f := range fields {
		if string(f.Raw) == "null" && slices.Contains(messageFields, f.Key) {
			continue
		}
		if err := m.set(f, team); err != nil {
			return nil, decodeError(data, f.at, false, "%s: %s", f.Key, err)
		}
	}
	return m, nil
}

func (m *Message) set(f Field, team Name) (err error) {
	switch f.Key {
	case "id":
		m.ID, err = decodeID(f.Raw)
	case "type":
		m.Type, err = decodeString(f.Raw)
		if m.Type == TypeMessage {
			m.Type = ""
		}
	case "from":
		m.From, err = decodeAddress(f.Raw, team)
	case "to":
		m.To, err = decodeAddresses(f.Raw, team)
	case "thread":
		m.Thread, err = decodeID(f.Raw)
	case "in_reply_to":
		m.InReplyTo, err = decodeID(f.Raw)
	case "subject":
		m.Subject, err = decodeString(f.Raw)
	case "body":
		m.Body, err = shareString(f.Raw)
		if err == nil && strings.IndexByte(m.Body, 0) >= 0 {
			err = errors.New("has a NUL")
		}
		if err == nil && len(m.Body) > MaxBody {
			err = fmt.Errorf("has %d bytes, the most is %d", len(m.Body), MaxBody)
		}
	case "priority":
		m.Priority, err = decodeChoice(f.Raw, "normal", "urgent")
		if m.Priority == "normal" {
			m.Priority = ""
		}
	case "requires_ack":
		m.RequiresAck = string(f.Raw) == "true"
		if !m.RequiresAck && string(f.Raw) != "false" {
			err = errors.New("must be true or false")
		}
	case "reply_wanted":
		m.ReplyWanted, err = decodeChoice(f.Raw, "yes", "no")
	case "sent_at":
		m.SentAt, err = decodeTime(f.Raw)
	case "expires_at":
		m.ExpiresAt, err = decodeTime(f.Raw)
	case "due_at":
		m.DueAt, err = decodeTime(f.Raw)
	case "supersedes":
		m.Supersedes, err = decodeID(f.Raw)
	case "hop":
		m.Hop, err = decodeInt(f.Raw)
		if err == nil && m.Hop < 0 {
			err = errors.New("is negative")
		}
	case "origin":
		m.Origin, err = decodeOrigin(f.Raw)
	case "attachments":
		m.Attachments, err = decodeAttachments(f.Raw)
	case "payload":
		m.Payload, err = decodeObject(f.Raw)
	case "meta":
		m.Meta, err = decodeObject(f.Raw)
	default:
		f.Raw = bytes.Clone(f.Raw) // of whoever has the text
		m.Extra = append(m.Extra, f)
	}
	return err
}

func decodeInt(raw json.RawMessage) (int, error) {
	n, err := decodeInt64(raw)
	if int64(int(n)) != n {
		err = errNoInt
	}
	return int(n), err
}

func decodeInt64(raw json.RawMessage) (int64, error) {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		err = errNoInt
	}
	return n, err
}

var errNoInt = errors.New("must be a whole number")

func decodeString(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", errors.New("must be a string")
	}
	if len(raw) > 1 && bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), nil // taken from valid JSON and UTF-8
	}
	return unquote(raw[1 : len(raw)-1]), nil
}

// shareString is decodeString without a copy, where nothing is escaped.
func shareString(raw json.RawMessage) (string, error) {
	if len(raw) > 2 && raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 {
		return unsafe.String(&raw[1], len(raw)-2), nil
	}
	return decodeString(raw)
}

func decodeChoice(raw json.RawMessage, choices ...string) (string, error) {
	s, err := decodeString(raw)
	if err != nil {
		return "", err
	}
	for _, c := range choices {
		if s == c {
			return s, nil
		}
	}
	return "", fmt.Errorf("must be %s", strings.Join(choices, " or "))
}

func decodeID(raw json.RawMessage) (ID, error) {
	s, err := decodeString(raw)
	if err != nil {
		return "", err
	}
	return ParseID(s)
}

func decodeTime(raw json.RawMessage) (time.Time, error) {
	s, err := decodeString(raw)
	if err != nil {
		return time.Time{}, err
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, errors.New("must be a time such as 2026-05-01T12:00:00Z")
	}
	// An offset may carry it out of the years that can be written.
	if t = t.UTC(); t.Year() < 0 || t.Year() > 9999 {
		return time.Time{}, errors.New("must be within the years 0 to 9999")
	}
	return t, nil
}

func decodeAddress(raw json.RawMessage, team Name) (Address, error) {
	s, err := decodeString(raw)
	if err != nil {
		return Address{}, err
	}
	return ParseAddress(s, team)
}

func decodeAddresses(raw json.RawMessage, team Name) ([]Address, error) {
	if len(raw) > 0 && raw[0] == '"' {
		a, err := decodeAddress(raw, team)
		return []Address{a}, err
	}
	list, ok := elements(raw)
	if !ok {
		return nil, errors.New("must be an array of addresses")
	}
	var out []Address
	for _, r := range list {
		a, err := decodeAddress(r, team)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

func decodeObject(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 || raw[0] != '{' {
		return nil, errors.New("must be an object")
	}
	return bytes.Clone(raw), nil
}

func decodeOrigin(raw json.RawMessage) (*Origin, error) {
	if len(raw) == 0 || raw[0] != '{' {
		return nil, errors.New("must be an object")
	}
	var room [4]Field
	fields := unique(appendMembers(room[:0], raw, 0)) // a part of what is valid
	var err error
	o := &Origin{}
	for _, f := range fields {
		if string(f.Raw) == "null" && (f.Key == "via" || f.Key == "uid" || f.Key == "run") {
			continue
		}
		switch f.Key {
		case "via":
			o.Via, err = decodeString(f.Raw)
		case "uid":
			var uid int
			if uid, err = decodeInt(f.Raw); err == nil {
				o.UID = &uid
			}
		case "run":
			o.Run, err = decodeString(f.Raw)
		default:
			f.Raw = bytes.Clone(f.Raw)
			o.Extra = append(o.Extra, f)
		}
		if err != nil {
			return nil, fmt.Errorf("%s %s", f.Key, err)
		}
	}
	return o, nil
}

func decodeAttachments(raw json.RawMessage) ([]Attachment, error) {
	list, ok := elements(raw)
	if !ok {
		return nil, errors.New("must be an array of objects")
	}
	var out []Attachment
	for _, r := range list {
		fields, err := Object(r)
		if err != nil {
			return nil, errors.New("must be an array of objects")
		}
		var a Attachment
		for _, f := range fields {
			if string(f.Raw) == "null" && (f.Key == "name" || f.Key == "size" || f.Key == "media_type") {
				continue
			}
			switch f.Key {
			case "name":
				a.Name, err = decodeString(f.Raw)
			case "sha256":
				a.SHA256, err = decodeString(f.Raw)
				if err == nil && !IsSHA256(a.SHA256) {
					err = errors.New("must be 64 hex digits")
				}
			case "size":
				a.Size, err = decodeInt64(f.Raw)
				if err == nil && a.Size < 0 {
					err = errors.New("is negative")
				}
			case "media_type":
				a.MediaType, err = decodeString(f.Raw)
			default:
				a.Extra = append(a.Extra, f)
			}
			if err != nil {
				return nil, fmt.Errorf("%s %s", f.Key, err)
			}
		}
		if a.SHA256 == "" {
			return nil, errors.New("an attachment has no sha256")
		}
		out = append(out, a)
	}
	return out, nil
}

// IsSHA256 reports whether s is 64 lower-case hex digits: the name of an
// attachment's content.
func IsSHA256(s string) bool {
	if len(s) != 64 {
		return false
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return false
		}
	}
	return true
}
