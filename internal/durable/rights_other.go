//go:build !unix

package durable

import (
	"io/fs"
	"os"
)

const noWait = 0

// A directory cannot be synced here.
func syncDirectory(*os.File) error { return nil }

func (r *Root) giveRights(*os.File, fs.FileInfo, string) error { return nil }

// OwnerCanRead reports whether the owner of a directory could read a file that
// this process makes in it.
func (r *Root) OwnerCanRead(string) bool { return true }

// Writable reports whether this process may make entries in a directory.
func (r *Root) Writable(string) bool { return true }

// Owner is the user id of a file's owner, nil where the system has none.
func Owner(fs.FileInfo) *int { return nil }
