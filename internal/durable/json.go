package durable

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// A FormatError says that a file is not one that the program has written.
type FormatError struct{ Path, Reason string }

func (e *FormatError) Error() string { return e.Path + ": " + e.Reason }

// ReadJSON reads a file that holds one JSON object. A *FormatError is what DecodeObject says of it.
func (r *Root) ReadJSON(name string, max int64, v any) error {
	data, err := r.ReadFile(name, max)
	if err != nil {
		return err
	}
	if err = DecodeObject(data, v); err != nil {
		return &FormatError{r.Join(name), err.Error()}
	}
	return nil
}

// DecodeObject decodes one JSON object. With an error, which says whether the data are anything else or which member has
// another type, v must not be used.
func DecodeObject(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	wrong, isType := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case err == nil && !bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")): // null
		return errors.New("it is no JSON object")
	case isType && wrong.Field == "":
		return fmt.Errorf("it is no JSON object, but a JSON %s", wrong.Value)
	case isType:
		return fmt.Errorf("in it, %q may not be a JSON %s", wrong.Field, wrong.Value)
	case err != nil:
		return fmt.Errorf("it is no JSON: %w", err)
	}
	return nil
}
