package teams

import (
	"io/fs"
	"os"
	"syscall"
)

const openQuietly = 0

// ownerOf is not asked: Place.UID is -1 here, and nobody is distrusted.
func ownerOf(fs.FileInfo) int { return -1 }

// identify says which directory path is, for a note.
func identify(path string) (note, error) {
	f, err := os.Open(path)
	if err != nil {
		return note{}, err
	}
	defer f.Close()
	var info syscall.ByHandleFileInformation
	if err := syscall.GetFileInformationByHandle(syscall.Handle(f.Fd()), &info); err != nil {
		return note{}, &fs.PathError{Op: "identify", Path: path, Err: err}
	}
	if info.FileAttributes&syscall.FILE_ATTRIBUTE_DIRECTORY == 0 {
		return note{}, &fs.PathError{Op: "identify", Path: path, Err: syscall.ENOTDIR}
	}
	return note{
		Dev:  uint64(info.VolumeSerialNumber),
		Ino:  uint64(info.FileIndexHigh)<<32 | uint64(info.FileIndexLow),
		Born: info.CreationTime.Nanoseconds(),
	}, nil
}
