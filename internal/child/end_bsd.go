//go:build darwin || freebsd

package child

import "syscall"

// await waits for the program's end. Its number is given away with that.
func (c *Child) await() Exit {
	c.cmd.Wait() // the status says more than the error
	c.holding.Lock()
	c.released = true
	c.holding.Unlock()
	if c.cmd.ProcessState == nil {
		return Exit{Code: -1}
	}
	status, _ := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return signalled(status.Signal())
	}
	return Exit{Code: status.ExitStatus()}
}

func (c *Child) release() {}
