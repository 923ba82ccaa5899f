//go:build !linux && !darwin

package durable

import (
	"os"
	"syscall"
)

func renameIn(*os.File, string, *os.File, string) error { return syscall.ENOTSUP }
