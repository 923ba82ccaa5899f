package fakeagent

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"time"
)

// hooks runs Options.Hook at the events of a session, with the objects that
// the profile's real program writes: Claude Code's, Codex's, or Gemini CLI's.
// The zero value runs nothing.
type hooks struct {
	o       Options
	log     journal
	session string
	cwd     string
}

// verdict is what a hook answered.
type verdict struct {
	Decision string `json:"decision"`
	Reason   string `json:"reason"`
	Specific struct {
		Context  string `json:"additionalContext"`
		Decision string `json:"permissionDecision"`
		Reason   string `json:"permissionDecisionReason"`
	} `json:"hookSpecificOutput"`
}

func (v verdict) blocks() bool { return v.Decision == "block" || v.Decision == "deny" }

// names of events that Gemini CLI gives other names.
func (h *hooks) name(event string) string {
	if h.o.Profile == "gemini" {
		switch event {
		case "UserPromptSubmit":
			return "BeforeAgent"
		case "Stop":
			return "AfterAgent"
		case "PreToolUse":
			return "BeforeTool"
		case "PostToolUse":
			return "AfterTool"
		case "PermissionRequest", "StopFailure":
			return "" // it has none
		}
	}
	if h.o.Profile == "codex" && (event == "Notification" || event == "StopFailure") {
		return ""
	}
	return event
}

// run calls the hook and waits for it. turn may be empty.
func (h *hooks) run(event, turn string, more map[string]any) verdict {
	if h == nil || h.o.Hook == "" {
		return verdict{}
	}
	if event = h.name(event); event == "" {
		return verdict{}
	}
	in := map[string]any{"session_id": h.session, "transcript_path": "/tmp/" + h.session + ".jsonl", "cwd": h.cwd, "hook_event_name": event}
	switch h.o.Profile {
	case "codex":
		in["model"], in["permission_mode"] = "fake-model", "default"
		if turn != "" {
			in["turn_id"] = turn
		}
	case "gemini":
		in["timestamp"] = time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
	default:
		in["permission_mode"] = "default"
		if turn != "" {
			in["prompt_id"] = turn
		}
	}
	for k, v := range more {
		in[k] = v
	}
	line, err := json.Marshal(in)
	if err != nil {
		h.log.add(Entry{Event: HookRan, Kind: event, Text: err.Error(), Code: -1})
		return verdict{}
	}
	cmd := exec.Command("/bin/sh", "-c", h.o.Hook)
	cmd.Env = append(os.Environ(), "CLAUDE_PROJECT_DIR="+h.cwd)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(append(line, '\n')), &out, &errs
	err = cmd.Run()
	code := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		code = -1
	}
	h.log.add(Entry{Event: HookRan, Kind: event, Text: out.String() + errs.String(), Code: code})
	var v verdict
	if code == 2 {
		v.Decision, v.Reason = "block", errs.String()
	} else if code == 0 && bytes.HasPrefix(bytes.TrimSpace(out.Bytes()), []byte("{")) {
		// What is no JSON is text for the model, and blocks nothing.
		_ = json.Unmarshal(out.Bytes(), &v)
	}
	return v
}

func (h *hooks) sessionStart(again bool) {
	source := "startup"
	if again {
		source = "resume"
	}
	h.run("SessionStart", "", map[string]any{"source": source})
}

func (h *hooks) sessionEnd() {
	h.run("SessionEnd", "", map[string]any{"reason": "prompt_input_exit"})
}

// prompt may stop a prompt.
func (h *hooks) prompt(turn, text string) (reason string, ok bool) {
	v := h.run("UserPromptSubmit", turn, map[string]any{"prompt": text})
	return v.Reason, !v.blocks()
}

// stop may keep a turn going: with the reason, as if it had been a prompt.
func (h *hooks) stop(turn, last string, again bool) (reason string) {
	more := map[string]any{"stop_hook_active": again, "last_assistant_message": last}
	if h.o.Profile == "gemini" {
		more["prompt_response"] = last
	}
	v := h.run("Stop", turn, more)
	if v.blocks() {
		return v.Reason
	}
	if h.o.Profile != "codex" {
		return v.Specific.Context
	}
	return ""
}

func (h *hooks) failed(turn string) {
	h.run("StopFailure", turn, map[string]any{"error": "server_error"})
}

func bash(use, command string) map[string]any {
	m := map[string]any{"tool_name": "Bash", "tool_input": map[string]any{"command": command}}
	if use != "" {
		m["tool_use_id"] = use
	}
	return m
}

// beforeTool may forbid a tool.
func (h *hooks) beforeTool(turn, use, command string) (reason string, ok bool) {
	v := h.run("PreToolUse", turn, bash(use, command))
	if v.Specific.Decision == "deny" {
		return v.Specific.Reason, false
	}
	return v.Reason, !v.blocks()
}

func (h *hooks) afterTool(turn, use, command string) {
	m := bash(use, command)
	m["tool_response"] = map[string]any{"stdout": "", "stderr": ""}
	h.run("PostToolUse", turn, m)
}

// interrupted is an interrupt by the user: only Codex says so.
func (h *hooks) interrupted(turn string) {
	if h.o.Profile == "codex" {
		h.run("Interrupt", turn, nil)
	}
}

// wants is a permission dialog that is about to be shown.
func (h *hooks) wants(turn, command string) {
	h.run("PermissionRequest", turn, bash("", command))
	if h.o.Profile == "gemini" {
		h.run("Notification", turn, map[string]any{"notification_type": "ToolPermission", "message": "Tool Confirm Shell Command requires execution",
			"details": map[string]any{"type": "exec", "title": "Confirm Shell Command", "command": command}})
		return
	}
	h.run("Notification", turn, map[string]any{"notification_type": "permission_prompt", "message": "Claude needs your permission to use Bash"})
}
