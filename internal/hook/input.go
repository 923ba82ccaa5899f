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
// must not wait for ever. A terminal, or another device, is not read.
func ReadInput(f *os.File, patience time.Duration) ([]byte, error) {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() && info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) == 0 {
		err = errors.New("the tool's JSON is expected there")
	}
	var data []byte
	if err == nil {
		data, err = readAll(f, patience)
	}
	if err != nil {
		return nil, fmt.Errorf("read stdin: %w", err)
	}
	return data, nil
}

// gather reads to the end by a function like io.Reader's.
func gather(read func([]byte) (int, error)) ([]byte, error) {
	data := make([]byte, 0, 16<<10)
	for {
		n, err := read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case err == io.EOF:
			return data, nil
		case err != nil:
			return nil, err
		case len(data) > MaxInput:
			return nil, fmt.Errorf("over %d MiB", MaxInput>>20)
		case len(data) == cap(data):
			data = append(data, make([]byte, len(data))...)[:len(data)]
		}
	}
}

func silent(patience time.Duration) error { return fmt.Errorf("not a byte for %s", patience) }
