//go:build linux || darwin

package acp

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
)

// What the agent writes through atm is told, and of its tool calls those that have edited something, with what their
// updates name.
func TestEdited(t *testing.T) {
	var (
		mu    sync.Mutex
		paths []string
	)
	edited := func(path string) {
		mu.Lock()
		defer mu.Unlock()
		paths = append(paths, path)
	}
	r := start(t, Options{Edited: edited}).ready()
	if said := r.asks("WRITE " + r.Dir + "/a/b.txt").Field("response"); !strings.Contains(said, "WRITE: done") {
		t.Fatal(said)
	}
	r.asks("READ " + r.Dir + "/a/b.txt")
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
	mu.Lock()
	defer mu.Unlock()
	if want := []string{r.Dir + "/a/b.txt", "/r/a", "/r/b", "/r/e"}; !slices.Equal(paths, want) {
		t.Errorf("edited %q, not %q", paths, want)
	}
}
