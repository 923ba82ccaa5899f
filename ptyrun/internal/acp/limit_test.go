//go:build linux || darwin

package acp

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/wire"
)

// An agent that exits at once, or never says anything, opens no session.
func TestNoSession(t *testing.T) {
	r := start(t, Options{Command: []string{"sh", "-c", "echo no key >&2; exit 3"}})
	if exit := r.ends(); exit != (process.Exit{Code: 3}) {
		t.Errorf("it ended with %+v", exit)
	}
	if got := r.notes(); got != "no key\nthe agent exited with 3\n" || len(r.kinds()) > 0 {
		t.Errorf("the notes:\n%s\ntold: %v", got, r.kinds())
	}
	if r.Prompt("hello") != ErrNotReady {
		t.Error("it takes a prompt after its end")
	}
	r = start(t, Options{Command: []string{"sh", "-c", "while read x; do :; done"}})
	if r.Prompt("hello") != ErrNotReady || r.Answer("x", "1") != ErrGone {
		t.Error("it takes a prompt or an answer")
	}
	r.Interrupt()
	for answer, want := range map[string]string{
		`"result":{"protocolVersion":2}`:                 "it speaks version 2 of the protocol, atm speaks version 1",
		`"error":{"code":-32603,"message":"no licence"}`: "no licence",
	} {
		r = start(t, Options{Command: []string{"sh", "-c", `read x; echo '{"jsonrpc":"2.0","id":1,` + answer + `}'; read x; read x`}})
		if exit := r.ends(); exit != (process.Exit{Code: 1}) {
			t.Errorf("%s: it ended with %+v", want, exit)
		}
		if got := r.notes(); got != "cannot start a session with sh: "+want+"\n" {
			t.Errorf("the notes:\n%s", got)
		}
	}
	if _, err := Start(Options{Command: []string{"no-such-agent"}, Dir: t.TempDir()}); err == nil {
		t.Error("no-such-agent is started")
	}
}

// What an agent says right behind its answer that opens the session is not lost.
func TestFirstWords(t *testing.T) {
	r := script(t, `say "at once"; read x`).ready()
	r.sees("at once")
}

// An agent whose output or input has ended, or that writes a line without end, is ended.
func TestUselessAgent(t *testing.T) {
	for text, why := range map[string]string{
		`echo so; read x; exec >&-; trap : TERM; sleep 1000; sleep 1000`: "it closed its output",
		`exec <&-; echo so; sleep 1000`:                                  "it closed its input",
		`echo so; read x; trap '' TERM; exec tr '\0' x </dev/zero`:       "it wrote a message of over 64 MiB",
	} {
		r := script(t, text).ready()
		r.sees("not of the protocol: so")
		if err := r.Prompt("Go."); err != nil {
			t.Fatal(err)
		}
		r.ends()
		end := r.turnEnd()
		if s := end.Field("error"); end.Field("status") != "failed" || !strings.HasSuffix(s, ": "+why+", and atm ended it") {
			t.Errorf("%s: %s", text, end.Extra)
		}
		if isLong := strings.Contains(why, "64 MiB"); isLong != (len(r.logged("stream_error")) == 1) {
			t.Errorf("%s: told %v", why, r.kinds())
		}
	}
}

// Bytes that are no text, and lines that are no messages, do no harm.
func TestOddOutput(t *testing.T) {
	r := script(t, `echo; echo hello; echo '{"jsonrpc":"2.0","id":77,"result":{}}'; echo '[1]'; echo '{"id":{},"method":"x"}' ; echo '{"method":5}'; read x
		read x; printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\377\\u001b[2J\\u202e\\r"}}}}\n'
		finish 3; read x`).ready()
	if end := r.asks("Go."); end.Field("response") != "\ufffd\x1b[2J\u202e\r" {
		t.Errorf("the response is %q", end.Field("response"))
	}
	if got := r.notes(); !strings.Contains(got, "not of the protocol: hello\n") {
		t.Errorf("the notes:\n%s", got)
	}
}

// A flood on stderr is counted, and a line of it without end costs nothing.
func TestStderrFlood(t *testing.T) {
	began := time.Now()
	r := script(t, `seq 2 >&2; until [ -e go ]; do sleep 0.01; done; seq 300000 >&2; head -c 50000000 /dev/zero >&2; echo >&2; printf 'last\033[2J' >&2`)
	r.sees("1\n2\n")
	touch(t, r.Dir+"/go")
	r.ends()
	got := r.notes()
	lines := strings.Split(got, "\n")
	most := 101 * (2 + int(time.Since(began).Seconds())) // a hundred a second, and how many more
	if !strings.Contains(got, " more lines on stderr\n") || len(lines) > most {
		t.Errorf("%d lines:\n%.5000s", len(lines), got)
	}
	if !strings.Contains(got, "\nlast\x1b[2J\nthe agent exited with 0") {
		t.Errorf("the end:\n%s", got[max(0, len(got)-300):])
	}
}

// A flood of updates loses no word, makes the agent wait while nobody receives, and leaves its place in the order.
func TestFlood(t *testing.T) {
	r := script(t, `read x
		seq 2000 | sed 's/.*/{"jsonrpc":"2.0","method":"_agent\/note"}/'
		seq 2000 | sed 's/.*/{"jsonrpc":"2.0","method":"session\/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"word &\\n"}}}}/'
		finish 3; read x
		yes '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"plan","entries":[]}}}'`).ready()
	end := r.asks("Go.")
	if s := end.Field("response"); strings.Count(s, "word ") != 2000 || !strings.HasSuffix(s, "\nword 2000\n") {
		t.Errorf("the response has %d bytes and ends with %q", len(s), s[max(0, len(s)-20):])
	}
	deltas := ""
	for _, e := range r.logged("message_delta") {
		deltas += e.Field("delta")
	}
	if deltas != end.Field("response") {
		t.Errorf("the deltas have %d bytes", len(deltas))
	}
	// The receiver stops.
	r.mu.Lock()
	r.prompts("Go on.")
	waits := func() bool {
		r.Agent.mu.Lock()
		defer r.Agent.mu.Unlock()
		return r.isFull()
	}
	for until := time.Now().Add(5 * time.Minute); !waits() && time.Now().Before(until); time.Sleep(time.Millisecond) {
	}
	isFull := waits()
	before := r.size()
	for range 100 {
		runtime.Gosched()
	}
	if after := r.size(); !isFull || after > before+100<<10 {
		t.Errorf("it has %d bytes in the queue, then %d", before, after)
	}
	r.mu.Unlock()
}

func (a *Agent) size() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.unreceived
}

// After an interrupt a question of that turn gets no answer, and a rude agent gets no more requests than it may have.
func TestLateRequests(t *testing.T) {
	ask := `ask() { echo '{"jsonrpc":"2.0","id":'$1',"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"c'$1'","title":"'"$2"'"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]}}'; }
	`
	r := script(t, ask+`read x; say working; read x; ask 7 Late; read x; say "$x"; finish 3
		read x; ask 1 One; ask 2 Two; ask 3 Three; echo '{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":2}}'
		read x; read y; read z; say "$x $y $z"; finish 4; read x`).ready()
	r.prompts("Go.")
	r.says("working")
	r.Interrupt()
	if end := r.turnEnd(); end.Field("status") != "cancelled" || !strings.Contains(end.Field("response"), `cancelled`) || strings.Contains(strings.Join(r.kinds(), "|"), "asked") {
		t.Errorf("%s: told %v", end.Extra, r.kinds())
	}
	r.prompts("Go on.")
	open := func() (titles []string) {
		r.Agent.mu.Lock()
		defer r.Agent.mu.Unlock()
		for _, q := range r.open {
			titles = append(titles, q.Prompt)
		}
		return titles
	}
	r.awaits("the second to be withdrawn", func() bool { return slices.Equal(open(), []string{"One", "Three"}) })
	for i, title := range []string{"One", "Two", "Three"} {
		q := r.asked(i + 1)
		if err := r.Answer(q.ID, "1"); q.Prompt != title || (err == ErrGone) != (title == "Two") {
			t.Errorf("asked: %+v, %v", q, err)
		}
	}
	end := r.turnEnd()
	if s := end.Field("response"); strings.Count(s, "selected") != 2 || strings.Count(s, "cancelled") != 1 {
		t.Errorf("the response is %q", s)
	}

	r = script(t, `read x; for i in $(seq 2000); do echo '{"jsonrpc":"2.0","id":'$i',"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"c","title":"Really?"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]}}'; done
		for i in $(seq 1000); do read x; done; say "$x"; while read -r x; do case $x in *session/cancel*) finish 3 ;; esac; done`).ready()
	r.prompts("Go.")
	r.asked(1)
	r.says("too many requests")
	r.Interrupt()
	r.turnEnd()
	r.awaits("no question", func() bool { return strings.HasSuffix(strings.Join(r.kinds(), "|"), wire.TurnIdle) })
}

// A question that is larger than a megabyte is not asked, and an input of that size meets no rule.
func TestLargeQuestion(t *testing.T) {
	r := script(t, `read x
		printf '{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"c","kind":"read","title":"read x","rawInput":{"command":"'; head -c 2000000 /dev/zero | tr '\0' x
		echo '"}},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]}}'; read x
		printf '{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"d","title":"'; head -c 2000000 /dev/zero | tr '\0' x
		echo '"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]}}'; read x; say "$x"; finish 3; read x`).ready()
	r.prompts("Go.")
	q := r.asked(1)
	if q.Tool != "" || q.Rule != policy.Ask || !q.Cut || q.Prompt != "read x" {
		t.Errorf("asked: %.200s", fmt.Sprintf("%+v", q))
	}
	r.Answer(q.ID, "1")
	if end := r.turnEnd(); !strings.Contains(end.Field("response"), "cancelled") || len(r.logged("stream_error")) != 1 {
		t.Errorf("%s", end.Extra)
	}
}
