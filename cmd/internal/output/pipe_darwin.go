package output

import "os"

const fionread = 0x4004667f // FIONREAD of sys/filio.h

// Unread cannot tell on macOS: each end of a pipe has a buffer of its own, and the writer's is empty.
func Unread(*os.File) (n int, ok bool) { return 0, false }
