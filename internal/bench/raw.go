package main

import (
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
)

// raw is a mailbox as bare as it can be made durable: written in tmp, synced,
// renamed into new, new synced; new stays open.
type raw struct {
	tmp, new string
	dir      *os.File
	text     []byte
	n        atomic.Int64
}

func newRaw(path string) (*raw, error) {
	r := &raw{tmp: filepath.Join(path, "tmp"), new: filepath.Join(path, "new"), text: text()}
	for _, d := range []string{r.tmp, r.new} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	var err error
	r.dir, err = os.Open(r.new)
	return r, err
}

// deliver is the reference of every delivery: write, fsync, rename, fsync the
// directory.
func (r *raw) deliver() (int, error) {
	name := strconv.FormatInt(r.n.Add(1), 10) + ".json"
	tmp := filepath.Join(r.tmp, name)
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	_, err = f.Write(r.text)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(tmp, filepath.Join(r.new, name))
	}
	if err == nil {
		err = r.dir.Sync()
	}
	return 1, err
}
