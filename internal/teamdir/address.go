package teamdir

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/hostkey"
	"github.com/agentteammail/atm/wire"
)

// Host is this machine's name as team.toml or the only key says; "": neither does.
func (t *Team) Host() wire.Name {
	if c, _ := t.Config(); c.Bridge.Host != "" {
		return c.Bridge.Host
	}
	if own, _ := hostkey.Dir(t.root.KeysDir).Own(); len(own) == 1 {
		return own[0]
	}
	return ""
}

// ParseAddress reads agent, @agent, agent@team, agent@host or agent@team.host. Behind one @ a trusted host goes before a
// team of that name, and the team before this machine. The error is a *WordError for what is no address, or an
// *UnknownHostError.
func (t *Team) ParseAddress(word string) (wire.Address, error) {
	a, err := wire.ParseAddress(strings.TrimPrefix(word, "@"), t.Name)
	if err != nil {
		members, _ := t.Agents()
		return a, &WordError{word, members, err}
	}
	if a.Host != "" {
		if a.Host == t.Host() {
			a.Host = ""
		}
		return a, nil
	}
	if !strings.Contains(word[1:], "@") {
		return a, nil
	}
	place := a.Team // a host, or a team
	hosts, err := t.root.Hosts()
	if slices.Contains(hosts, place) { // another one may be damaged
		a.Team, a.Host = t.Name, place
		return a, nil
	}
	if _, noTeam := t.root.Team(place); !errors.Is(noTeam, ErrNoTeam) {
		return a, err
	}
	if place == t.Host() {
		a.Team = t.Name
	} else if len(hosts) > 0 {
		err = cmp.Or(err, error(&UnknownHostError{Host: place, Hosts: hosts}))
	}
	return a, err
}

// WordError is the error for a word that is no address, or no id.
type WordError struct {
	Word    string
	Members []wire.Name // of the team, whom it may mean
	Err     error
}

func (e *WordError) Error() string { return e.Err.Error() }
func (e *WordError) Unwrap() error { return e.Err }
