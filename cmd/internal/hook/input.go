package hook

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/agentteammail/atm/wire"
)

// readObject reads the input of a hook, and returns it as it was read. A byte that is not UTF-8, as a command's output may
// have, costs no event.
func readObject(in []byte) (object wire.Object, read []byte, err error) {
	read = bytes.TrimPrefix(bytes.ToValidUTF8(in, []byte("\ufffd")), []byte("\ufeff"))
	object, err = wire.ReadObject(read)
	return object, read, err
}

// maxInput is how many bytes of a tool's input are read at most.
const maxInput = 16 << 20

// readInput reads all that a tool writes to the hook's stdin, and of what is longer than maxInput the beginning. It gives
// up when nothing comes for that long, since a tool may keep stdin open until the hook ends. Its goroutine ends with the
// input, else with the process.
func readInput(r io.Reader, timeout time.Duration) ([]byte, error) {
	var data []byte
	pieces, done := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := r.Read(buf)
			data = append(data, buf[:min(n, maxInput-len(data))]...)
			if err == io.EOF {
				done <- nil
				return
			} else if err != nil {
				done <- err
				return
			}
			select {
			case pieces <- struct{}{}:
			default:
			}
		}
	}()
	for {
		select {
		case <-pieces:
		case err := <-done:
			return data, err
		case <-time.After(timeout):
			return nil, fmt.Errorf("read stdin: it did not end within %s", timeout)
		}
	}
}
