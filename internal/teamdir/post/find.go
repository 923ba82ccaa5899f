package post

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/search"
	"github.com/agentteammail/atm/wire"
)

// AmbiguousError says that a fragment of an id matches several messages in the first place that has any.
type AmbiguousError struct {
	Fragment   string
	Candidates []wire.ID
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%q matches %d messages", e.Fragment, len(e.Candidates))
}

// Find finds the message that matches a fragment of an id: in me, else in the mailboxes of the team, else in those of
// retired members. An *AmbiguousError if the first of these places with a match has several. box is the mailbox that has it;
// if the item's State is "", box's owner sent it.
func Find(t *teamdir.Team, me *maildir.Box, fragment string) (it *wire.Item, box *maildir.Box, err error) {
	f, err := wire.ParseFragment(fragment)
	if err != nil {
		return nil, nil, err
	}
	var ids []wire.ID
	match := func(b *maildir.Box) error {
		found, err := b.Match(f)
		isBackInMine := me != nil && b.Address() == me.Address() && len(found) > 0 // put back just now
		if len(ids) == 0 || isBackInMine {
			box = b
		}
		ids = append(ids, found...)
		return err
	}
	if me != nil {
		err = match(me)
	}
	if err == nil && len(ids) == 0 {
		err = t.Each(match)
	}
	if retired, _ := keep.Retired(t.Store, ""); err == nil && len(ids) == 0 {
		for _, b := range retired {
			match(b)
		}
	}
	slices.Sort(ids) // each recipient has a copy
	switch ids = slices.Compact(ids); len(ids) {
	case 0:
		return nil, nil, cmp.Or(err, fmt.Errorf("message %s: %w", fragment, maildir.ErrNotFound))
	case 1:
		it, err = message(t, ids[0], box)
		return it, box, err
	}
	return nil, nil, &AmbiguousError{fragment, ids}
}

// message returns a message that box's owner received or sent. If a power cut damaged the sent copy, it returns that of
// a recipient.
func message(t *teamdir.Team, id wire.ID, box *maildir.Box) (*wire.Item, error) {
	it, err := search.Own(box, id)
	if !errors.Is(err, maildir.ErrNotFound) {
		return it, err
	}
	boxes, _ := t.Boxes()
	outboxes, _ := t.Store.Outboxes()
	for _, b := range append(boxes, outboxes...) {
		if it, e := b.Get(id); e == nil && it.From == box.Address() {
			return &wire.Item{Message: it.Message}, nil
		}
	}
	return nil, err
}
