package mailbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
)

// Snapshot is a fold of an agent's events up to one of them. What the state is
// made of is its maker's business.
//
//	state.json         a cache: anyone may delete it
//	events/base.json   the fold up to the oldest segment that is kept
type Snapshot struct {
	Version int             `json:"version"` // of the fold
	Seq     uint64          `json:"seq"`     // of the last event folded
	CRC     uint32          `json:"crc"`     // IEEE CRC-32 of its line, without the line feed
	State   json.RawMessage `json:"state"`

	// Where that line was found: a hint, by which it is found at once again.
	Segment uint64 `json:"segment,omitempty"` // its first number
	Offset  int64  `json:"offset,omitempty"`
}

const (
	stateFile   = "state.json"
	baseFile    = "base.json"
	maxSnapshot = 1 << 20
)

// lineCRC is the checksum by which a snapshot knows its event again.
func lineCRC(line []byte) uint32 { return crc32.ChecksumIEEE(line) }

// Snapshot reads state.json. It is worth nothing unless the log still holds
// its event, with that checksum: Cursor.CRC tells. False when there is none.
func (b *Box) Snapshot() (s Snapshot, ok bool) {
	dir, err := b.store.dir.Walk(string(b.agent))
	if err != nil {
		return s, false
	}
	defer dir.Close()
	return readSnapshot(dir, stateFile)
}

// Base reads events/base.json, from which a fold begins: the events up to it
// may be archived. False when there is none.
func (b *Box) Base() (s Snapshot, ok bool) {
	s, ok, _ = b.ReadBase()
	return s, ok
}

// ReadBase is Base, with the error where there is one that cannot be read: a
// fold that begins without it would be wrong.
func (b *Box) ReadBase() (s Snapshot, ok bool, err error) {
	dir, err := b.eventsDir()
	if err != nil || dir == nil {
		return s, false, err
	}
	defer dir.Close()
	if has, err := dir.Has(baseFile); err != nil || !has {
		return s, false, err
	}
	data, err := dir.ReadFile(baseFile, maxSnapshot)
	if err != nil {
		return s, false, err
	}
	s, ok = decodeSnapshot(data)
	return s, ok, nil
}

// ArchivedEvents is where ArchiveEvents puts what is old, for people.
func (b *Box) ArchivedEvents() string {
	return filepath.Join(b.store.dir.Path(), ".archive", string(b.agent), "events")
}

func readSnapshot(dir *atomicfile.Dir, name string) (s Snapshot, ok bool) {
	data, err := dir.ReadFile(name, maxSnapshot)
	if err != nil {
		return s, false
	}
	return decodeSnapshot(data)
}

// decodeSnapshot reads what encoding/json made of a snapshot.
func decodeSnapshot(data []byte) (Snapshot, bool) {
	p := wire.ReadParts(data)
	version, crc := p.Int("version"), p.Uint("crc")
	s := Snapshot{
		Version: int(version), Seq: p.Uint("seq"), CRC: uint32(crc), State: p.Raw("state"), Segment: p.Uint("segment"), Offset: p.Int("offset"),
	}
	if p.Err() != nil || s.Seq == 0 || int64(s.Version) != version || uint64(s.CRC) != crc {
		return Snapshot{}, false
	}
	return s, true
}

// SaveSnapshot writes state.json, whole or not at all. It is not synced: what
// a power cut leaves of it fails its checksum or is discarded as torn.
func (b *Box) SaveSnapshot(s Snapshot) error {
	dir, err := b.store.dir.Walk(string(b.agent))
	if err != nil {
		return err
	}
	defer dir.Close()
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return dir.Replace(stateFile, append(data, '\n'), false)
}

// ArchiveEvents moves the oldest segments of the log to the archive, those
// whose events all lie before a moment; never the newest segment. First fold is
// asked for the fold up to the last event that goes, and that is written, so
// that nothing is lost of the state; a kill in between leaves segments that
// the next call moves. A dry run counts the same. fold may read the log.
func (b *Box) ArchiveEvents(ctx context.Context, before time.Time, dry bool, fold func(upTo uint64) (Snapshot, error)) (Moved, error) {
	var m Moved
	unlock, err := b.lock(ctx, "events", lockfile.Exclusive)
	if err != nil {
		return m, err
	}
	defer unlock()
	r, err := b.enter()
	if err != nil {
		return m, err
	}
	defer r.close()
	dir, err := r.dir("events", false)
	if err != nil || dir == nil {
		return m, err
	}
	segs, err := segments(dir)
	if err != nil {
		return m, err
	}
	old, bytes, err := oldSegments(dir, segs, before)
	if err != nil || old == 0 {
		return m, err
	}
	m.Bytes, m.Events = bytes, int(segs[old]-segs[0])
	if dry {
		return m, nil
	}
	last := segs[old] - 1
	if base, ok := readSnapshot(dir, baseFile); !ok || base.Seq < last {
		s, err := fold(last)
		if err != nil {
			return Moved{}, fmt.Errorf("fold the events of %s up to %d: %w", b.agent, last, err)
		}
		data, err := json.Marshal(s)
		if err != nil {
			return Moved{}, err
		}
		if err := dir.Replace(baseFile, append(data, '\n'), true); err != nil {
			return Moved{}, err
		}
	}
	to, err := r.dir("archive/events", true)
	if err != nil {
		return Moved{}, err
	}
	for _, s := range segs[:old] {
		name := segmentName(s)
		err := atomicfile.Move(dir, name, to, name)
		if errors.Is(err, fs.ErrExist) {
			// One of that name was archived before, by a life before a restore.
			err = atomicfile.Move(dir, name, to, strings.TrimSuffix(name, ".ndjson")+"."+string(wire.NewID())+".ndjson")
		}
		if err != nil {
			return m, err
		}
	}
	return m, nil
}

// oldSegments counts the segments, from the oldest, whose last event is older
// than a moment, and their bytes.
func oldSegments(dir *atomicfile.Dir, segs []uint64, before time.Time) (n int, bytes int64, err error) {
	for n+1 < len(segs) {
		f, err := dir.Open(segmentName(segs[n]))
		if err != nil {
			return n, bytes, err
		}
		info, err := f.Stat()
		if err != nil {
			f.Close()
			return n, bytes, err
		}
		buf, err := tail(f, info.Size(), 64<<10)
		f.Close()
		if err != nil {
			return n, bytes, err
		}
		last := decodeLines(buf, segs[n], max(0, info.Size()-64<<10))
		if len(last) > 0 && !last[len(last)-1].At.Before(before) || len(last) == 0 && !info.ModTime().Before(before) {
			break
		}
		n++
		bytes += info.Size()
	}
	return n, bytes, nil
}
