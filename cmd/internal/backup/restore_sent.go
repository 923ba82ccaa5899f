package backup

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/wire"
)

// sentCopy is an entry of an index of sent mail.
type sentCopy struct {
	team  *teamdir.Team
	entry string // its name in the backup
	dir   string // in the team
	data  []byte
	err   error
}

// readSent has a copy of a sent message restored with others.
func (r *restorer) readSent(c *sentCopy, name string, content io.Reader) (err error) {
	if c.data, err = io.ReadAll(io.LimitReader(content, wire.MaxFile+1)); err != nil {
		return err
	}
	if len(c.data) > wire.MaxFile || r.isLook { // it is none
		return r.restoreFile(c.team, name, io.MultiReader(bytes.NewReader(c.data), content))
	}
	r.sent, r.sentSize = append(r.sent, c), r.sentSize+len(c.data)
	if len(r.sent) < maxBatch && r.sentSize < maxBatchSize {
		return nil
	}
	return r.restoreSent()
}

// restoreSent restores the copies of sent messages that were read, side by side.
func (r *restorer) restoreSent() (err error) {
	byDir := map[string][]*sentCopy{}
	for _, c := range r.sent {
		dir := c.team.Dir().Join(c.dir)
		byDir[dir] = append(byDir[dir], c)
	}
	for _, those := range byDir {
		publishSent(those)
	}
	for _, c := range r.sent {
		failed := asRefusal(c.err)
		if why, isRefused := errors.AsType[refusal](failed); isRefused {
			r.refuse(c.entry, string(why))
		} else if failed != nil {
			err = cmp.Or(err, fmt.Errorf("restore %s: %w", letter.Escape(c.entry), failed))
		}
	}
	r.sent, r.sentSize = nil, 0
	return err
}

// publishSent restores copies into their common directory.
func publishSent(all []*sentCopy) {
	team, name := all[0].team.Dir(), all[0].dir
	dir, err := (*durable.Root)(nil), team.MkdirAll(name)
	if err == nil {
		dir, err = team.Sub(name)
	}
	if err != nil {
		for _, c := range all {
			c.err = err
		}
		return
	}
	defer dir.Close()
	for some := range slices.Chunk(all, 16) {
		var wg sync.WaitGroup
		for _, c := range some {
			wg.Go(func() { c.err = publish(dir, path.Base(c.entry), bytes.NewReader(c.data), false) })
		}
		wg.Wait()
	}
}

// isSentIndex reports whether a file is a copy of a message that an agent has sent.
func isSentIndex(name string) bool {
	_, below, _ := strings.Cut(name, "/")
	return strings.HasPrefix(below, "sent/") && !strings.HasPrefix(below, "sent/once/")
}
