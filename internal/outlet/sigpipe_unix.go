//go:build unix

package outlet

import (
	"os"
	"os/signal"
	"syscall"
)

// IgnoreSIGPIPE makes writing to standard output with no reader an error
// instead of the end of the program. Programs started from this one are not
// affected: the signal is caught, since an ignored one would stay ignored in
// them.
func IgnoreSIGPIPE() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}
