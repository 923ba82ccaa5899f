package wire

import "encoding/json"

// SetMeta notes something of ours under meta.atm, keeping all else in meta.
func (m *Message) SetMeta(key string, value json.RawMessage) {
	var top, ours []Field
	if len(m.Meta) > 0 {
		top, _ = Object(m.Meta)
	}
	for _, f := range top {
		if f.Key == "atm" {
			ours, _ = Object(f.Raw)
		}
	}
	m.Meta = object(put(top, "atm", object(put(ours, key, value))))
}

// MetaString is what SetMeta noted under key, if it is a string.
func (m *Message) MetaString(key string) string {
	top, _ := Object(m.Meta)
	for _, f := range top {
		if f.Key == "atm" {
			ours, _ := Object(f.Raw)
			for _, o := range ours {
				if o.Key == key {
					s, _ := decodeString(o.Raw)
					return s
				}
			}
		}
	}
	return ""
}

func put(fs []Field, key string, value json.RawMessage) []Field {
	for i := range fs {
		if fs[i].Key == key {
			fs[i].Raw = value
			return fs
		}
	}
	return append(fs, Field{Key: key, Raw: value})
}

func object(fs []Field) json.RawMessage {
	var w objectWriter
	w.fields(fs)
	return w.end()
}

// HasOurMeta reports whether meta has an atm, which only we write.
func (m *Message) HasOurMeta() bool {
	top, _ := Object(m.Meta)
	return has(top, "atm")
}
