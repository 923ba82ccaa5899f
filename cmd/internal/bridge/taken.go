package bridge

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/presence"
)

// maxDelay is the longest time between the signature of an envelope and its arrival at the server, by their clocks. An
// envelope is signed when it is published, so more of it means that somebody has published it again, or that a clock is
// wrong. How long it lies on the server does not matter.
const maxDelay = 30 * 24 * time.Hour

// taken remembers envelopes that were received, so that each is taken once, whatever became of its message. A repetition
// within maxDelay is known here, a later one by the server's time; teamdir.PruneTaken removes the files after twice as
// long.
//
//	.bridge/received/<day>.taken   SHA-256 of the signed part of each envelope signed on that day, 32 bytes each
type taken struct {
	mu   sync.Mutex
	days map[string]map[[sha256.Size]byte]bool // by file
}

// key returns the envelope's file and its entry. It does not depend on how the header was written.
func (e *Envelope) key() (file string, entry [sha256.Size]byte) {
	return path.Join(teamdir.ReceivedDir, e.At.UTC().Format(time.DateOnly)+presence.TakenSuffix), sha256.Sum256(e.signed())
}

// day returns the entries of a file. The caller holds mu.
func (t *taken) day(b *Bridge, file string) (map[[sha256.Size]byte]bool, error) {
	if day := t.days[file]; day != nil {
		return day, nil
	}
	f, err := b.Team.Dir().Open(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	day := map[[sha256.Size]byte]bool{}
	if err == nil {
		defer f.Close()
		var entry [sha256.Size]byte
		for in := bufio.NewReader(f); err == nil; {
			if _, err = io.ReadFull(in, entry[:]); err == nil {
				day[entry] = true
			}
		}
		if err != io.EOF && err != io.ErrUnexpectedEOF { // a part of an entry is left by a full disk
			return nil, err
		}
	}
	if len(t.days) >= 8 || t.days == nil { // of a host that was off for long there are envelopes of many days
		t.days = map[string]map[[sha256.Size]byte]bool{}
	}
	t.days[file] = day
	return day, nil
}

// has reports whether an envelope was taken before.
func (t *taken) has(b *Bridge, e *Envelope) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	file, entry := e.key()
	day, err := t.day(b, file)
	return day[entry], err
}

// add notes envelopes. It does not sync: after a power cut the mailbox still knows its messages.
func (t *taken) add(b *Bridge, all []*Envelope) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	fresh := map[string][]byte{}
	for _, e := range all {
		file, entry := e.key()
		day, err := t.day(b, file)
		if err != nil {
			return err
		}
		if !day[entry] {
			fresh[file] = append(fresh[file], entry[:]...)
		}
	}
	for file, entries := range fresh {
		if err := appendEntries(b, file, entries); err != nil {
			delete(t.days, file)
			return err
		}
		for entry := range slices.Chunk(entries, sha256.Size) {
			if day := t.days[file]; day != nil {
				day[[sha256.Size]byte(entry)] = true
			}
		}
	}
	return nil
}

// appendEntries appends whole entries to a file, also behind a part of one.
func appendEntries(b *Bridge, file string, entries []byte) error {
	dir := b.Team.Dir()
	if err := dir.MkdirAll(teamdir.ReceivedDir); err != nil {
		return err
	}
	f, err := dir.OpenFile(file, os.O_WRONLY|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && info.Size()%sha256.Size > 0 {
		err = f.Truncate(info.Size() - info.Size()%sha256.Size)
	}
	if err == nil {
		_, err = dir.Write(f, entries)
	}
	return err
}
