//go:build !unix

package durable

import (
	"io/fs"
	"os"
)

func syncDirectory(*os.File) error                    { return nil } // Windows cannot
func (r *Root) setPermissions(*os.File, string) error { return nil }
func (r *Root) OwnerCanRead(string) bool              { return true }
func (r *Root) Writable(dir string) error             { return r.IsDir(dir) }
func Owner(fs.FileInfo) *int                          { return nil }
func ID(fs.FileInfo) string                           { return "" }
