//go:build !linux

package durable

import "os"

func readLease(*os.File) (leased, busy bool) { return false, false }

// HasReadLease is for systems with leases.
func HasReadLease(*os.File) bool { return false }
