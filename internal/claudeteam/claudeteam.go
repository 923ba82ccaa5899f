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
//   - A message to one of Claude's is marked as read after its entry is stored there. Until then it is leased: after a
//     kill it is delivered again ten seconds later, marked as a possible repeat.
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
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// Sync carries mail between two teams. It is not for concurrent use, but several processes may sync the same teams.
type Sync struct {
	Team   *teams.Team
	Dir    string         // the directory of Claude's team
	Join   bool           // adds our members to config.json: Claude's SendMessage accepts no other names
	Report func(Transfer) // called for each transfer

	fault        durable.Fault   // for tests
	root         *durable.Root   // Dir, during a pass
	config       []byte          // config.json, as this pass read it
	configNames  map[string]bool // the names in it
	ours, theirs []member
}

// Transfer is one thing that a pass did.
type Transfer struct {
	Kind   string  `json:"kind"` // taken_in, handed_over, idle_notification, renamed
	ID     wire.ID `json:"id,omitempty"`
	From   string  `json:"from"`
	To     string  `json:"to,omitempty"`
	Title  string  `json:"title,omitempty"`
	Repeat bool    `json:"repeat,omitempty"` // it may have been delivered before
}

// String describes the transfer in one line.
func (t Transfer) String() string {
	switch t.Kind {
	case idle:
		return t.From + " is idle"
	case renamed:
		return "Claude's " + t.From + " is " + t.To + " here"
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
	tempPrefix   = ".atm-"
	maxFile      = 64 << 20 // bytes of one of Claude's files
	renamed      = "renamed"
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
		switch {
		case errors.Is(err, ErrEnded), ctx.Err() != nil:
			return cmp.Or(ctx.Err(), err)
		case err == nil:
			lastError = ""
		case err.Error() != lastError:
			lastError = err.Error()
			fail(err)
		}
		for _, m := range s.theirs {
			w.Add(filepath.Join(m.box.Path(), "inbox"), filepath.Join(m.box.Path(), "inbox", "new"))
		}
		pause := 20 * time.Millisecond // collects related changes
		if err != nil {
			pause = time.Second // a failed attempt changes files itself
		}
		select {
		case <-w.Changed():
		case <-time.After(pollInterval):
		case <-ctx.Done():
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// Pass carries over everything that is waiting, once. An error with one member does not hold up anybody else's mail.
func (s *Sync) Pass(ctx context.Context) (errs error) {
	root, err := durable.Open(s.Dir, s.fault)
	s.root = root
	fail := func(name string, err error) {
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("%s: %w", root.Join(name), err))
		}
	}
	if err == nil {
		defer root.Close()
		err = s.findMembers(ctx, fail)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrEnded
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.Dir, err)
	}
	fail(inboxDir, root.Mkdir(inboxDir))
	if s.Join {
		fail(configFile, s.join(ctx))
	}
	for _, m := range s.ours {
		fail(m.inboxFile(), cmp.Or(s.createInbox(m), s.ingest(ctx, m)))
	}
	s.checkFiles(ctx, fail)
	for _, m := range s.theirs {
		s.recordIdle(ctx, m)
		fail(m.inboxFile(), s.deliver(ctx, m))
	}
	return errs
}

// checkFiles looks at the files in Claude's inbox directory that belong to no member. It removes temp files that killed
// processes left, reports mail for a retired member of ours, which nobody reads, and ingests mail for a name that one of
// ours had there earlier.
func (s *Sync) checkFiles(ctx context.Context, fail func(name string, err error)) {
	files, _ := s.root.Names(inboxDir)
	for _, file := range files {
		name, file := strings.TrimSuffix(file, ".json"), inboxDir+"/"+file
		isFormer := func(m member) bool { return name == m.name+ourSuffix }
		i := slices.IndexFunc(s.ours, isFormer)
		switch {
		case strings.HasPrefix(name, tempPrefix):
			if info, err := s.root.Lstat(file); err == nil && time.Since(info.ModTime()) > time.Hour {
				s.root.Remove(file)
			}
		case sharesInbox(member{name: name}, slices.Concat(s.ours, s.theirs)):
		case s.isRetired(name):
			if list, err := s.readInbox(file); err != nil || slices.ContainsFunc(list, func(e entry) bool { return !e.Read }) {
				fail(file, fmt.Errorf("%s is retired here and gets no mail: atm team restore %[1]s", name))
			}
		case i >= 0:
			fail(file, s.ingest(ctx, member{box: s.ours[i].box, name: name}))
		}
	}
}
