package post

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/wire"
)

// oldLater is where roots and backups of before v0.1.0 have messages to be sent later: <due>.<sender>.<id>.json, or
// ….after.json of one that waits for those in meta.atm.after. sent_at is when it is due.
const oldLater = ".later"

// MoveLater delivers what waits in oldLater, as what waits in its recipient's inbox, and removes it there. After a kill it is
// done again: nobody gets it twice. What cannot be delivered to all stays, with an error.
func MoveLater(ctx context.Context, t *teamdir.Team) (errs error) {
	names, err := t.Dir().Names(oldLater)
	errs = err
	for _, name := range names {
		if strings.HasSuffix(name, ".json") {
			if err := moveLater(ctx, t, oldLater+"/"+name); err != nil {
				errs = errors.Join(errs, fmt.Errorf("%s: %w", t.Dir().Join(oldLater+"/"+name), err))
			}
		}
	}
	return errors.Join(errs, t.Dir().RemoveAll(oldLater+"/after"))
}

func moveLater(ctx context.Context, t *teamdir.Team, file string) error {
	data, err := t.Dir().ReadFile(file, wire.MaxFile)
	if err != nil {
		return err
	}
	m, err := wire.Decode(data)
	if err != nil {
		return err
	}
	var meta struct{ ATM struct{ After []wire.ID } }
	json.Unmarshal(m.Meta, &meta)
	m.NotBefore, m.SentAt, m.Needs = m.SentAt, m.ID.Time().UTC(), meta.ATM.After
	post := &maildir.Post{Message: m, Given: true}
	if sender := t.Box(m.From.Agent); sender.Exists() {
		post.Sender = sender
	}
	for _, a := range unique(m.To) {
		box, unknown := recipient(t.Root(), m.From, a)
		if err = errors.Join(err, unknown); unknown == nil {
			post.To = append(post.To, box)
		}
	}
	maildir.Deliver(ctx, post)
	for _, out := range post.Outcomes {
		err = errors.Join(err, out.Err)
	}
	if err == nil {
		err = t.Dir().Remove(file)
	}
	return err
}
