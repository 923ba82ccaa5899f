//go:build !linux

package maildir

import "os"

func readLease(*os.File) (leased, busy bool) { return false, false }
func hasLease(*os.File) bool                 { return false }
