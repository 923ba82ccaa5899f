package command

import (
	"errors"
	"fmt"
	"math"
	"strconv"
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
	if n, err := strconv.ParseUint(s, 10, 64); err == nil && n > 0 {
		return 0, fmt.Errorf("without a unit: %ss, or m, h, d", s)
	}
	days, rest, hasDays := strings.Cut(s, "d")
	if !hasDays {
		days, rest = "0", s
	}
	whole, err := strconv.ParseUint(days, 10, 16)
	if err != nil || strings.ContainsAny(s, "+-") {
		return 0, errDuration
	}
	total := time.Duration(whole) * 24 * time.Hour
	if hasDays && rest == "" {
		return total, nil
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d > math.MaxInt64-total {
		return 0, errDuration
	}
	return total + d, nil
}

// isDuration reports whether a word was typed for a duration, perhaps without its unit.
func isDuration(word string) bool {
	_, err := ParseDuration(word)
	return err == nil || word != "" && strings.Trim(word, "0123456789") == ""
}
