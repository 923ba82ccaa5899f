//go:build linux

package realagents

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

// calls finds what a text asks the model of TestClaudeTeam to call: CALL tool {…}.
var calls = regexp.MustCompile(`(?m)^ *CALL (\w+) (\{.*\})$`)

// answers counts those of the model: Claude Code takes two of one id for one.
var answers atomic.Int64

// callingModel is a model that calls the tool that the last text asks for.
func callingModel(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Stream   bool
		Tools    []any
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	json.NewDecoder(r.Body).Decode(&in)
	said := "" // since the model's last answer
	for _, m := range in.Messages {
		var text string
		var blocks []struct{ Text string }
		json.Unmarshal(m.Content, &text)
		json.Unmarshal(m.Content, &blocks)
		for _, b := range blocks {
			text += "\n" + b.Text
		}
		if said += text + "\n"; m.Role == "assistant" {
			said = ""
		}
	}
	call := calls.FindStringSubmatch(said)
	if len(in.Tools) == 0 {
		call = nil
	}
	if !in.Stream {
		fmt.Fprint(w, `{"id":"m","type":"message","role":"assistant","model":"m","stop_reason":"end_turn","content":[{"type":"text","text":"{}"}],"usage":{"input_tokens":1,"output_tokens":1}}`)
		return
	}
	n := answers.Add(1)
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(kind, fields string) { fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, fields) }
	block, delta, reason := `{"type":"text","text":""}`, `{"type":"text_delta","text":"Pong."}`, "end_turn"
	if call != nil {
		args, _ := json.Marshal(call[2])
		block = fmt.Sprintf(`{"type":"tool_use","id":"toolu_%d","name":%q,"input":{}}`, n, call[1])
		delta, reason = fmt.Sprintf(`{"type":"input_json_delta","partial_json":%s}`, args), "tool_use"
	}
	say("message_start", fmt.Sprintf(`,"message":{"id":"m%d","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`, n))
	say("content_block_start", `,"index":0,"content_block":`+block)
	say("content_block_delta", `,"index":0,"delta":`+delta)
	say("content_block_stop", `,"index":0`)
	say("message_delta", fmt.Sprintf(`,"delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":1}`, reason))
	say("message_stop", "")
}

// TestClaudeTeam has Claude Code make a team of its own, and mail go both ways between its members and ours.
func TestClaudeTeam(t *testing.T) {
	s := newBob(t, "claude").in(t)
	model := httptest.NewServer(http.HandlerFunc(callingModel))
	defer model.Close()
	config := filepath.Join(s.kit.dir, "home", ".claude")
	settings := []byte(`{"permissions":{"defaultMode":"default"},"env":{"CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS":"1"}}`)
	if err := errors.Join(os.MkdirAll(config, 0o700), os.WriteFile(filepath.Join(config, "settings.json"), settings, 0o600)); err != nil {
		t.Fatal(err)
	}
	port := model.URL[strings.LastIndex(model.URL, ":")+1:]
	s.do(append([]string{"run", "bob", "--driver", "claude", "--detach", "--", "env", "PORT=" + port}, s.command()...)...)
	s.wait("Claude Code's team", func() bool {
		teams, _ := filepath.Glob(filepath.Join(config, "teams", "*", "config.json"))
		return len(teams) == 1
	})
	sync := exec.Command(filepath.Join(bin, "atm"), "claude", "sync", "--join")
	sync.Dir, sync.Env = s.dir, append(s.env(), "CLAUDE_CONFIG_DIR="+config)
	var out strings.Builder
	sync.Stdout, sync.Stderr = &out, &out
	if err := sync.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		sync.Process.Signal(os.Interrupt)
		sync.Wait()
		t.Log(out.String())
	}()
	s.send(`CALL Agent {"description":"review","prompt":"Wait.","name":"rev","subagent_type":"general-purpose","run_in_background":true}`)
	s.wait("rev to be idle", func() bool {
		out, _ := s.try("status", "rev")
		return strings.Contains(out, "idle")
	})
	for from, to := range map[string]string{"rev": "lead", "team-lead": "bob"} {
		s.do("send", from, "--as", "lead", "--subject", "please", fmt.Sprintf(`CALL SendMessage {"to":%q,"summary":"hi","message":"Hello from %s."}`, to, from))
		s.wait("the answer of "+from, func() bool {
			return strings.Contains(s.do("ls", to, "--all", "--json"), `"from":"`+from+`@main"`)
		})
	}
}
