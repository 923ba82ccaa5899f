package doctor

import (
	"io/fs"
	"syscall"
	"testing"

	"github.com/agentteammail/atm/internal/durable"
)

// The fix for a file that cannot be opened for now does not move it.
func TestMoveAway(t *testing.T) {
	for err, want := range map[error]string{
		nil: "mv f .", durable.ErrNotRegular: "mv f .", syscall.ENOTDIR: "mv f .",
		syscall.EMFILE: "ls -la f", syscall.EIO: "ls -la f", fs.ErrPermission: "chmod -R u+rwX f",
	} {
		if got := (&doctor{}).moveAway("f", err); got != want {
			t.Errorf("%v: %s", err, got)
		}
	}
}
