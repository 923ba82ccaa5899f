package hook

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// MaxInput is the most that is read of what a tool writes: what its tools
// printed is in it.
const MaxInput = 16 << 20

// ReadInput reads what a tool wrote to the hook's stdin, to the end. It gives
// up when there was not a byte for so long: a tool that waits for us in turn
// must not wait for ever. A terminal, or another device, is not read. The
// goroutine that reads ends with the input, else with the process.
func ReadInput(f *os.File, patience time.Duration) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read stdin: %w", err)
	}
	if !info.Mode().IsRegular() && info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) == 0 {
		return nil, errors.New("read stdin: the tool's JSON is expected there")
	}
	type chunk struct {
		data []byte
		err  error
	}
	chunks := make(chan chunk)
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			buf := make([]byte, 64<<10)
			n, err := f.Read(buf)
			select {
			case chunks <- chunk{buf[:n], err}:
			case <-done:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	data := []byte{}
	for {
		select {
		case c := <-chunks:
			data = append(data, c.data...)
			if c.err == io.EOF {
				return data, nil
			}
			if c.err != nil {
				return nil, fmt.Errorf("read stdin: %w", c.err)
			}
			if len(data) > MaxInput {
				return nil, fmt.Errorf("read stdin: over %d MiB", MaxInput>>20)
			}
		case <-time.After(patience):
			return nil, fmt.Errorf("read stdin: not a byte for %s", patience)
		}
	}
}
