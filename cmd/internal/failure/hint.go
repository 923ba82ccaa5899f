package failure

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// A Hint is a sentence that says what to do next. The commands in it, which work when typed, are in backticks: those are
// not printed, and no argument of Say can make one.
type Hint string

const mark, literal = "`", "\u02cb" // literal, which looks the same and survives %q, is a backtick that marks nothing

// Say returns a hint. An argument that is a Hint keeps its commands.
func Say(format string, args ...any) Hint {
	args = slices.Clone(args) // they are the caller's
	for i, arg := range args {
		switch arg := arg.(type) {
		case Hint:
			args[i] = string(arg)
		case string, error, fmt.Stringer:
			args[i] = unmarked(arg)
		default:
			if reflect.ValueOf(arg).Kind() == reflect.String {
				args[i] = unmarked(arg)
			}
		}
	}
	return Hint(fmt.Sprintf(format, args...))
}

func unmarked(arg any) string { return strings.ReplaceAll(fmt.Sprint(arg), mark, literal) }

// Map returns the hint with other commands.
func (h Hint) Map(change func(command string) string) Hint {
	parts := strings.Split(string(h), mark)
	for i := 1; i < len(parts); i += 2 {
		parts[i] = unmarked(change(plain(parts[i])))
	}
	return Hint(strings.Join(parts, mark))
}

// Render returns the hint with the texts between its commands, and these, as the functions render them.
func (h Hint) Render(text, command func(string) string) (out string) {
	for i, part := range strings.Split(string(h), mark) {
		if i%2 == 0 {
			out += text(plain(part))
		} else {
			out += command(plain(part))
		}
	}
	return out
}

func plain(part string) string { return strings.ReplaceAll(part, literal, mark) }

// String returns the hint as it is printed.
func (h Hint) String() string {
	same := func(part string) string { return part }
	return h.Render(same, same)
}

// MarshalText returns the hint as it is printed, for JSON.
func (h Hint) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads what MarshalText has written, in which nothing is known to be a command.
func (h *Hint) UnmarshalText(text []byte) error {
	*h = Hint(unmarked(string(text)))
	return nil
}
