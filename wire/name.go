package wire

import (
	"errors"
	"fmt"
	"strings"
)

// Name is the name of an agent or a team: [a-z0-9][a-z0-9_-]{0,63}. What ParseName returns is safe in a path.
type Name string

// ParseName checks a name. Its error tells people what is wrong.
func ParseName(s string) (Name, error) {
	switch {
	case s == "":
		return "", errors.New("a name may not be empty")
	case len(s) > 64:
		return "", fmt.Errorf("%q is longer than 64 characters", s[:20]+"…")
	case strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" || s[0] == '_' || s[0] == '-':
		return "", fmt.Errorf("%q is not a name: a-z, 0-9, _ and -, starting with a letter or digit", s)
	case s == "all":
		return "", errors.New(`"all" is no name: it stands for every member`)
	case s == "drop":
		return "", errors.New(`"drop" is no name: dropped files come from it`)
	}
	return Name(s), nil
}

// IsName reports whether ParseName accepts s.
func IsName(s string) bool { _, err := ParseName(s); return err == nil }

// Address is agent@team, or agent@team.host for a member on another machine. A team has the same name on all its
// machines. On disk a local address has no host; between machines every address has one.
type Address struct {
	Agent Name
	Team  Name
	Host  Name // "": this machine
}

// String returns agent@team or agent@team.host, and "" for an address without an agent.
func (a Address) String() string {
	if a.Agent == "" {
		return ""
	}
	return strings.TrimSuffix(string(a.Agent+"@"+a.Team+"."+a.Host), ".")
}

// MarshalText is String.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads what String returns, and a bare name, of which the team is to be added.
func (a *Address) UnmarshalText(text []byte) (err error) {
	*a = Address{}
	if len(text) > 0 {
		*a, err = readAddress(string(text))
	}
	return err
}

// ParseAddress reads "agent", "agent@team" or "agent@team.host", and "drop@team", the sender of dropped files.
func ParseAddress(s string, team Name) (Address, error) {
	agent, place, hasTeam := strings.Cut(s, "@")
	theirs, host, hasHost := strings.Cut(place, ".")
	a := Address{Name(agent), Name(theirs), Name(host)}
	if !hasTeam {
		a.Team = team
	}
	names := []Name{a.Agent, a.Team}
	if a.Agent == "drop" {
		names = names[1:]
	}
	if hasHost {
		names = append(names, a.Host)
	}
	for _, n := range names {
		if _, err := ParseName(string(n)); err != nil {
			return Address{}, err
		}
	}
	return a, nil
}
