package mailbox

import (
	"io/fs"
	"time"
)

const onUnix = false

func uidOf(fs.FileInfo) *int { return nil }

func changed(info fs.FileInfo) time.Time { return info.ModTime() }
