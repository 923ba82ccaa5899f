package hook

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// MaxInput is the most that is read of what a tool writes.
const MaxInput = 16 << 20

// ReadInput reads what a tool wrote to the hook's stdin, to the end. It gives up after a while: a tool that waits for
// us in turn must not wait for ever. The goroutine that reads ends with the input, else with the process.
func ReadInput(f *os.File, patience time.Duration) ([]byte, error) {
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
	case <-time.After(patience):
		return nil, fmt.Errorf("read stdin: no end of it within %s", patience)
	}
}

func (c *call) isFirstStop() bool {
	active := c.in.Get("stop_hook_active")
	return active == nil || string(active) == "false"
}

// about says in short what a tool is about to do: the command or the file, "" where neither is known.
func about(raw json.RawMessage) string {
	var in map[string]any
	json.Unmarshal(raw, &in)
	for _, key := range []string{"command", "file_path", "path", "notebook_path", "url", "query", "pattern", "prompt", "description"} {
		if words, ok := in[key].([]any); ok { // Codex gives a command as words as well
			return strings.TrimSpace(fmt.Sprintln(words...))
		}
		if text, ok := in[key].(string); ok && text != "" {
			return text
		}
	}
	return ""
}
