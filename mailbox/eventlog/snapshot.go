package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/wire"
)

const baseFile = "base.json"

// Snapshot is a fold of the events up to one of them. This package does not look into State.
type Snapshot struct {
	Version int             `json:"version"` // of the fold
	Seq     uint64          `json:"seq"`     // of the last event folded
	CRC     uint32          `json:"crc"`     // IEEE CRC-32 of its line, without the line feed
	State   json.RawMessage `json:"state"`
}

// Snapshot reads the cached snapshot, or returns false. It is valid only if Resume finds its event.
func (l *Log) Snapshot() (Snapshot, bool) {
	s, ok, _ := l.readSnapshot(l.state())
	return s, ok
}

// Base reads the fold of the archived events, from which every fold begins, or returns false if there is none. After an
// error there may be one, and a fold without it would be wrong.
func (l *Log) Base() (Snapshot, bool, error) {
	if err := l.Present(); err != nil {
		return Snapshot{}, false, err
	}
	return l.readSnapshot(l.base())
}

// readSnapshot returns false if the file is missing or not a snapshot.
func (l *Log) readSnapshot(name string) (s Snapshot, ok bool, err error) {
	data, err := l.Root.ReadFile(name, 1<<20)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, durable.ErrNotRegular) || errors.Is(err, durable.ErrTooLarge) {
		return s, false, nil
	}
	if err != nil || json.Unmarshal(data, &s) != nil || s.Seq == 0 {
		return Snapshot{}, false, err
	}
	return s, true, nil
}

// SaveSnapshot writes the cached snapshot, whole or not at all. It need not be synced: if a power cut damages it, it is
// not JSON or Resume does not find its event.
func (l *Log) SaveSnapshot(s Snapshot) error { return l.writeSnapshot(l.state(), s, false) }

func (l *Log) writeSnapshot(name string, s Snapshot, sync bool) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return l.Root.Replace(name, append(data, '\n'), sync)
}

// ArchiveBefore moves the oldest segments to the archive, up to the first that was written after before, and never the
// newest. It first stores fold's snapshot up to the last archived event as the base; after a kill in between the next
// call moves the segments. fold may read the log. With dry it only counts.
func (l *Log) ArchiveBefore(ctx context.Context, before time.Time, dry bool, fold func(upTo uint64) (Snapshot, error)) (events int, bytes int64, err error) {
	unlock, err := l.Lock(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer unlock()
	segs, err := l.segments()
	old := 0
	for ; err == nil && old+1 < len(segs); old++ {
		var info fs.FileInfo
		if info, err = l.Root.Lstat(l.segment(segs[old])); err != nil || !info.ModTime().Before(before) {
			break
		}
		bytes += info.Size()
	}
	if old == 0 || err != nil {
		return 0, 0, err
	}
	events = int(segs[old] - segs[0])
	if dry {
		return events, bytes, nil
	}
	base, _, err := l.Base()
	if upTo := segs[old] - 1; err == nil && base.Seq < upTo {
		if base, err = fold(upTo); err == nil {
			err = l.writeSnapshot(l.base(), base, true)
		}
	}
	if err == nil {
		err = l.Root.MkdirAll(l.archive())
	}
	if err != nil {
		return 0, 0, err
	}
	for _, first := range segs[:old] {
		to := path.Join(l.archive(), segmentName(first))
		err := l.Root.Move(l.segment(first), to)
		if errors.Is(err, fs.ErrExist) { // from before the log was restored
			err = l.Root.Move(l.segment(first), strings.TrimSuffix(to, segmentEnd)+"."+string(wire.NewID())+segmentEnd)
		}
		if err != nil {
			return events, bytes, err
		}
	}
	return events, bytes, nil
}

// Check checks the log without changing it. odd are entries of its directory that are neither segments, nor the base,
// nor temp files. gaps are missing events, but for archived ones.
func (l *Log) Check() (odd []string, gaps []Gap, err error) {
	base, _, err := l.Base()
	if err != nil {
		return nil, nil, err
	}
	names, err := l.Root.Names(l.dir())
	for _, name := range names {
		info, err := l.Root.Lstat(path.Join(l.dir(), name))
		isOurs := err == nil && info.Mode().IsRegular() && (name == baseFile || segmentFirst(name) > 0)
		if err == nil && !isOurs && name[0] != '.' {
			odd = append(odd, "events/"+name)
		}
	}
	c := l.Follow(base.Seq)
	defer c.Close()
	for err == nil {
		var gap *Gap
		if _, gap, err = c.Next(); gap != nil {
			gaps = append(gaps, *gap)
		}
	}
	if err == io.EOF {
		err = nil
	}
	return odd, gaps, err
}
