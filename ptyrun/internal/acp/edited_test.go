//go:build linux || darwin

package acp

import (
	"encoding/json"
	"slices"
	"testing"
)

// Of the agent's tool calls those that have edited something are told, with what their updates name.
func TestEdited(t *testing.T) {
	var paths []string
	r := start(t, Options{Edited: func(path string) { paths = append(paths, path) }}).ready()
	r.Agent.do(func() {
		r.Agent.turn = &turn{}
		for _, update := range []string{
			`{"toolCallId":"1","kind":"edit","title":"Edit","locations":[{"path":"/r/a"},{"path":"relative"}]}`,
			`{"toolCallId":"1","status":"completed","content":[{"type":"diff","path":"/r/b","newText":""},{"type":"diff","path":"/r/a","newText":""}]}`,
			`{"toolCallId":"1","status":"completed"}`,
			`{"toolCallId":"2","kind":"edit","status":"failed","locations":[{"path":"/r/c"}]}`,
			`{"toolCallId":"3","kind":"read","status":"completed","locations":[{"path":"/r/d"}]}`,
			`{"toolCallId":"4","kind":"delete","status":"completed","locations":[{"path":"/r/e"}]}`,
		} {
			var u callUpdate
			if err := json.Unmarshal([]byte(update), &u); err != nil {
				t.Error(err)
			}
			r.Agent.updateCall(u)
		}
		r.Agent.turn = nil
	})
	if want := []string{"/r/a", "/r/b", "/r/e"}; !slices.Equal(paths, want) {
		t.Errorf("edited %q, not %q", paths, want)
	}
}
