//go:build !linux

package hook

import (
	"os"
	"time"
)

// readAll reads in a goroutine, which ends with the input, else with the
// process.
func readAll(f *os.File, patience time.Duration) ([]byte, error) {
	type result struct {
		data []byte
		err  error
	}
	came, done := make(chan struct{}, 1), make(chan result, 1)
	go func() {
		data, err := gather(func(p []byte) (int, error) {
			n, err := f.Read(p)
			select {
			case came <- struct{}{}:
			default:
			}
			return n, err
		})
		done <- result{data, err}
	}()
	silence := time.NewTimer(patience)
	defer silence.Stop()
	for {
		select {
		case r := <-done:
			return r.data, r.err
		case <-came:
			silence.Reset(patience)
		case <-silence.C:
			return nil, silent(patience)
		}
	}
}
