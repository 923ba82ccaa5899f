package teams

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/pelletier/go-toml/v2"

	"github.com/agentteammail/atm/wire"
)

const (
	rosterFile = "team.toml"
	maxRoster  = 1 << 20
)

// Roster is what team.toml says about who the members are, read leniently: what
// else is wrong in it keeps nobody from being known. All of it is Plan. Which
// members there are is not its business: an agent is a directory.
type Roster struct {
	Lead      wire.Name                `toml:"lead"`
	Approvers []wire.Name              `toml:"approvers"` // nil: not said
	Members   map[wire.Name]RosterItem `toml:"members"`
}

// RosterItem is what it says about one member.
type RosterItem struct {
	Person bool   `toml:"person"`
	Role   string `toml:"role"`
}

// Roster is what team.toml says, read once; the zero value when there is none.
// Keys that are not needed are passed over here.
func (t *Team) Roster() (Roster, error) {
	t.once.Do(func() { t.roster, t.rosterErr = t.readRoster() })
	return t.roster, t.rosterErr
}

func (t *Team) readRoster() (r Roster, err error) {
	data, err := t.Dir().ReadFile(rosterFile, maxRoster)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	if err := toml.Unmarshal(withoutBOM(data), &r); err != nil {
		return Roster{}, fmt.Errorf("%s/%s: %w", t.Dir().Path(), rosterFile, err)
	}
	if _, there := r.Members["lead"]; r.Lead == "" && there {
		r.Lead = "lead"
	}
	return r, nil
}
