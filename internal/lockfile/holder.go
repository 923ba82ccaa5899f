package lockfile

import "fmt"

// HeldError says that somebody else holds a lock, and who, where the system
// tells (Linux does; PID 0 and no Command where it does not).
type HeldError struct {
	Lock    string // its name, as given
	PID     int
	Command string // of the process, as /proc/PID/comm has it
}

func (e *HeldError) Error() string {
	switch {
	case e.Command != "":
		return fmt.Sprintf("lock %s is held by %s (pid %d)", e.Lock, e.Command, e.PID)
	case e.PID != 0:
		return fmt.Sprintf("lock %s is held by pid %d", e.Lock, e.PID)
	}
	return fmt.Sprintf("lock %s is held", e.Lock)
}
