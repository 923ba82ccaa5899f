//go:build linux || darwin

package acp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/filestore"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/testagent"
	"github.com/agentteammail/atm/internal/testprogram"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

func TestMain(m *testing.M) {
	if err := process.Subreaper(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	testprogram.Main(m)
}

// rig is an agent with an owner that keeps what is told, and answers as people choose.
type rig struct {
	*Agent
	t     *testing.T
	over  chan struct{}
	turns int // whose end was awaited

	mu   sync.Mutex
	told []Event
}

func start(t *testing.T, o Options) *rig {
	t.Helper()
	o.Dir = t.TempDir()
	if o.Command == nil {
		argv, env, err := testagent.Command(testagent.Options{})
		if err != nil {
			t.Fatal(err)
		}
		o.Command, o.Env = append(argv, "acp"), append(append(os.Environ(), env...), o.Env...)
	} else {
		o.Env = append(os.Environ(), o.Env...)
	}
	o.Env = append(o.Env, fmt.Sprintf("ATM_RUN=%s-%d-%d", t.Name(), os.Getpid(), time.Now().UnixNano()))
	o.Run = "run-1"
	a, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{Agent: a, t: t, over: make(chan struct{})}
	go r.own()
	t.Cleanup(func() {
		if _, err := a.Stop(context.Background(), time.Second); err != nil {
			t.Error(err)
		}
		<-r.over
	})
	return r
}

// script starts an agent that is a shell script, with what begins a session in front of it.
func script(t *testing.T, text string) *rig {
	return start(t, Options{Command: []string{"sh", "-c", begin + text}})
}

const begin = `
say() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}}}\n' "$(printf %s. "$1" | tr -d '"' | sed 's/.$//')"; }
finish() { echo '{"jsonrpc":"2.0","id":'$1',"result":{"stopReason":"end_turn"}}'; }
read x; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{}}}'
read x; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s1"}}'
`

func (r *rig) own() {
	defer close(r.over)
	for e := range r.Events() {
		r.mu.Lock()
		r.told = append(r.told, e)
		r.mu.Unlock()
	}
}

// awaits waits until something is so.
func (r *rig) awaits(what string, isSo func() bool) {
	r.t.Helper()
	for until := time.Now().Add(time.Minute); !isSo(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(until) {
			r.t.Fatalf("waited in vain for %s; the notes:\n%s\nthe log:\n%s", what, r.notes(), strings.Join(r.kinds(), "\n"))
		}
	}
}

func (r *rig) ready() *rig {
	r.t.Helper()
	r.awaits("the session", func() bool { return r.IsIdle() && len(r.logged("session_start")) > 0 })
	return r
}

func (r *rig) ends() process.Exit {
	r.t.Helper()
	r.awaits("the end", func() bool { return isClosed(r.over) })
	<-r.Done()
	return r.Exit()
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// asks gives the agent a prompt and returns the end of its turn.
func (r *rig) asks(text string) *wire.Event {
	r.t.Helper()
	r.prompts(text)
	return r.turnEnd()
}

func (r *rig) prompts(text string) {
	r.t.Helper()
	if err := r.Prompt(text); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) turnEnd() *wire.Event {
	r.t.Helper()
	r.awaits("the end of the turn", func() bool { return len(r.logged(wire.TurnIdle)) > r.turns })
	r.turns++
	return &r.logged(wire.TurnCompleted)[r.turns-1]
}

func (r *rig) events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.told)
}

func (r *rig) logged(kind string) (found []wire.Event) {
	for _, e := range r.events() {
		if e.Log != nil && e.Log.Kind == kind {
			found = append(found, *e.Log)
		}
	}
	return found
}

// kinds says what was told, a line for each event.
func (r *rig) kinds() (lines []string) {
	for _, e := range r.events() {
		switch {
		case e.Log != nil && e.Log.Kind == "state_change":
			lines = append(lines, e.Log.Field("previous")+" → "+e.Log.Field("new"))
		case e.Log != nil:
			lines = append(lines, e.Log.Kind)
		case e.Asked != nil:
			lines = append(lines, "asked "+e.Asked.Prompt)
		case e.Closed != nil:
			lines = append(lines, "closed")
		}
	}
	return lines
}

// notes are what was told for people alone, each note a line.
func (r *rig) notes() (text string) {
	for _, e := range r.events() {
		if text += e.Said; e.Note != "" {
			text += e.Note + "\n"
		}
	}
	return text
}

func (r *rig) sees(text string) {
	r.t.Helper()
	r.awaits(fmt.Sprintf("%q in the notes", text), func() bool { return strings.Contains(r.notes(), text) })
}

// says waits for words of the agent in the log.
func (r *rig) says(text string) {
	r.t.Helper()
	r.awaits(fmt.Sprintf("%q in the log", text), func() bool {
		said := ""
		for _, e := range r.logged("message_delta") {
			said += e.Field("delta")
		}
		return strings.Contains(said, text)
	})
}

// asked waits for the nth question.
func (r *rig) asked(n int) (q *Question) {
	r.t.Helper()
	r.awaits("a question", func() bool {
		i := 0
		for _, e := range r.events() {
			if e.Asked != nil {
				if i++; i == n {
					q = e.Asked
				}
			}
		}
		return q != nil
	})
	return q
}

// A prompt is a turn, whose events are told in order.
func TestTurn(t *testing.T) {
	r := start(t, Options{Session: map[string]any{"metadata": map[string]any{"ticket": 7}, "model_preferences": map[string]any{"model_id": "large"}}}).ready()
	end := r.asks("ABOUT")
	if s := end.Field("response"); !strings.HasPrefix(s, "[[ABOUT]]\nABOUT: map[model_preferences:map[model_id:large] ticket:7] in ") || !strings.Contains(s, "model large") {
		t.Errorf("the response is %q", s)
	}
	if end.Field("status") != "completed" || end.Field("stop_reason") != "end_turn" || end.TurnID == "" || end.Source != "acp" ||
		end.Field("transport") != "acp" || end.Field("thread_id") != end.Session || end.Session == "" {
		t.Errorf("the end is %+v", end)
	}
	want := "session_start|starting → idle|turn_started|idle → thinking|thinking → responding|message_delta|turn_completed|responding → idle|turn_idle"
	if got := strings.Join(slices.Compact(r.kinds()), "|"); got != want { // a slow agent's words take several events
		t.Errorf("told:\n%s\nnot\n%s", got, want)
	}
	if e := r.logged("session_start")[0]; !strings.Contains(string(e.Wire), `"source":"startup"`) || e.Field("run") != "run-1" {
		t.Errorf("the session: %s", e.Wire)
	}
}

// Words are logged as they come, not at the end of a line.
func TestWordsStream(t *testing.T) {
	r := script(t, `read x; say "one "; until [ -e go ]; do sleep 0.01; done; say 'two\nthree'; finish 3; read x`).ready()
	r.prompts("Go.")
	r.says("one ")
	touch(t, r.Dir+"/go")
	if end := r.turnEnd(); end.Field("response") != "one two\nthree" {
		t.Errorf("the response is %q", end.Field("response"))
	}
}

func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Attachments go with the prompt, embedded if the agent takes that.
func TestAttachments(t *testing.T) {
	dir, err := durable.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	store := maildir.NewStore(dir, "main")
	var attached []wire.Attachment
	for name, content := range map[string]string{"note.txt": "two lines", "image.png": "\x89PNG\r\n\x1a\n0000", "data.bin": "\x00\x01"} {
		a, err := filestore.Add(store.Dir(), name, strings.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		attached = append(attached, a)
	}
	r := start(t, Options{Team: dir.Path()}).ready()
	if err := r.Prompt("These.", attached...); err != nil {
		t.Fatal(err)
	}
	s := r.turnEnd().Field("response")
	for _, want := range []string{" note.txt text two lines", " image image/png", " link data.bin"} {
		if !strings.Contains(s, want) {
			t.Errorf("no %q in %q", want, s)
		}
	}
}

// A question is told whole. Its owner answers it, once, from the goroutine that receives the events too.
func TestQuestion(t *testing.T) {
	r := start(t, Options{}).ready()
	long := strings.Repeat("x", 40<<10)
	r.prompts("CONFIRM [git push " + long + "]")
	q := r.asked(1)
	if q.Dialog != "permission" || q.Tool != "execute" || q.Prompt != "git push "+long || q.Input != "" || q.Call != "call-0" || q.Then != reducer.Thinking {
		t.Errorf("asked: %.300s", fmt.Sprintf("%+v", q))
	}
	if o := q.Options; len(o) != 4 || o[0].ID != "1" || o[0].Label != "Always" || o[0].Kind != "allow_always" || o[3].Kind != "reject_once" || o[3].ID != "4" {
		t.Errorf("options: %+v", o)
	}
	if r.Activity() != reducer.Confirming || r.IsIdle() || r.Prompt("more") != ErrBusy {
		t.Errorf("it is %s", r.Activity())
	}
	if err := r.Answer(q.ID, "5"); err == nil || errors.Is(err, ErrGone) {
		t.Errorf("an option that is not there: %v", err)
	}
	if err := r.Answer(q.ID, "2"); err != nil {
		t.Error(err)
	}
	if err := r.Answer(q.ID, "2"); err != ErrGone {
		t.Errorf("answered twice: %v", err)
	}
	if s := r.turnEnd().Field("response"); !strings.HasSuffix(s, "CONFIRM: once") {
		t.Errorf("the response ends with %.50q", s)
	}
	want := "tool_call_start|responding → tool_running|asked |tool_call_end|"
	if got := strings.ReplaceAll(strings.Join(r.kinds(), "|"), "git push "+long, ""); !strings.Contains(got, want) {
		t.Errorf("told:\n%s\nnot\n%s", got, want)
	}
}

// An interrupt withdraws the question and cancels the turn.
func TestInterrupt(t *testing.T) {
	r := start(t, Options{}).ready()
	for i, prompt := range []string{"SLOW", "CONFIRM [ls]"} {
		r.prompts(prompt)
		if i == 1 {
			r.asked(1)
		}
		r.awaits("work", func() bool { return r.Activity() != reducer.Thinking })
		r.Interrupt()
		if end := r.turnEnd(); end.Field("status") != "cancelled" {
			t.Errorf("%s: %s", prompt, end.Extra)
		}
	}
	if got := strings.Join(r.kinds(), "|"); !strings.Contains(got, "|asked ls|closed|turn_completed|thinking → idle|") {
		t.Errorf("told: %s", got)
	}
	r.Interrupt()
	if end := r.asks("ABOUT"); end.Field("status") != "completed" {
		t.Errorf("the turn after an interrupt without a turn: %s", end.Extra)
	}
}

// The agent gets a prompt before the interrupt that follows it at once.
func TestInterruptAtOnce(t *testing.T) {
	r := script(t, `id=3; while read -r x; do case $x in
		*session/prompt*) prompt=1 ;;
		*session/cancel*) test "$prompt" && echo '{"jsonrpc":"2.0","id":'$id',"result":{"stopReason":"cancelled"}}'; id=$((id+1)); prompt= ;;
	esac; done`).ready()
	for range 50 {
		r.prompts("Go.")
		r.Interrupt()
		if end := r.turnEnd(); end.Field("status") != "cancelled" {
			t.Errorf("%s", end.Extra)
		}
	}
}

// An agent uses its own tools: it is offered no files and no terminals, and the requests for them are no methods here.
func TestOffersNoTools(t *testing.T) {
	ask := strings.Replace(begin, "read x;", "read -r hello;", 1) + `read -r prompt; say "$hello"; n=10
		for method in fs/read_text_file fs/write_text_file terminal/create terminal/output; do
			n=$((n+1)); echo '{"jsonrpc":"2.0","id":'$n',"method":"'$method'","params":{"sessionId":"s1","path":"'$PWD'/f","content":"x","command":"touch f"}}'
			read -r answer; say "$answer"
		done; finish 3; read x`
	r := start(t, Options{Command: []string{"sh", "-c", ask}}).ready()
	said := r.asks("Go.").Field("response")
	if !strings.Contains(said, "clientCapabilities") || strings.Contains(said, "true") || strings.Count(said, "code:-32601,") != 4 {
		t.Errorf("it was told %s", said)
	}
	if _, err := os.Stat(r.Dir + "/f"); err == nil {
		t.Error("a file was made for it")
	}
}

// What the agent has started ends with it, and so does its turn.
func TestStop(t *testing.T) {
	r := script(t, `read x; sleep 1000 & say started; read x`).ready()
	r.prompts("Go.")
	r.says("started")
	if _, err := r.Stop(t.Context(), time.Second); err != nil {
		t.Error(err)
	}
	mark := strings.TrimPrefix(r.Env[len(r.Env)-1], "ATM_RUN=")
	if left, err := process.Leftovers(mark); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if end := r.turnEnd(); end.Field("status") != "failed" || end.Field("error") != "the agent exited with 143" {
		t.Errorf("the end: %s", end.Extra)
	}
}

// A session is continued if the agent can, and what it replays is not logged.
func TestLoad(t *testing.T) {
	memory := filepath.Join(t.TempDir(), "memory")
	r := start(t, Options{Env: []string{"ACP_MEMORY=" + memory}}).ready()
	r.asks("hello")
	r.Stop(t.Context(), time.Second)
	r = start(t, Options{Env: []string{"ACP_MEMORY=" + memory}, Load: "sess-1"}).ready()
	if end := r.asks("ABOUT"); end.Session != "sess-1" || !strings.Contains(end.Field("response"), "loaded hello") || strings.Contains(end.Field("response"), "replayed") {
		t.Errorf("loaded: %+v", end)
	}
	if e := r.logged("session_start")[0]; !strings.Contains(string(e.Wire), `"source":"resume"`) {
		t.Errorf("the session: %s", e.Wire)
	}
	r = start(t, Options{Load: "sess-1"}).ready()
	if e := r.logged("session_start")[0]; !strings.Contains(string(e.Wire), `"source":"startup"`) || e.Session == "sess-1" {
		t.Errorf("without a memory: %s", e.Wire)
	}
}

// Signing in is a question if there are several methods.
func TestSignIn(t *testing.T) {
	r := start(t, Options{Env: []string{"ACP_AUTH=google key"}})
	q := r.asked(1)
	if q.Dialog != "question" || !strings.HasSuffix(q.Prompt, " wants you to sign in. How?") || len(q.Options) != 2 || q.Then != reducer.Starting {
		t.Errorf("asked: %+v", q)
	}
	if r.Prompt("hello") != ErrNotReady {
		t.Error("it takes a prompt")
	}
	r.Answer(q.ID, "2")
	if s := r.ready().asks("ABOUT").Field("response"); !strings.Contains(s, " by key") {
		t.Errorf("signed in: %q", s)
	}
	r = start(t, Options{Env: []string{"ACP_AUTH=google key"}})
	r.asked(1)
	r.Interrupt()
	if exit := r.ends(); exit != (process.Exit{Code: 1}) {
		t.Errorf("not signed in: %+v", exit)
	}
	if !strings.Contains(r.notes(), ": it wants you to sign in") {
		t.Errorf("the notes:\n%s", r.notes())
	}
	r = start(t, Options{Env: []string{"ACP_AUTH=google key"}})
	r.asked(1)
	r.Stop(t.Context(), time.Second)
	r.ends()
}
