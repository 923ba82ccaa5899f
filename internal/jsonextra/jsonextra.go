// Package jsonextra encodes and decodes structs that keep the members for which they have no field in a json.RawMessage,
// which encoding/json cannot.
package jsonextra

import (
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"
)

// An object has the members of two parts.
type object[Known any] struct {
	Known *Known          `json:",embed"`
	Extra *jsontext.Value `json:",embed"`
}

// Object returns what has the members of known and, in extra, all others. The field of known in which extra lies has the
// tag `json:"-"`, and known no methods for JSON. The package github.com/go-json-experiment/json reads and writes it.
func Object[Known any](known *Known, extra *json.RawMessage) any {
	return &object[Known]{known, (*jsontext.Value)(extra)}
}
