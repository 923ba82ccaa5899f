package durable

import (
	"os"

	"golang.org/x/sys/unix"
)

func renameIn(from *os.File, old string, to *os.File, new string) error {
	return unix.RenameatxNp(int(from.Fd()), old, int(to.Fd()), new, unix.RENAME_EXCL)
}
