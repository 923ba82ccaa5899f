package command

import (
	"errors"
	"math"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
)

// A span is the value of a DurationFlag: a duration that knows days.
type span time.Duration

func (s *span) Set(word string) error {
	d, err := ParseDuration(word)
	*s = span(d)
	return err
}

// Get is for cli.Context.Value, which the flags of a verb are compared with.
func (s *span) Get() any { return time.Duration(*s) }

func (s *span) String() string { return time.Duration(*s).String() }

// DurationFlag is a flag for what ParseDuration reads; Duration asks for it.
func DurationFlag(name string, value time.Duration, usage string) *cli.GenericFlag {
	s := span(value)
	return &cli.GenericFlag{Name: name, Value: &s, Usage: usage}
}

// TimeoutFlag is the --timeout of a verb that waits.
func TimeoutFlag() cli.Flag {
	f := DurationFlag("timeout", 90*time.Second, "wait `D` (90s); 0: for ever")
	f.Aliases = []string{"for"}
	return f
}

// Duration is the value of a DurationFlag, or its default.
func Duration(c *cli.Context, name string) time.Duration {
	s, ok := c.Generic(name).(*span)
	if !ok {
		return 0
	}
	return time.Duration(*s)
}

var errDuration = errors.New("not a duration such as 30s, 2h, 7d or 1d12h")

// ParseDuration reads durations as Go writes them, with days of 24 hours in
// front: "30s", "7d", "1d12h", "0". A sign is refused.
func ParseDuration(s string) (time.Duration, error) {
	if s == "" || strings.ContainsAny(s, "+-") {
		return 0, errDuration
	}
	days, rest, hasDays := strings.Cut(s, "d")
	if !hasDays {
		days, rest = "0", s
	}
	if strings.Trim(days, ".0123456789") != "" {
		return 0, errDuration
	}
	total, err := time.ParseDuration(days + "h")
	if err != nil || total > math.MaxInt64/24 {
		return 0, errDuration
	}
	total *= 24
	if rest == "" {
		return total, nil
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d > math.MaxInt64-total {
		return 0, errDuration
	}
	return total + d, nil
}
