//go:build unix

package crashtest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

// hooked are who have sessions whose hooks call atm.
var hooked = []string{"bob", "carol", "dave"}

// A session is one of Claude Code, as far as its hooks tell: what it would say
// at each of them, in the fields that it was seen to send.
type session struct {
	*world
	agent string
	id    string
	turn  string // prompt_id
	turns int
	tools int

	mortal  bool // its hooks are killed, or installed twice
	failing bool // what they do fails
}

func (w *world) newSession(agent string) *session {
	return &session{world: w, agent: agent, id: newID(0)}
}

// A told is one event of the program's, and what the log has of it then.
type told struct {
	event  string
	more   map[string]any
	leaves trace
}

// stdin is what the program writes to its hook.
func (s *session) stdin(e told) string {
	doc := map[string]any{
		"session_id": s.id, "transcript_path": "/home/dev/.claude/projects/-repo/" + s.id + ".jsonl",
		"cwd": "/repo", "hook_event_name": e.event,
	}
	if s.turn != "" {
		doc["prompt_id"], doc["permission_mode"] = s.turn, "default"
	}
	maps.Copy(doc, e.more)
	b, _ := json.Marshal(doc)
	return string(b)
}

// starts is the beginning; source is startup, resume or compact.
func (s *session) starts(source string) told {
	return told{"SessionStart", map[string]any{"source": source, "model": "claude-opus-4-8[1m]"}, trace{kind: "session_start"}}
}

func (s *session) ends(reason string) told {
	return told{"SessionEnd", map[string]any{"reason": reason}, trace{kind: "session_end"}}
}

// prompts begins a turn.
func (s *session) prompts() told {
	s.turns++
	s.turn = fmt.Sprintf("%s-%d", s.id[24:], s.turns)
	return told{"UserPromptSubmit", map[string]any{"prompt": "Go on."}, trace{kind: "turn_started", about: s.turn}}
}

// uses are the calls about one run of a tool.
func (s *session) uses() []told {
	s.tools++
	id := fmt.Sprintf("toolu_%s_%d", s.id[24:], s.tools)
	is := map[string]any{"tool_name": "Bash", "tool_use_id": id, "tool_input": map[string]any{"command": "make test", "description": "Run the tests"}}
	said := "ok\n"
	if rand.IntN(20) == 0 {
		said = strings.Repeat("a line that the tool printed\n", 20_000)
	}
	with := func(key string, value any) map[string]any {
		m := maps.Clone(is)
		m[key] = value
		return m
	}
	done := with("tool_response", map[string]any{"stdout": said, "stderr": "", "interrupted": false})
	return []told{
		{"PreToolUse", is, trace{kind: "tool_call_start", about: id}},
		{"PermissionRequest", map[string]any{"tool_name": "Bash", "tool_input": is["tool_input"]}, trace{}},
		{[]string{"PreToolUse", "PostToolUse", "SubagentStop"}[rand.IntN(3)], with("agent_id", "a700744eeca68b88f"), trace{}},
		{"PostToolUse", done, trace{kind: "tool_call_end", about: id}},
		{"PostToolBatch", map[string]any{"tool_calls": []any{done}}, trace{}},
	}
}

// stops ends a turn, unless the answer keeps it going.
func (s *session) stops(active bool) told {
	more := map[string]any{"stop_hook_active": active, "last_assistant_message": "Done.", "background_tasks": []any{}, "session_crons": []any{}}
	return told{"Stop", more, trace{kind: "turn_completed", about: strings.TrimSpace(s.turn + " completed")}}
}

// tool runs a tool: some ask before, and some are a sub-agent's.
func (s *session) tool() {
	for i, e := range s.uses() {
		if i != 1 && i != 2 || rand.IntN(6) == 0 {
			s.tell(e)
		}
	}
}

// live is a session from its beginning to its end, of some turns; a program that
// is killed says nothing at its end.
func (w *world) live() {
	s := w.newSession(one(hooked))
	s.mortal = true
	s.tell(s.starts("startup"))
	for range 1 + rand.IntN(4) {
		s.tell(s.prompts())
		for range rand.IntN(3) {
			s.tool()
		}
		if rand.IntN(8) == 0 {
			continue // interrupted: no hook says so
		}
		for active := false; s.tell(s.stops(active)) != "" && !w.isBroken(); active = true {
			if rand.IntN(2) == 0 {
				s.tool()
			}
		}
		switch rand.IntN(12) {
		case 0:
			s.tell(s.starts("compact"))
		case 1:
			s.tell(s.starts("resume"))
		}
	}
	if rand.IntN(4) > 0 {
		s.tell(s.ends("prompt_input_exit"))
	}
	w.add("sessions", 1)
}

// hook is the call of one event's hook.
func (s *session) hook(e told) call {
	return call{args: []string{"hook", "claude", "--as", s.agent}, text: s.stdin(e)}
}

// tell runs the hook of one event, or two at once where hooks are installed
// twice, and returns the text that the model gets.
func (s *session) tell(e told) (text string) {
	n := 1
	if s.mortal && rand.IntN(5) == 0 {
		n = 2
	}
	texts := make([]string, n)
	var both sync.WaitGroup
	for i := range n {
		both.Go(func() {
			c := s.hook(e)
			if s.mortal && rand.IntN(3) == 0 {
				// Mostly while it has something in its hands.
				c.kill = time.Millisecond + time.Duration(rand.IntN(20_000))*time.Microsecond
			}
			began := time.Now()
			texts[i] = s.answer(e, n, began, s.run(c))
		})
	}
	both.Wait()
	return strings.Join(texts, "")
}

// answer checks what a hook said, and notes it. A hook exits with 0 and prints
// nothing or one whole document, of its event; whatever went wrong.
func (s *session) answer(e told, calls int, began time.Time, r result) (text string) {
	s.add("hooks", 1)
	well := r.code == 0 && r.err == ""
	switch {
	case r.code == -1:
		s.add("killed", 1)
	case r.code != 0:
		s.wrong("a hook blocks: %s: %s", e.event, r)
	case r.err != "":
		s.add("hooks that failed open", 1)
		// On a busy machine only.
		if !strings.Contains(r.err, " is held") && !strings.Contains(r.err, "not a byte for ") && !s.failing && !s.isBroken() {
			s.wrong("a hook fails: %s: %s", e.event, r)
		}
	}
	text, err := answerText(e, r.out)
	if err != nil {
		s.wrong("a hook's answer to %s: %v: %s", e.event, err, r)
	}
	if leaves := e.leaves; leaves.kind != "" && e.more["agent_id"] == nil && !(e.event == "Stop" && text != "" && well) {
		leaves.agent, leaves.session = s.agent, s.id
		// Of two calls the one may have kept it from stopping.
		said := well && !(e.event == "Stop" && calls > 1)
		s.tried(leaves, said, leaves.about == "" || e.event == "Stop")
	}
	if text != "" {
		if err := s.handedOver(s.agent, text, began); err != nil {
			s.wrong("a hook's answer to %s: %v: %s", e.event, err, r)
		}
	}
	return text
}

// answerText is the text for the model in what a hook printed.
func answerText(e told, out string) (string, error) {
	if out == "" {
		return "", nil
	}
	if e.more["agent_id"] != nil {
		return "", fmt.Errorf("a sub-agent's call is answered")
	}
	var doc struct {
		Specific *struct {
			Event string  `json:"hookEventName"`
			Text  *string `json:"additionalContext"`
		} `json:"hookSpecificOutput"`
		Decision string `json:"decision"`
		Reason   string `json:"reason"`
	}
	in := json.NewDecoder(strings.NewReader(out))
	in.DisallowUnknownFields()
	if err := in.Decode(&doc); err != nil {
		return "", fmt.Errorf("it is no document: %v", err)
	}
	if _, err := in.Token(); err != io.EOF || !strings.HasSuffix(out, "}\n") {
		return "", fmt.Errorf("there is more than one document")
	}
	switch e.event {
	case "Stop":
		if e.more["stop_hook_active"] != false {
			return "", fmt.Errorf("it is kept from stopping twice")
		}
		if doc.Decision == "block" && doc.Specific == nil && doc.Reason != "" {
			return doc.Reason, nil
		}
	case "SessionStart", "UserPromptSubmit", "PostToolBatch":
		if s := doc.Specific; s != nil && s.Event == e.event && s.Text != nil && *s.Text != "" && doc.Decision == "" {
			return *s.Text, nil
		}
	}
	return "", fmt.Errorf("it is not an answer to it")
}
