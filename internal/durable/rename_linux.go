package durable

import "golang.org/x/sys/unix"

func renameNew(from int, old string, to int, new string) error {
	return unix.Renameat2(from, old, to, new, unix.RENAME_NOREPLACE)
}
