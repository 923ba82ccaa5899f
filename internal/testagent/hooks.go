package testagent

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// callHooks calls the hooks of an event as Claude Code does: those of its settings file in CLAUDE_CONFIG_DIR and those of
// Options.Settings. Their answers are not looked at.
func (a *agent) callHooks(event, field, text string) {
	var commands []string
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
	if len(commands) == 0 {
		return
	}
	in, _ := json.Marshal(map[string]any{
		"session_id": "fake-" + strconv.Itoa(os.Getpid()), "hook_event_name": event, "prompt_id": "fake-" + strconv.Itoa(a.turns), field: text, "stop_hook_active": false,
	})
	a.behindHooks(func() {
		for _, command := range commands {
			cmd := exec.Command("/bin/sh", "-c", command)
			cmd.Stdin = bytes.NewReader(in)
			cmd.Run()
		}
	})
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
