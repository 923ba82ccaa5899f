package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// events are the cases of the log and of what is folded from it.
func (b *bench) events() []*Case {
	return []*Case{
		{Name: "an event appended", Against: "flock, O_APPEND write, unlock of the same line, all kept open", Goal: Goal{Speed: 0.4}, Open: openAppend},
		{Name: "a log folded", Against: "the same lines through encoding/json", Goal: Goal{Speed: 0.7}, Open: openFold},
		{Name: fmt.Sprintf("`atm status`, %s events", count(b.Events)), Against: "after 10 events", Goal: Goal{Time: 1.2}, Open: openStatus},
		{Name: "`atm hook claude`, a tool call", Against: "empty Go program", Goal: Goal{Time: 1.6}, Open: openHook},
	}
}

// working are the events of one turn with three tool calls, as hooks write
// them.
func working(turn int) []wire.Event {
	id := fmt.Sprintf("0199a2b4-5c6d-4e8f-9a0b-%012d", turn)
	event := func(kind string, with ...string) wire.Event {
		e := wire.Event{Source: "hook", Kind: kind, Session: "5f0c3a52-7d1e-4b8a-9c44-2f1b6a3e9d10", TurnID: id}
		for i := 0; i < len(with); i += 2 {
			e = e.With(with[i], with[i+1])
		}
		return e
	}
	out := []wire.Event{event("turn_started", "transport", "hook", "prompt", "Rebase on main, then run the tests.")}
	for range 3 {
		out = append(out, event("tool_call_start", "tool", "Bash", "tool_call_id", "toolu_01AbCdEf"), event("tool_call_end", "tool", "Bash", "tool_call_id", "toolu_01AbCdEf"))
	}
	wired := event("turn_completed")
	wired.Wire = json.RawMessage(`{"kind":"turn_completed","agent":"bob","thread_id":"th-1","turn_id":"` + id + `","status":"completed","transport":"cli-json"}`)
	return append(out, wired, event("turn_idle", "transport", "hook"))
}

// work appends so many events to a member's log.
func (b *bench) work(box *mailbox.Box, n int) error {
	for turn := 0; n > 0; {
		var batch []wire.Event
		for len(batch) < min(n, 2000) {
			batch = append(batch, working(turn)...)
			turn++
		}
		batch = batch[:min(n, len(batch))]
		if err := box.Append(b.ctx, mailbox.AppendOptions{}, batch...); err != nil {
			return err
		}
		n -= len(batch)
	}
	return nil
}

// plain is what encoding/json makes of a line that has nothing but what atm
// writes.
type plain struct {
	Seq       uint64          `json:"seq"`
	At        time.Time       `json:"at"`
	Team      string          `json:"team"`
	Agent     string          `json:"agent"`
	Source    string          `json:"source"`
	Kind      string          `json:"kind"`
	Session   string          `json:"session"`
	TurnID    string          `json:"turn_id"`
	EventID   string          `json:"event_id"`
	Transport string          `json:"transport"`
	Tool      string          `json:"tool"`
	CallID    string          `json:"tool_call_id"`
	Prompt    string          `json:"prompt"`
	Wire      json.RawMessage `json:"wire"`
}

func openFold(b *bench) (cell, error) {
	r, err := b.newRoot("fold", 0, "bob")
	if err != nil {
		return nil, err
	}
	b.later(r.close)
	box := r.Box("bob")
	const n = 20_000
	if err := b.work(box, n); err != nil {
		return nil, err
	}
	state := filepath.Join(box.Path(), "state.json")
	fold := func() (int, error) {
		os.Remove(state)
		s, err := r.State("bob")
		if err == nil && s.Seq != n {
			err = fmt.Errorf("folded up to %d", s.Seq)
		}
		return n, err
	}
	log, err := filepath.Glob(filepath.Join(box.Path(), "events", "*.ndjson"))
	if err != nil || len(log) != 1 {
		return nil, fmt.Errorf("segments: %v, %v", log, err)
	}
	decode := func() (int, error) {
		f, err := os.Open(log[0])
		if err != nil {
			return 0, err
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		lines.Buffer(make([]byte, 64<<10), 1<<20)
		for lines.Scan() {
			var p plain
			if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
				return 0, err
			}
		}
		return n, lines.Err()
	}
	return b.loops(alone(fold), alone(decode)), nil
}

func openStatus(b *bench) (cell, error) {
	atm, err := b.atm()
	if err != nil {
		return nil, err
	}
	r, err := b.newRoot("status", 0, "few", "many")
	if err != nil {
		return nil, err
	}
	b.later(r.close)
	fmt.Fprintf(b.progress, "appending %s events\n", count(b.Events))
	for name, n := range map[wire.Name]int{"few": 10, "many": b.Events} {
		if err := b.work(r.Box(name), n); err != nil {
			return nil, err
		}
		if _, err := r.State(name); err != nil { // leaves a snapshot
			return nil, err
		}
	}
	env := b.env(r, "few")
	return b.installed(b.singles(b.process(env, atm, "status", "many"), b.process(env, atm, "status", "few"))), nil
}

func openHook(b *bench) (cell, error) {
	empty, err := b.empty()
	if err != nil {
		return nil, err
	}
	atm, err := b.atm()
	if err != nil {
		return nil, err
	}
	return b.fresh("hook", 0, []wire.Name{"bob"}, func(r *root) cell {
		return func(d time.Duration) (time.Duration, time.Duration, error) {
			if err := b.work(r.Box("bob"), 1000); err != nil {
				return 0, 0, err
			}
			path := filepath.Join(r.path, "call.json")
			call := `{"session_id":"5f0c3a52-7d1e-4b8a-9c44-2f1b6a3e9d10","transcript_path":"/dev/null","cwd":"/","hook_event_name":"PreToolUse","prompt_id":"0199a2b4-5c6d-4e8f-9a0b-000000000001","permission_mode":"default","tool_name":"Bash","tool_input":{"command":"go test ./..."},"tool_use_id":"toolu_`
			ours, bare := b.env(r, "bob"), b.process(b.env(r, "bob"), empty)
			n := 0
			hook := func() (time.Duration, error) {
				n++ // a call of its own each time
				if err := os.WriteFile(path, fmt.Appendf(nil, "%s%d\"}", call, n), 0o600); err != nil {
					return 0, err
				}
				in, err := os.Open(path)
				if err != nil {
					return 0, err
				}
				defer in.Close()
				return b.run(ours, in, atm, "hook", "claude")
			}
			took, reference, err := b.installed(b.singles(hook, bare))(d)
			if err != nil {
				return 0, 0, err
			}
			last, err := r.Box("bob").LastSeq()
			if err == nil && last < uint64(1000+n) {
				err = fmt.Errorf("%d calls left %d events", n, last-1000)
			}
			return took, reference, err
		}
	}), nil
}
