package testagent

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// callHooks calls the hooks of an event. Their answers are not looked at.
func (a *agent) callHooks(event string, fields map[string]any) {
	commands, in := a.hooksOf(event), a.hookInput(event, fields)
	if len(commands) == 0 {
		return
	}
	a.behindHooks(func() {
		for _, command := range commands {
			runHook(context.Background(), command, in)
		}
	})
}

// askHooks has the hooks of a permission request answer a dialog while it is open.
func (a *agent) askHooks(d *dialog) {
	input := map[string]any{"tool_name": "Bash", "tool_input": map[string]any{"command": d.about}}
	commands, in := a.hooksOf("PermissionRequest"), a.hookInput("PermissionRequest", input)
	if len(commands) == 0 {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	d.isOver = cancel
	a.behindHooks(func() {
		for _, command := range commands {
			var out struct {
				Output struct{ Decision struct{ Behavior string } } `json:"hookSpecificOutput"`
			}
			json.Unmarshal(runHook(ctx, command, in), &out)
			if behavior := out.Output.Decision.Behavior; behavior != "" {
				a.events <- func() { a.decide(d, behavior == "deny") }
			}
		}
	})
}

// hooksOf returns the commands that Claude Code calls at an event: those of its settings file in CLAUDE_CONFIG_DIR and those
// of Options.Settings.
func (a *agent) hooksOf(event string) (commands []string) {
	for _, path := range []string{filepath.Join(os.Getenv("CLAUDE_CONFIG_DIR"), "settings.json"), a.o.Settings} {
		var settings struct {
			Hooks map[string][]struct {
				Hooks []struct{ Command string }
			}
		}
		data, _ := os.ReadFile(path)
		json.Unmarshal(data, &settings)
		for _, group := range settings.Hooks[event] {
			for _, hook := range group.Hooks {
				commands = append(commands, hook.Command)
			}
		}
	}
	return commands
}

func (a *agent) hookInput(event string, fields map[string]any) []byte {
	in := map[string]any{
		"session_id": "fake-" + strconv.Itoa(os.Getpid()), "hook_event_name": event, "prompt_id": "fake-" + strconv.Itoa(a.turns), "stop_hook_active": false,
	}
	maps.Copy(in, fields)
	data, _ := json.Marshal(in)
	return data
}

// runHook calls a hook and returns what it prints. It is told to end when ctx does.
func runHook(ctx context.Context, command string, in []byte) []byte {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Stdin = bytes.NewReader(in)
	out, _ := cmd.Output()
	return out
}

// behindHooks does something beside the agent, behind the hooks that it has called before.
func (a *agent) behindHooks(do func()) {
	before, done := a.hooks, make(chan struct{})
	a.hooks = done
	go func() {
		defer close(done)
		if before != nil {
			<-before
		}
		do()
	}()
}
