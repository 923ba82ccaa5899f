package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// topDir is EXT4_TOPDIR_FL: subdirectories do not belong together.
const topDir = 0x20000

// spread is chattr +T, where there is such a thing.
func spread(path string) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	if flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS); err == nil {
		unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags|topDir)
	}
}

// syncAll writes the file system of path out.
func syncAll(path string) {
	if f, err := os.Open(path); err == nil {
		unix.Syncfs(int(f.Fd()))
		f.Close()
	}
}
