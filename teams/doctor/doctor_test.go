package doctor

import (
	"io/fs"
	"syscall"
	"testing"

	"github.com/agentteammail/atm/internal/durable"
)

// A file that cannot be opened just now is not moved away.
func TestMoveAway(t *testing.T) {
	for err, want := range map[error]string{
		nil: "mv f .", durable.ErrNotRegular: "mv f .", syscall.ENOTDIR: "mv f .",
		syscall.EMFILE: "ls -la f", syscall.EIO: "ls -la f", fs.ErrPermission: "chmod -R u+rwX f",
	} {
		if got := moveAway("f", err); got != want {
			t.Errorf("%v: %s", err, got)
		}
	}
}
