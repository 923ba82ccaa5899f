//go:build unix

package crashtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agentteammail/atm/internal/testround"
)

// A session is one of Claude Code, as far as its hooks tell: what it would say at each of them, in
// the fields that it was seen to send.
type session struct {
	*world
	agent  string
	id     string
	turn   string // prompt_id
	turns  int
	tools  int
	mortal bool // its hooks are killed, or installed twice
}

func (w *world) newSession(agent string) *session {
	return &session{world: w, agent: agent, id: newID(0)}
}

// working is a session of bob's in a turn, with mail that came since.
func (w *world) working(letters int) *session {
	s := w.newSession("bob")
	s.tell(s.prompts())
	for range letters {
		w.mail("bob")
	}
	return s
}

// A hookCall is one event of the program's, and what the log has of it then.
type hookCall struct {
	event  string
	more   map[string]any
	leaves hookEvent
}

func (h *hookCall) isSubAgents() bool { return h.more["agent_id"] != nil }

// call is what the program runs, and writes to it.
func (s *session) call(h hookCall) call {
	doc := map[string]any{
		"session_id": s.id, "transcript_path": "/home/dev/.claude/projects/-repo/" + s.id + ".jsonl",
		"cwd": "/repo", "hook_event_name": h.event,
	}
	if s.turn != "" {
		doc["prompt_id"], doc["permission_mode"] = s.turn, "default"
	}
	maps.Copy(doc, h.more)
	b, _ := json.Marshal(doc)
	return call{args: []string{"hook", "claude", "--as", s.agent}, stdin: string(b)}
}

// starts is the beginning; source is startup, resume or compact.
func (s *session) starts(source string) hookCall {
	return hookCall{"SessionStart", map[string]any{"source": source, "model": "claude-opus-4-8[1m]"}, hookEvent{kind: "session_start"}}
}

func (s *session) ends(reason string) hookCall {
	return hookCall{"SessionEnd", map[string]any{"reason": reason}, hookEvent{kind: "session_end"}}
}

// prompts begins a turn.
func (s *session) prompts() hookCall {
	s.turns++
	s.turn = fmt.Sprintf("%s-%d", s.id[24:], s.turns)
	return hookCall{"UserPromptSubmit", map[string]any{"prompt": "Go on."}, hookEvent{kind: "turn_started", about: s.turn}}
}

// uses are the calls about one run of a tool; the second and third are not made each time.
func (s *session) uses() []hookCall {
	s.tools++
	id := fmt.Sprintf("toolu_%s_%d", s.id[24:], s.tools)
	input := map[string]any{"command": "make test", "description": "Run the tests"}
	fields := func(more ...any) map[string]any {
		m := map[string]any{"tool_name": "Bash", "tool_use_id": id, "tool_input": input}
		for i := 0; i < len(more); i += 2 {
			m[more[i].(string)] = more[i+1]
		}
		return m
	}
	said := "ok\n"
	if testround.Rand.IntN(20) == 0 {
		said = strings.Repeat("a line that the tool printed\n", 20_000)
	}
	done := fields("tool_response", map[string]any{"stdout": said, "stderr": "", "interrupted": false})
	return []hookCall{
		{"PreToolUse", fields(), hookEvent{kind: "tool_call_start", about: id}},
		{"PermissionRequest", map[string]any{"tool_name": "Bash", "tool_input": input}, hookEvent{}},
		{one("PreToolUse", "PostToolUse", "SubagentStop"), fields("agent_id", "a700744eeca68b88f"), hookEvent{}},
		{"PostToolUse", done, hookEvent{kind: "tool_call_end", about: id}},
		{"PostToolBatch", map[string]any{"tool_calls": []any{done}}, hookEvent{}},
	}
}

// stops ends a turn, unless the answer keeps it going.
func (s *session) stops(active bool) hookCall {
	more := map[string]any{"stop_hook_active": active, "last_assistant_message": "Done.", "background_tasks": []any{}, "session_crons": []any{}}
	return hookCall{"Stop", more, hookEvent{kind: "turn_completed", about: strings.TrimSpace(s.turn + " completed")}}
}

// useTool runs a tool: some ask before, and some are a sub-agent's.
func (s *session) useTool() {
	for i, h := range s.uses() {
		if i != 1 && i != 2 || testround.Rand.IntN(6) == 0 {
			s.tell(h)
		}
	}
}

// live is a session from its beginning to its end, of some turns; a program that is killed says
// nothing at its end.
func (w *world) live() {
	s := w.newSession(one(readers...))
	s.mortal = true
	s.tell(s.starts("startup"))
	for range 1 + testround.Rand.IntN(4) {
		s.tell(s.prompts())
		for range testround.Rand.IntN(3) {
			s.useTool()
		}
		if testround.Rand.IntN(8) == 0 {
			continue // interrupted: no hook says so
		}
		for active := false; s.tell(s.stops(active)) != "" && !w.isBroken(); active = true {
			if testround.Rand.IntN(2) == 0 {
				s.useTool()
			}
		}
		if testround.Rand.IntN(6) == 0 {
			s.tell(s.starts(one("compact", "resume")))
		}
	}
	if testround.Rand.IntN(4) > 0 {
		s.tell(s.ends("prompt_input_exit"))
	}
	w.add("sessions", 1)
}

// tell runs the hook of one event, or two at once where hooks are installed twice, and returns the
// text that the model gets.
func (s *session) tell(h hookCall) (text string) {
	n := 1
	if s.mortal && testround.Rand.IntN(5) == 0 {
		n = 2
	}
	texts := make([]string, n)
	var both sync.WaitGroup
	for i := range n {
		both.Go(func() {
			c := s.call(h)
			if s.mortal && testround.Rand.IntN(3) == 0 { // mostly while it handles mail
				c.kill = time.Millisecond + time.Duration(testround.Rand.IntN(20_000))*time.Microsecond
			}
			began := time.Now()
			texts[i] = s.answer(h, n, began, s.run(c))
		})
	}
	both.Wait()
	return strings.Join(texts, "")
}

// calling is an action that is one call of a hook. Again it is the call of a hook that is installed
// twice.
func (s *session) calling(h hookCall) action {
	calls := 0
	return action{
		call: s.call(h),
		note: func(r result) {
			calls++
			s.answer(h, calls, time.Now(), r)
		},
		after: func() {
			if h.event != "SessionEnd" {
				s.tell(s.uses()[0]) // the program goes on
			}
			s.handOut(s.agent, testround.Rand.IntN(2) == 0)
		},
	}
}

// answer checks what a hook said, and records it. A hook exits with 0 and prints nothing or one
// whole document, of its event; whatever went wrong.
func (s *session) answer(h hookCall, calls int, began time.Time, r result) (text string) {
	s.add("hooks", 1)
	well := r.code == 0 && r.err == ""
	if r.code > 0 {
		s.wrong("a hook blocks: %s: %s", h.event, r)
	}
	if r.code == 0 && r.err != "" {
		s.add("hooks that failed open", 1)
		// On a busy machine only.
		if !strings.Contains(r.err, " is held") && !strings.Contains(r.err, "not a byte for ") && !s.isBroken() {
			s.wrong("a hook fails: %s: %s", h.event, r)
		}
	}
	text, err := answerText(h, r.out)
	if leaves := h.leaves; leaves.kind != "" && !h.isSubAgents() && !(h.event == "Stop" && text != "" && well) {
		leaves.agent, leaves.session = s.agent, s.id
		// Of two calls the one may have kept it from stopping.
		said := well && !(h.event == "Stop" && calls > 1)
		s.calledHook(leaves, said, leaves.about == "" || h.event == "Stop")
	}
	if err == nil && text != "" {
		err = s.handedOver(s.agent, text, began)
	}
	if err != nil {
		s.wrong("a hook's answer to %s: %v: %s", h.event, err, r)
	}
	return text
}

// answerText is the text for the model in what a hook printed.
func answerText(h hookCall, out string) (string, error) {
	if out == "" {
		return "", nil
	}
	if h.isSubAgents() {
		return "", fmt.Errorf("a sub-agent's call is answered")
	}
	var doc struct {
		Specific struct {
			Event string `json:"hookEventName"`
			Text  string `json:"additionalContext"`
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
	switch h.event {
	case "Stop":
		if h.more["stop_hook_active"] != false {
			return "", fmt.Errorf("it is kept from stopping twice")
		}
		if doc.Decision == "block" && doc.Specific.Event == "" && doc.Reason != "" {
			return doc.Reason, nil
		}
	case "SessionStart", "UserPromptSubmit", "PostToolBatch":
		if doc.Specific.Event == h.event && doc.Specific.Text != "" && doc.Decision == "" {
			return doc.Specific.Text, nil
		}
	}
	return "", fmt.Errorf("it is not an answer to it")
}

var (
	letterHead = regexp.MustCompile(`(?m)^\[atm [0-9a-f]{6,32} from [^ ,]+, .*$`)
	newMail    = regexp.MustCompile(`(?m)^\[atm\] ([0-9]+) new messages? for [a-z]+( \(([0-9]+) may be a repeat: [^)]*\))?; mail from a teammate: `)
)

// handedOver records the mail in a text that a hook put before the model, and compares it with what
// the text says of it. began is when the hook was started.
func (r *record) handedOver(me, text string, began time.Time) error {
	heads := letterHead.FindAllStringIndex(text, -1)
	marked := 0
	for i, head := range heads {
		end := len(text)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		repeat := strings.Contains(text[head[0]:head[1]], ", may be a repeat")
		if repeat {
			marked++
		}
		tokens, _ := shown(text[head[0]:end])
		r.handOver(me, tokens, repeat, began)
	}
	said, saidMarked := "0", "0"
	if m := newMail.FindStringSubmatch(text); m != nil {
		said, saidMarked = m[1], cmp.Or(m[3], "0")
	}
	if said != fmt.Sprint(len(heads)) || saidMarked != fmt.Sprint(marked) {
		return fmt.Errorf("it says %s messages, %s of them marked, and has %d and %d", said, saidMarked, len(heads), marked)
	}
	tokens, begun := shown(text)
	r.saw(me, tokens, begun, time.Time{})
	return nil
}

func (r *record) handOver(me string, tokens []token, repeat bool, began time.Time) {
	defer r.locked()()
	for _, t := range tokens {
		it := r.items[key{me, t}]
		switch {
		case it == nil: // which saw complains of
			continue
		case repeat:
			it.marked++
			r.count["handed over again"]++
		default:
			it.plain++
			r.count["handed over"]++
		}
		if !it.read.IsZero() && began.After(it.read) && !r.isPutBack(me) {
			r.wrongs = append(r.wrongs, fmt.Sprintf("handed over after it was read: %s of %s", t, me))
		}
	}
}

// A claim as it lies on disk: who has which unread messages, by the name of a directory.
type claim struct {
	Dir   string
	Owner string // runner:<run>, session:<id> or lease:<agent>
	IDs   []string
	Times int
	Until time.Time // zero in a runner's
}

// stamp is how a time stands in the name.
const stamp = "20060102T150405.000"

// claims are what an agent's messages are claimed for.
func (w *world) claims(agent string) (all []claim) {
	held := filepath.Join(w.team(), agent, "inbox", "held")
	dirs, _ := os.ReadDir(held)
	for _, d := range dirs {
		part := strings.Split(d.Name(), ",")
		if len(part) != 6 {
			w.wrong("no holder of %s's mail: %s", agent, d.Name())
			continue
		}
		c := claim{Dir: filepath.Join(held, d.Name()), Owner: part[0] + ":" + part[5]}
		c.Times, _ = strconv.Atoi(part[1])
		c.Until, _ = time.Parse(stamp, part[3])
		files, _ := os.ReadDir(c.Dir)
		for _, f := range files {
			c.IDs = append(c.IDs, strings.TrimSuffix(f.Name(), ".json"))
		}
		if len(c.IDs) > 0 { // an empty one may be left by a kill
			all = append(all, c)
		}
	}
	return all
}

// ageClaims makes the claims of an agent so old that they count no more.
func (w *world) ageClaims(agent string) {
	for _, c := range w.claims(agent) {
		part := strings.Split(filepath.Base(c.Dir), ",")
		for i := 2; i <= 3; i++ {
			if at, err := time.Parse(stamp, part[i]); err == nil {
				part[i] = at.Add(-11 * time.Minute).Format(stamp)
			}
		}
		w.want(os.Rename(c.Dir, filepath.Join(filepath.Dir(c.Dir), strings.Join(part, ","))))
	}
}

// handOut has hooks hand over all that they may, to a session that goes on; the rest is read. Then
// nothing is unread, and nothing claimed. Nobody else may be at work.
func (w *world) handOut(agent string, aged bool) {
	w.t.Helper()
	if aged {
		w.ageClaims(agent)
	} else {
		for _, c := range w.claims(agent) {
			s := w.newSession(agent)
			s.id = strings.TrimPrefix(c.Owner, "session:")
			s.tell(s.ends("other"))
		}
	}
	s := w.newSession(agent)
	text := s.tell(s.starts("startup"))
	for n := 0; newMail.MatchString(text); n++ {
		if n > 2000 {
			w.wrong("the hooks of %s hand mail over for ever", agent)
			return
		}
		text = s.tell(s.prompts())
	}
	// What is left was handed over twice.
	left, twice := 0, 0
	fmt.Sscan(w.must("ls", "--count", "--as", agent).out, &left)
	for _, c := range w.claims(agent) {
		if c.Times > 1 {
			twice += len(c.IDs)
		}
	}
	if left > twice {
		w.wrong("%d messages of %s are unread, of which %d were handed over twice", left, agent, twice)
	}
	w.add("left for atm read", left)
	w.readAll(agent)
	s.useTool()
	s.tell(s.stops(false))
	s.tell(s.ends("other"))
	for _, c := range w.claims(agent) {
		if c.Until.After(time.Now()) {
			w.breach("claims left", "of %s: %+v", agent, c)
		}
	}
}
