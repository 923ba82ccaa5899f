package hook

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/teamdir/edits"
	"github.com/agentteammail/atm/wire"
)

// Each tool's own way to say which files it has edited, and what is none.
func TestEdited(t *testing.T) {
	t.Parallel()
	const patch = `*** Begin Patch\n*** Update File: a/b.go\n*** Move to: /abs/c.go\n@@\n-*** Update File: no\n+x\n*** Add File: new\r\n+*** Delete File: no\n*** Delete File: old \n*** End Patch`
	for _, c := range []struct {
		tool   string
		call   string
		edited string
	}{
		{Claude, calledWith(Claude, "PostToolUse", `,"tool_name":"Edit","tool_input":{"file_path":"/r/a.go"}`), "/r/a.go"},
		{Claude, calledWith(Claude, "PostToolUse", `,"agent_id":"sub","tool_name":"MultiEdit","tool_input":{"file_path":"/r/a.go"}`), "/r/a.go"},
		{Claude, calledWith(Claude, "PostToolUse", `,"tool_name":"NotebookEdit","tool_input":{"notebook_path":"/r/a.ipynb"}`), "/r/a.ipynb"},
		{Claude, calledWith(Claude, "PostToolUse", `,"tool_name":"Write","cwd":"/elsewhere","tool_input":{"file_path":"x"}`), "/elsewhere/x"},
		{Claude, calledWith(Claude, "PostToolUse", `,"tool_name":"Read","tool_input":{"file_path":"/r/a.go"}`), ""},
		{Claude, calledWith(Claude, "PreToolUse", `,"tool_name":"Edit","tool_input":{"file_path":"/r/a.go"}`), ""},
		{Claude, calledWith(Claude, "PostToolUseFailure", `,"tool_name":"Edit","tool_input":{"file_path":"/r/a.go"}`), ""},
		{Claude, calledWith(Claude, "PostToolUse", `,"tool_name":"Edit","tool_input":{"file_path":7}`), ""},
		{Claude, calledWith(Claude, "PostToolUse", `,"tool_name":"Edit","tool_input":"/r/a.go"`), ""},
		{Codex, calledWith(Codex, "PostToolUse", `,"tool_name":"apply_patch","tool_input":{"command":"`+patch+`"}`), "/here/a/b.go /abs/c.go /here/new /here/old "},
		{Codex, calledWith(Codex, "PostToolUse", `,"tool_name":"apply_patch","tool_input":{"command":["apply_patch","`+patch+`"]}`), "/here/a/b.go /abs/c.go /here/new /here/old "},
		{Codex, calledWith(Codex, "PostToolUse", `,"tool_name":"Bash","tool_input":{"command":"*** Update File: x"}`), ""},
		{Gemini, calledWith(Gemini, "AfterTool", `,"tool_name":"replace","tool_input":{"file_path":"/r/a.go"},"tool_response":{}`), "/r/a.go"},
		{Gemini, calledWith(Gemini, "AfterTool", `,"tool_name":"write_file","tool_input":{"file_path":"/r/a.go"},"tool_response":{"error":"no"}`), ""},
		{OpenCode, `{"type":"message.part.updated","properties":{"part":{"sessionID":"s1","type":"tool","tool":"edit","callID":"c","state":{"status":"completed","input":{"filePath":"/r/a.go"}}}}}`, "/r/a.go"},
		{OpenCode, `{"type":"message.part.updated","properties":{"part":{"sessionID":"s1","type":"tool","tool":"apply_patch","callID":"c","state":{"status":"completed","input":{"patchText":"` + patch + `"}}}}}`, "/here/a/b.go /abs/c.go /here/new /here/old "},
		{OpenCode, `{"type":"message.part.updated","properties":{"part":{"sessionID":"s1","type":"tool","tool":"edit","callID":"c","state":{"status":"running","input":{"filePath":"/r/a.go"}}}}}`, ""},
	} {
		got := called(team(t), c.tool, io.Discard, io.Discard)
		got.Dir = "/here"
		if err := got.parse([]byte(c.call)); err != nil || strings.Join(got.HasEdited, " ") != c.edited {
			t.Errorf("%s\nedited %q, %v", c.call, got.HasEdited, err)
		}
	}
}

// An edit that is refused does not start, and the model is told why, in the way of its tool. Of a patch, one file is enough.
func TestEditIsRefused(t *testing.T) {
	bob := team(t)
	t.Setenv(agents.Claims, agents.Refuse)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	_, err = edits.ClaimPaths(ctx, bob.team, "alice", []string{filepath.Join(dir, "held")}, time.Hour)
	must(t, err)
	for i, c := range []struct {
		tool             string
		event, call, say string
	}{
		{Claude, "PreToolUse", `,"tool_name":"Edit","tool_use_id":"u1","tool_input":{"file_path":"/r/held"}`, `"permissionDecision":"deny","permissionDecisionReason":"[atm] alice has claimed `},
		{Codex, "PreToolUse", `,"tool_name":"apply_patch","tool_use_id":"u1","tool_input":{"command":"*** Add File: free\n*** Update File: /r/held"}`, `"permissionDecision":"deny"`},
		{Gemini, "BeforeTool", `,"tool_name":"replace","tool_input":{"file_path":"/r/held"}`, `{"decision":"deny","reason":"[atm] alice has claimed `},
		{Claude, "PreToolUse", `,"tool_name":"Edit","tool_use_id":"u1","tool_input":{"file_path":"/r/free"}`, ""},
		{Claude, "PreToolUse", `,"tool_name":"Read","tool_use_id":"u1","tool_input":{"file_path":"/r/held"}`, ""},
		{Claude, "PostToolUse", `,"tool_name":"Edit","tool_use_id":"u1","tool_input":{"file_path":"/r/held"}`, ""},
	} {
		var out strings.Builder
		call := strings.ReplaceAll(calledWith(c.tool, c.event, c.call), "\n", `\n`)
		call = strings.NewReplacer("/r/", filepath.ToSlash(dir)+"/", "u1", fmt.Sprint("u", i)).Replace(call)
		before, err := bob.Log().LastSeq()
		must(t, err)
		_, err = called(bob, c.tool, &out, io.Discard).handle(ctx, []byte(call))
		if err != nil || !strings.Contains(out.String(), c.say) || (c.say == "") != (out.String() == "") {
			t.Errorf("%s: answered %q, %v", call, out.String(), err)
		}
		events, _ := bob.Log().Newest(10)
		starts := slices.ContainsFunc(events, func(e wire.Event) bool { return e.Seq > before && e.Kind == "tool_call_start" })
		if starts != (c.say == "" && c.event == "PreToolUse") {
			t.Errorf("%s: events %v", call, events)
		}
	}
}
