package eventlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/agentteammail/atm/wire"
)

// Archive moves the oldest segments to the archive, up to the first that was written after before, and never the newest.
// With dry it only counts.
func (l *Log) Archive(ctx context.Context, before time.Time, dry bool) (events int, bytes int64, err error) {
	unlock, err := l.lock(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer unlock()
	segs, err := l.segments()
	if err == nil && !dry {
		err = l.root.MkdirAll(l.archive())
	}
	for i := 0; err == nil && i+1 < len(segs); i++ {
		info, err := l.root.Lstat(l.segment(segs[i]))
		if err == nil && !info.ModTime().Before(before) {
			break
		}
		if err == nil && !dry {
			err = l.moveToArchive(segs[i])
		}
		if err != nil {
			return events, bytes, err
		}
		events += int(segs[i+1] - segs[i])
		bytes += info.Size()
	}
	return events, bytes, err
}

// moveToArchive archives a segment. One of the same name that is there is of an earlier agent, or from before the log was
// restored. It gets another name, so that the archive has this log's segments under theirs.
func (l *Log) moveToArchive(first uint64) error {
	to := path.Join(l.archive(), segmentName(first))
	err := l.root.Move(l.segment(first), to)
	if errors.Is(err, fs.ErrExist) {
		err = l.root.Move(to, strings.TrimSuffix(to, segmentEnd)+"."+string(wire.NewID())+segmentEnd)
		if err == nil {
			err = l.root.Move(l.segment(first), to)
		}
	}
	return err
}

// Check checks the log without changing it, but for what is archived. odd are entries of its directory that are neither
// segments nor temp files; damaged are the places, as FILE:LINE, where events are missing.
func (l *Log) Check() (odd, damaged []string, err error) {
	first, err := l.FirstSeq()
	if err != nil {
		return nil, nil, err
	}
	names, err := l.root.Names(l.dir())
	for _, name := range names {
		info, err := l.root.Lstat(path.Join(l.dir(), name))
		isOurs := err == nil && info.Mode().IsRegular() && segmentFirst(name) > 0
		if err == nil && !isOurs && name[0] != '.' {
			odd = append(odd, "events/"+name)
		}
	}
	r := l.Follow(max(first, 1) - 1)
	defer r.Close()
	next, place := first, "" // of the first line that is no event since the last event
	for err == nil {
		var line []byte
		if line, err = r.readLine(); err != nil {
			break
		}
		e, bad := wire.DecodeEvent(line)
		if place == "" {
			place = fmt.Sprintf("events/%s:%d", segmentName(r.first), r.count)
		}
		if bad != nil {
			continue
		}
		if e.Seq != next { // else what is damaged was never whole, as on a full disk
			damaged = append(damaged, place)
		}
		next, place = e.Seq+1, ""
	}
	if place != "" {
		damaged = append(damaged, place)
	}
	if err == io.EOF {
		err = nil
	}
	return odd, damaged, err
}
