package wire

import (
	"errors"
	"fmt"
	"strings"
)

// Name is the name of an agent or a team: [a-z0-9][a-z0-9_-]{0,63}, and not reserved. One that came out
// of ParseName is safe as one component of a path.
type Name string

// ParseName checks s. The error says what is wrong with it, for people.
func ParseName(s string) (Name, error) {
	switch {
	case s == "":
		return "", errors.New("a name may not be empty")
	case len(s) > 64:
		return "", fmt.Errorf("%q is longer than 64 characters", s[:20]+"…")
	case strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" || s[0] == '_' || s[0] == '-':
		return "", fmt.Errorf("%q is not a name: a-z, 0-9, _ and -, and first a letter or digit", s)
	case s == "all" || s == "drop": // everybody, and the sender of what was dropped
		return "", fmt.Errorf("%q is reserved", s)
	}
	return Name(s), nil
}

// IsName reports whether ParseName takes s.
func IsName(s string) bool { _, err := ParseName(s); return err == nil }

// Address is a full address: agent@team.
type Address struct {
	Agent Name
	Team  Name
}

// String gives agent@team; the zero Address gives "".
func (a Address) String() string {
	if a.Agent == "" {
		return ""
	}
	return string(a.Agent) + "@" + string(a.Team)
}

// ParseAddress reads "agent" or "agent@team"; team fills in a missing one. "drop@team" is understood, as
// the sender of what was dropped by hand.
func ParseAddress(s string, team Name) (Address, error) {
	agent, t, found := strings.Cut(s, "@")
	if !found {
		t = string(team)
	}
	if agent != "drop" {
		if _, err := ParseName(agent); err != nil {
			return Address{}, err
		}
	}
	if _, err := ParseName(t); err != nil {
		return Address{}, err
	}
	return Address{Name(agent), Name(t)}, nil
}

// splitAddress is an address that was checked before; its team may be missing.
func splitAddress(s string) (Address, error) {
	agent, team, _ := strings.Cut(s, "@")
	return Address{Name(agent), Name(team)}, nil
}
