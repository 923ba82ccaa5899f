// Package tomlfile reads TOML files that people write. It is strict: an unknown key and a value of the wrong type are
// mistakes.
package tomlfile

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// MaxSize is how large a file may be. go-toml compares each key with all others, and shows each unknown one with the file
// around it: the worst 64 KiB cost it some three seconds, 1 MiB minutes.
const MaxSize = 64 << 10

// Mistakes are what is wrong in a file. Each names its place: a line and a column, or the path of a key.
type Mistakes []string

// Add adds a mistake in the value of a key: "members.bob.after", "rules[1].tool".
func (m *Mistakes) Add(path, format string, args ...any) {
	*m = append(*m, path+": "+fmt.Sprintf(format, args...))
}

// AddError adds an error in the value of a key, unless it is nil.
func (m *Mistakes) AddError(path string, err error) {
	if err != nil {
		m.Add(path, "%v", err)
	}
}

// String returns the first mistake, and how many more there are.
func (m Mistakes) String() string {
	if len(m) > 1 {
		return fmt.Sprintf("%s, and %d more", m[0], len(m)-1)
	}
	return strings.Join(m, "")
}

// Decode decodes a file into a struct. It returns all unknown keys; or one mistake of another kind, with which the file is
// not read to its end.
func Decode(data []byte, into any) (mistakes Mistakes, isWhole bool) {
	if len(data) > MaxSize {
		return Mistakes{fmt.Sprintf("the file has more than %d KiB", MaxSize>>10)}, false
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // written by editors on Windows
	err := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(into)
	if unknown, ok := errors.AsType[*toml.StrictMissingError](err); ok {
		for _, e := range unknown.Errors {
			mistakes.Add(place(&e), "unknown key %q", strings.Join(e.Key(), "."))
		}
		return mistakes, true
	}
	if wrong, ok := errors.AsType[*toml.DecodeError](err); ok {
		at := place(wrong)
		if key := wrong.Key(); len(key) > 0 {
			at += ": " + strings.Join(key, ".")
		}
		mistakes.Add(at, "%s", strings.TrimPrefix(err.Error(), "toml: "))
	} else if err != nil {
		mistakes = Mistakes{err.Error()}
	}
	return mistakes, err == nil
}

func place(e *toml.DecodeError) string {
	line, column := e.Position()
	return fmt.Sprintf("line %d, column %d", line, column)
}
