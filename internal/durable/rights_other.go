//go:build !unix

package durable

import (
	"io/fs"
	"os"
)

// Windows has no FIFOs in directories.
const (
	NoWait  = 0
	dirOnly = 0
	here    = ""

	mostKept = 0 // a directory that is open cannot be renamed
)

func syncDirectory(*os.File) error                    { return nil } // Windows cannot
func (r *Root) setPermissions(*os.File, string) error { return nil }
func (r *Root) OwnerCanRead(string) bool              { return true }
func (r *Root) Writable(dir string) error             { return r.IsDir(dir) }
func Owner(fs.FileInfo) *int                          { return nil }
func Names(fs.FileInfo) int                           { return 1 }
func ID(fs.FileInfo) string                           { return "" }
