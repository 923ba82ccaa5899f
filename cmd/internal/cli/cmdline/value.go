package cmdline

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
)

// ListFlag is a flag that may be given several times; List returns its values. others are a letter that it has as well, and
// its words elsewhere.
func ListFlag(name, usage string, others ...string) cli.Flag {
	letter, words := split(others)
	return &cli.StringSliceFlag{Name: name, Aliases: letter, Category: words, Usage: usage, Hidden: usage == ""}
}

func split(others []string) (letter []string, words string) {
	isWord := func(s string) bool { return len(s) > 1 }
	return slices.DeleteFunc(slices.Clone(others), isWord), strings.Join(slices.DeleteFunc(slices.Clone(others), func(s string) bool { return !isWord(s) }), " ")
}

// List returns the values of a ListFlag, none for a command that has no such flag.
func List(c *cli.Context, name string) []string { return c.StringSlice(name) }

// A count is a flag for a number that may not be negative.
type count struct {
	*cli.IntFlag
	ifZero string // what 0 means
}

// CountFlag is a flag for a number that may not be negative; ifZero says what 0 means.
func CountFlag(name string, value int, usage, ifZero string, others ...string) cli.Flag {
	letter, words := split(others)
	return &count{&cli.IntFlag{Name: name, Aliases: letter, Category: words, Value: value, Usage: usage}, ifZero}
}

// A choice is a flag for one of some words.
type choice struct {
	*cli.StringFlag
	words []string
	find  func() []string // instead of words
}

// ChoiceFlag is a flag for one of some words.
func ChoiceFlag(name, usage string, words ...string) cli.Flag {
	return &choice{&cli.StringFlag{Name: name, Usage: usage}, words, nil}
}

// ChoiceFuncFlag is ChoiceFlag for words that are looked up when the flag is given.
func ChoiceFuncFlag(name, usage string, find func() []string) cli.Flag {
	return &choice{&cli.StringFlag{Name: name, Usage: usage}, nil, find}
}

func (f *choice) all() []string {
	if f.find != nil {
		return f.find()
	}
	return f.words
}

// refused says why a flag does not take a value; nil: it does.
func refused(f cli.Flag, value string) error {
	name, why := "--"+f.Names()[0], error(nil)
	switch f := f.(type) {
	case *boolFlag:
		if _, err := strconv.ParseBool(value); err != nil {
			why = errors.New("neither true nor false")
		}
	case *countFlag:
		n, err := strconv.Atoi(value)
		if err != nil {
			why = errors.New("not a number")
		} else if n < 0 {
			return failure.Usage("%s %d: must not be negative", name, n).WithHint("%s 0: %s", name, f.ifZero)
		}
	case *choice:
		if words := f.all(); !slices.Contains(words, value) {
			return failure.Usage("%s must be one of %s, not %q", name, strings.Join(words, ", "), value).
				WithHint("%s %s", name, words[0]).WithCandidates(words...).WithNearest(value, words)
		}
	case *genericFlag:
		_, why = ParseDuration(value)
	}
	if why == nil {
		return nil
	}
	typed, usage := FlagUsage(f)
	return failure.Usage("invalid value %q for %s: %w", letter.Clip(value, 40), name, why).WithHint("%s: %s", typed, usage)
}

// Choices returns the values of a command's flag, as it is typed, if they are known.
func Choices(c *cli.Command, typed string) []string {
	for _, f := range c.Flags {
		if f, isChoice := f.(*choice); isChoice && slices.Contains(f.Names(), strings.TrimLeft(typed, "-")) {
			return f.all()
		}
	}
	return nil
}

// durationValue is the value of a DurationFlag.
type durationValue struct{ time.Duration }

func (v *durationValue) Set(word string) (err error) {
	v.Duration, err = ParseDuration(word)
	return err
}

// DurationFlag is a flag for what ParseDuration reads; Duration returns its value.
func DurationFlag(name string, value time.Duration, usage string, others ...string) *cli.GenericFlag {
	letter, words := split(others)
	return &cli.GenericFlag{Name: name, Aliases: letter, Category: words, Value: &durationValue{value}, Usage: usage}
}

// TimeoutFlag is the --timeout of a verb that waits.
func TimeoutFlag(others ...string) cli.Flag {
	return DurationFlag("timeout", 90*time.Second, "wait `D` (90s; 0: forever)", others...)
}

// Duration returns the value of a DurationFlag, or its default; 0 for a command that has no such flag.
func Duration(c *cli.Context, name string) time.Duration {
	if v, ok := c.Generic(name).(*durationValue); ok {
		return v.Duration
	}
	return 0
}

// ErrNoUnit is the error for a duration that is a bare number.
var ErrNoUnit = errors.New("needs a unit")

var errDuration = errors.New("not a duration such as 30s, 2h, 7d or 1d12h")

// ParseSince parses a time: a duration before now, a day, also as "yesterday" or "last week", or RFC 3339.
func ParseSince(s string) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t, nil
	}
	if t, err := time.ParseInLocation(time.DateOnly, s, time.Local); err == nil {
		return t, nil
	}
	if days, isName := map[string]int{"today": 0, "yesterday": 1, "last week": 7, "last-week": 7}[s]; isName {
		y, m, d := time.Now().Date()
		return time.Date(y, m, d-days, 0, 0, 0, 0, time.Local), nil
	}
	d, err := ParseDuration(strings.ReplaceAll(strings.TrimSuffix(s, " ago"), " ", ""))
	if err != nil || d == 0 {
		return time.Time{}, fmt.Errorf("%q is not a time such as 2h, 7d, 2026-05-01 or 2026-05-01T12:00:00Z", s)
	}
	return time.Now().Add(-d), nil
}

// ParseDuration parses a duration as Go writes it, without a sign, with weeks and days of 24 hours in front: "30s", "1w",
// "1d12h", "0"; or as people write it: "30min", "2 hours".
func ParseDuration(s string) (time.Duration, error) {
	total, rest, err := time.Duration(0), unitWords.Replace(s), error(nil)
	for _, unit := range []struct {
		name string
		days time.Duration
		bits int // of the largest count
	}{{"w", 7, 12}, {"d", 1, 16}} {
		if count, after, has := strings.Cut(rest, unit.name); has {
			n, bad := strconv.ParseUint(count, 10, unit.bits)
			total, rest, err = total+time.Duration(n)*unit.days*24*time.Hour, after, cmp.Or(err, bad)
		}
	}
	d, errRest := time.ParseDuration(cmp.Or(rest, "0"))
	switch {
	case s != "" && strings.Trim(s, "0123456789") == "" && s != "0":
		return 0, fmt.Errorf("%w: %ss, %[2]sm, %[2]sh or %[2]sd", ErrNoUnit, s)
	case err != nil, errRest != nil, s == "", strings.ContainsAny(s, "+-"):
		return 0, errDuration
	}
	return total + d, nil
}

// unitWords are units as people write them, the longest first.
var unitWords = strings.NewReplacer(" ", "", "weeks", "w", "week", "w", "days", "d", "day", "d", "hours", "h", "hour", "h",
	"minutes", "m", "minute", "m", "mins", "m", "min", "m", "seconds", "s", "second", "s", "secs", "s", "sec", "s")

func isDuration(word string) bool {
	_, err := ParseDuration(word)
	return err == nil
}
