package hook

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentteammail/atm/wire"
)

// MaxInput is the most that is read of what a tool writes.
const MaxInput = 16 << 20

// ReadInput reads what a tool wrote to the hook's stdin, to the end. It gives up after a while: a tool
// that waits for us in turn must not wait for ever. The goroutine that reads ends with the input, else
// with the process.
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

// input is what the tools send. What is absent, or of another type than expected, is the zero value.
type input struct {
	Event    string `json:"hook_event_name"`
	Session  string `json:"session_id"`
	PromptID string `json:"prompt_id"`
	TurnID   string `json:"turn_id"`

	AgentID   json.RawMessage `json:"agent_id"` // of a sub-agent
	AgentType string          `json:"agent_type"`

	Prompt         string            `json:"prompt"`
	Answer         string            `json:"last_assistant_message"`
	PromptResponse string            `json:"prompt_response"`
	StopActive     json.RawMessage   `json:"stop_hook_active"`
	Background     []json.RawMessage `json:"background_tasks"`

	Tool         string          `json:"tool_name"`
	ToolID       string          `json:"tool_use_id"`
	ToolInput    json.RawMessage `json:"tool_input"`
	ToolResponse struct {
		Error json.RawMessage `json:"error"`
	} `json:"tool_response"`
	ToolCalls []struct {
		ID string `json:"tool_use_id"`
	} `json:"tool_calls"`

	Error        string          `json:"error"`
	ErrorDetails string          `json:"error_details"`
	IsInterrupt  bool            `json:"is_interrupt"`
	Reason       string          `json:"reason"`
	Source       string          `json:"source"`
	Trigger      string          `json:"trigger"`
	Message      string          `json:"message"`
	Notification string          `json:"notification_type"`
	Details      json.RawMessage `json:"details"`
	Teammate     string          `json:"teammate_name"`
	Timestamp    string          `json:"timestamp"`

	Type string `json:"type"` // of Codex's older form, and of OpenCode's events

	NotifyID   string `json:"thread-id"`
	NotifyTurn string `json:"turn-id"`

	ID         string        `json:"id"`
	Properties busProperties `json:"properties"`
}

func (in *input) isSubagent() bool { return in.AgentID != nil && string(in.AgentID) != `""` }

// isFirstStop reports whether no hook has kept the program from stopping yet.
func (in *input) isFirstStop() bool { return in.StopActive == nil || string(in.StopActive) == "false" }

// parse takes apart what a tool sent. What is no JSON object is an error.
func parse(data []byte, in any) error {
	_, err := wire.ReadObject(data)
	if err == nil {
		json.Unmarshal(data, in) // a member of another type is passed over
	}
	return err
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

// clip cuts a text to so many bytes, at a character's end.
func clip(s string, n int) string {
	for n < len(s) && n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:min(n, len(s))]
}
