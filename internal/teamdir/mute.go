package teamdir

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/agentteammail/atm/wire"
)

// MuteFile is in a member's directory: whom it has muted. It is not there while that is nobody.
const MuteFile = "muted.json"

// A Mute says that a member is not given a sender's mail, which stays unread in its inbox.
type Mute struct {
	Who   wire.Address `json:"who"`
	Until time.Time    `json:"until,omitzero"` // zero: until it is unmuted
}

type mutes struct {
	Muted []Mute `json:"muted"`
}

// Mutes returns whom a member has muted, in the order in which it did.
func (t *Team) Mutes(name wire.Name) ([]Mute, error) {
	var f mutes
	err := t.Dir().ReadJSON(t.Box(name).In(MuteFile), maxRunFile, &f)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	now := time.Now()
	isOver := func(m Mute) bool { return !m.Until.IsZero() && !now.Before(m.Until) }
	return slices.DeleteFunc(f.Muted, isOver), err
}

// ChangeMutes replaces whom a member has muted.
func (t *Team) ChangeMutes(ctx context.Context, name wire.Name, change func([]Mute) []Mute) error {
	box := t.Box(name)
	return box.Locked(ctx, "muted", func() error {
		all, err := t.Mutes(name)
		if err != nil {
			return err
		}
		if all = change(all); len(all) == 0 {
			if err = t.Dir().Remove(box.In(MuteFile)); errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			return err
		}
		data, _ := json.Marshal(mutes{all}) // addresses and times: cannot fail
		return t.Dir().Replace(box.In(MuteFile), append(data, '\n'), true)
	})
}
