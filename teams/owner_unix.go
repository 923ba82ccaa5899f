//go:build unix

package teams

import (
	"io/fs"
	"os"
	"syscall"
)

// openQuietly: no link is followed, and a FIFO that took a file's place
// between the look and the open does not block.
const openQuietly = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// ownerOf gives the uid that owns a file.
func ownerOf(fi fs.FileInfo) int {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}

// identify says which directory path is, for a note.
func identify(path string) (note, error) {
	fi, err := os.Lstat(path)
	if err != nil {
		return note{}, err
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !fi.IsDir() || !ok {
		return note{}, &fs.PathError{Op: "identify", Path: path, Err: syscall.ENOTDIR}
	}
	return note{Dev: uint64(st.Dev), Ino: uint64(st.Ino), Born: max(0, birth(path, st))}, nil
}
