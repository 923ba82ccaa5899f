package hook

import (
	"bytes"
	"context"
	"errors"
	"testing"
)

// An agent is reminded between two turns, not in one; and a reminder that fails
// keeps nothing else from going on.
func TestDueIsAskedBetweenTurns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tool          Tool
		event, fields string
		want          int
	}{
		{Claude, "SessionStart", `,"source":"startup"`, 1},
		{Claude, "UserPromptSubmit", `,"prompt":"x"`, 1},
		{Claude, "PreToolUse", `,"tool_name":"Bash","tool_use_id":"u1"`, 0},
		{Claude, "PostToolBatch", ``, 0},
		{Claude, "Stop", `,"stop_hook_active":false`, 1},
		{Claude, "Stop", `,"stop_hook_active":true`, 0},
		{Claude, "SessionEnd", `,"reason":"other"`, 0},
		{Codex, "UserPromptSubmit", `,"prompt":"x"`, 1},
		{Codex, "PostToolUse", `,"tool_name":"shell","tool_use_id":"u1"`, 0},
		{Codex, "Stop", `,"stop_hook_active":false`, 1},
		{Gemini, "BeforeAgent", `,"prompt":"x"`, 1},
		{Gemini, "AfterTool", `,"tool_name":"shell"`, 0},
		{Gemini, "AfterAgent", `,"stop_hook_active":false`, 1},
	} {
		bob := team(t, nil)
		mail(t, bob, "hello")
		asked := 0
		var out, said bytes.Buffer
		exit, err := Handle(ctx, c.tool, []byte(input(c.tool, c.event, c.fields)), Options{
			Box: bob, Stdout: &out, Stderr: &said,
			Due: func(context.Context) error { asked++; return errors.New("no disk") },
		})
		if exit != 0 || asked != c.want || (err != nil) != (c.want > 0) {
			t.Errorf("%s %s: asked %d times, exit %d, %v", c.tool, c.event, asked, exit, err)
		}
		if text, _ := answerOf(t, out.String()); c.want > 0 && !bytes.Contains([]byte(text), []byte("hello")) {
			t.Errorf("%s %s: the mail did not go out: %s", c.tool, c.event, out.String())
		}
	}
}
