package hook

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// MaxInput is how many bytes of a tool's input are read at most.
const MaxInput = 16 << 20

// ReadInput reads all that a tool writes to the hook's stdin. It gives up after the timeout, since a tool may keep
// stdin open until the hook ends. Its goroutine ends with the input, else with the process.
func ReadInput(f *os.File, timeout time.Duration) ([]byte, error) {
	var data []byte
	done := make(chan error, 1)
	go func() {
		var err error
		data, err = io.ReadAll(io.LimitReader(f, MaxInput))
		done <- err
	}()
	select {
	case err := <-done:
		return data, err
	case <-time.After(timeout):
		return nil, fmt.Errorf("read stdin: it did not end within %s", timeout)
	}
}

func (c *call) isFirstStop() bool {
	return string(c.in.Get("stop_hook_active")) == "false"
}

// describe says in short what a tool call does, by its arguments: the command, the file or the like, else "".
func describe(arguments json.RawMessage) string {
	var in map[string]any
	json.Unmarshal(arguments, &in)
	for _, key := range []string{"command", "file_path", "path", "notebook_path", "url", "query", "pattern", "prompt", "description"} {
		if words, ok := in[key].([]any); ok { // Codex may give a command as words
			return strings.TrimSpace(fmt.Sprintln(words...))
		}
		if text, ok := in[key].(string); ok && text != "" {
			return text
		}
	}
	return ""
}
