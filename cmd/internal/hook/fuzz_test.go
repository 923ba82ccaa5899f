package hook

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/wire"
)

// Any input is parsed or refused. Its events can be written and read again, and are bounded.
func fuzz(f *testing.F, tool string) {
	file, err := os.Open(filepath.Join("testdata", tool+".ndjson"))
	if err == nil {
		for lines := bufio.NewScanner(file); lines.Scan(); {
			f.Add(lines.Bytes(), "p1", true)
		}
		file.Close()
	}
	f.Add([]byte(`{"hook_event_name":7,"session_id":[],"prompt_id":{},"tool_calls":[7,"x",{}],"type":null,"properties":{"info":[],"part":7}}`), "", false)
	bob := team(f)
	f.Fuzz(func(t *testing.T, in []byte, id string, open bool) {
		first := called(bob, tool, nil, nil)
		if first.parse(in) != nil {
			return
		}
		for _, blocked := range []bool{false, true} {
			c := called(bob, tool, nil, nil)
			c.State = turn{ID: id, Open: open, Blocked: blocked, Retrying: blocked}.in(first.Session)
			if c.parse(in) != nil {
				continue
			}
			for _, e := range append(c.Events, c.EndEvents...) {
				e.Seq, e.Team, e.Agent = 1, "main", "bob"
				line := e.Append(nil)
				if !json.Valid(line) || len(line) > 8<<10+6*len(id) {
					t.Fatalf("%d bytes: %.200s", len(line), line)
				}
				if back, err := wire.DecodeEvent(line); err != nil || back.Kind == "" {
					t.Fatalf("%.200s: %v", line, err)
				}
			}
			if len(c.Name) > 3*agents.MaxID || len(c.Session) > agents.MaxID {
				t.Fatal("long names")
			}
		}
	})
}

func FuzzClaude(f *testing.F)       { fuzz(f, Claude) }
func FuzzClaudeStatus(f *testing.F) { fuzz(f, ClaudeStatus) }
func FuzzCodex(f *testing.F)        { fuzz(f, Codex) }
func FuzzGemini(f *testing.F)       { fuzz(f, Gemini) }
func FuzzOpenCode(f *testing.F)     { fuzz(f, OpenCode) }
