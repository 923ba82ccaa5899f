//go:build unix

package mailbox

import (
	"io/fs"
	"syscall"
	"time"
)

const onUnix = true

func uidOf(info fs.FileInfo) *int {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	uid := int(st.Uid)
	return &uid
}

// changed is when the file's content, name or rights last changed, as far as
// can be told: the change time, which nobody can set.
func changed(info fs.FileInfo) time.Time {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return changeTime(st)
	}
	return info.ModTime()
}
