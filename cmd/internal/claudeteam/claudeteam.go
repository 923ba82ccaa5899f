// Package claudeteam syncs mail between one of our teams and one of Claude Code's own teams, in both directions. What
// it assumes about Claude Code was seen in versions 2.1.197 and 2.1.328.
//
//	teams/<team>/config.json                 the members of Claude's team
//	teams/<team>/inboxes/<name>.json         an array of entries; a reader removes what it has read
//	teams/<team>/inboxes/<name>.json.lock    see fileLock
//
// The names in config.json are Claude's, except those that Join wrote there; every other member of our team is ours.
// Where both sides have the same name, Claude's is NAME-claude here, and ours is NAME-atm there. Each of ours has an
// inbox file there, and each of Claude's has a mailbox here.
//
//   - An entry for one of ours is removed after its message is stored here. The message ID is derived from the entry, so
//     an entry that is ingested twice is one message.
//   - A message to one of Claude's is handed over: it is marked as read after its entry is stored there. After a kill it is
//     delivered again ten seconds later, marked as a possible repeat.
//   - Nothing unknown is changed: files that hold no array, entries that are no message, unknown fields. Mail between
//     two of Claude's is only read, to learn who is idle.
package claudeteam

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// Sync carries mail between two teams. It is not for concurrent use, but several processes may sync the same teams.
type Sync struct {
	Team     *teams.Team
	Dir      string         // the directory of Claude's team
	Join     bool           // adds our members to config.json: Claude's SendMessage accepts no other names
	Report   func(Transfer) // called for each transfer
	LockWait time.Duration  // for how long it waits for the lock of one of Claude's files

	fault        durable.Fault   // for tests
	root, here   *durable.Root   // Dir and the team's directory, during a pass
	listed       map[string]bool // the names in config.json
	ours, theirs []member
}

// Transfer is one thing that a pass did.
type Transfer struct {
	Kind   string  `json:"kind"` // taken_in, handed_over, idle_notification
	ID     wire.ID `json:"id,omitempty"`
	From   string  `json:"from"`
	To     string  `json:"to,omitempty"`
	Title  string  `json:"title,omitempty"`
	Repeat bool    `json:"repeat,omitempty"` // it may have been delivered before
}

// String describes the transfer in one line.
func (t Transfer) String() string {
	if t.Kind == idle {
		return t.From + " is idle"
	}
	line := fmt.Sprintf("%s → %s: %s", t.From, t.To, t.Title)
	if t.Repeat {
		line += " (may be a repeat)"
	}
	return line
}

// ErrEnded says that Claude's team does not exist, or no longer.
var ErrEnded = errors.New("no such team, or it has ended")

const (
	configFile   = "config.json"
	inboxDir     = "inboxes"
	maxFile      = 64 << 20        // bytes of one of Claude's files
	pollInterval = 3 * time.Second // in case a change was not reported
)

// Run makes a pass after every change, until the context or Claude's team ends: the latter is ErrEnded. It reports an
// error to fail once for as long as it lasts.
func (s *Sync) Run(ctx context.Context, fail func(error)) error {
	w, err := watcher.OpenDirs()
	if err != nil {
		return err
	}
	defer w.Close()
	for lastError := ""; ; {
		w.Add(s.Dir, filepath.Join(s.Dir, inboxDir))
		err := s.Pass(ctx)
		if errors.Is(err, ErrEnded) || ctx.Err() != nil {
			return cmp.Or(ctx.Err(), err)
		}
		if err != nil && err.Error() != lastError {
			fail(err)
		}
		lastError = fmt.Sprint(err)
		for _, m := range s.theirs {
			inbox := filepath.Join(s.Team.Dir(), string(m.agent()), "inbox")
			w.Add(inbox, filepath.Join(inbox, "new"))
		}
		changed := w.Changed()
		if err != nil {
			changed = nil // a failed attempt changes files itself
		}
		select {
		case <-changed:
			time.Sleep(20 * time.Millisecond) // collects related changes
		case <-time.After(pollInterval):
		case <-ctx.Done():
		}
	}
}

// Pass carries over everything that is waiting, once. An error with one member does not hold up anybody else's mail.
func (s *Sync) Pass(ctx context.Context) (errs error) {
	here, err := durable.Open(s.Team.Dir())
	if err != nil {
		return err
	}
	defer here.Close()
	root, err := durable.OpenFaulty(s.Dir, s.fault)
	if s.here, s.root = here, root; err == nil {
		defer root.Close()
		err = s.findMembers(ctx)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrEnded
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.Dir, err)
	}
	errs = root.Mkdir(inboxDir)
	if s.Join {
		errs = errors.Join(errs, s.join(ctx))
	}
	carry := func(members []member, one func(context.Context, member) error) {
		for _, m := range members {
			if err := one(ctx, m); err != nil {
				errs = errors.Join(errs, fmt.Errorf("%s: %w", root.Join(m.inboxFile()), err))
			}
		}
	}
	carry(s.ours, s.ingest)
	carry(s.theirs, s.deliver)
	return errs
}
