package testagent

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"time"
)

// A pluginCall is what atm's plugin for OpenCode tells or asks, and pluginAnswer what it is answered.
type pluginCall struct {
	Type       string         `json:"type"`
	Pushes     bool           `json:"pushes"`
	Text       string         `json:"text,omitempty"`
	Properties map[string]any `json:"properties"`
}

type pluginAnswer struct {
	Watch []string `json:"watch"`
	Text  string   `json:"text"`
}

func callHook(c pluginCall) (answer pluginAnswer) {
	c.Pushes = true
	if c.Properties == nil {
		c.Properties = map[string]any{}
	}
	c.Properties["sessionID"] = "fake"
	in, _ := json.Marshal(c)
	cmd := exec.Command("atm", "hook", "opencode")
	cmd.Stdin = bytes.NewReader(in)
	out, _ := cmd.Output()
	json.Unmarshal(out, &answer)
	return answer
}

// actAsPlugin asks for mail when a directory changes that it was told to watch, and pushes it into the conversation.
func (a *agent) actAsPlugin() {
	if a.o.Inbox == inboxShut {
		return
	}
	seen := map[string]time.Time{}
	for watch, isFirst := []string(nil), true; ; time.Sleep(20 * time.Millisecond) {
		isNew := isFirst
		for _, dir := range watch {
			if info, err := os.Stat(dir); err == nil && info.ModTime() != seen[dir] {
				seen[dir], isNew = info.ModTime(), true
			}
		}
		if !isNew {
			continue
		}
		answer := callHook(pluginCall{Type: "atm.mail"})
		watch, isFirst = answer.Watch, false
		if answer.Text == "" {
			continue
		}
		a.events <- func() {
			a.log.add(Entry{Event: Pushed, Text: answer.Text})
			if a.o.Inbox == inboxDrops {
				return
			}
			a.startTurn(answer.Text)
			a.tellPlugin(pluginCall{Type: "atm.shown", Text: answer.Text})
		}
	}
}

// tellPlugin tells what happens, one thing after the other.
func (a *agent) tellPlugin(c pluginCall) {
	a.behindHooks(func() { callHook(c) })
}

// tellStatus tells that a turn begins ("busy") or is over ("idle"), if there is a plugin.
func (a *agent) tellStatus(status string) {
	if a.o.Profile == "opencode" && a.o.Inbox == inboxOpen {
		a.tellPlugin(pluginCall{Type: "session.status", Properties: map[string]any{"status": map[string]string{"type": status}}})
	}
}
