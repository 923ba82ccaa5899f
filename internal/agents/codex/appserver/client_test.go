package appserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/internal/delivery/waytest"
	"github.com/agentteammail/atm/internal/testtree"
)

// A fakeServer answers requests by method with what results has, as JSON, and notes what it was asked.
type fakeServer struct {
	t       *testing.T
	socket  string
	results sync.Map // of strings: an answer's result, or with a "!" in front its error
	asked   chan string
	conns   chan *websocket.Conn
	answers chan string // what a test of answers has sorted out of asked
}

func newServer(t *testing.T) *fakeServer {
	t.Helper()
	s := &fakeServer{t: t, asked: make(chan string, 100), conns: make(chan *websocket.Conn, 10), answers: make(chan string, 10)}
	s.results.Store("initialize", "{}")
	s.socket = waytest.Serve(t, waytest.Messages(s.take))
	return s
}

func (s *fakeServer) take(conn *websocket.Conn, data []byte) (goesOn bool) {
	s.asked <- string(data)
	var m message
	json.Unmarshal(data, &m)
	if m.Method == "initialize" {
		s.conns <- conn
	}
	stored, isKnown := s.results.Load(m.Method)
	if !isKnown {
		return true
	}
	result := stored.(string)
	answer := fmt.Sprintf(`{"id":%s,"result":%s}`, m.ID, result)
	if problem, ok := strings.CutPrefix(result, "!"); ok {
		answer = fmt.Sprintf(`{"id":%s,"error":%s}`, m.ID, problem)
	}
	s.send(conn, answer)
	return true
}

func (s *fakeServer) send(conn *websocket.Conn, text string) {
	if err := conn.Write(context.Background(), websocket.MessageText, []byte(text)); err != nil {
		s.t.Log("send:", err)
	}
}

func (s *fakeServer) dial() (*Client, *websocket.Conn) {
	s.t.Helper()
	c, err := Dial(s.t.Context(), s.socket)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	<-s.asked // initialize
	<-s.asked // initialized
	return c, <-s.conns
}

func TestMain(m *testing.M) {
	timeout = time.Minute // on a busy machine
	os.Exit(m.Run())
}

// soon does what waits in vain for an answer.
func soon(do func()) {
	before := timeout
	timeout = 200 * time.Millisecond
	defer func() { timeout = before }()
	do()
}

func TestRequests(t *testing.T) {
	s := newServer(t)
	c, _ := s.dial()
	ctx := t.Context()
	for _, test := range []struct {
		request, result string
		do              func() (any, error)
		want            any
	}{
		{`"thread/queue/add","params":{"threadId":"T","clientUserMessageId":"m1","input":[{"type":"text","text":"hello"}]}`,
			`{"queuedSubmission":{"id":"q1","clientUserMessageId":"m1","input":[{"type":"text","text":"hello","text_elements":[]}]}}`,
			func() (any, error) { return c.QueueAdd(ctx, "T", "m1", "hello") },
			Queued{ID: "q1", ClientID: "m1", Input: text("hello")}},
		{`"thread/queue/list","params":{"threadId":"T"}`, `{"data":[{"id":"q1","clientUserMessageId":"m1","input":[]}],"nextCursor":null}`,
			func() (any, error) { return c.QueueList(ctx, "T") },
			[]Queued{{ID: "q1", ClientID: "m1", Input: []Input{}}}},
		{`"thread/queue/delete","params":{"threadId":"T","queuedSubmissionId":"q1"}`, `{"deleted":true}`,
			func() (any, error) { return c.QueueDelete(ctx, "T", "q1") }, true},
		{`"thread/queue/start","params":{"threadId":"T"}`, `{"turn":{"id":"U"}}`, func() (any, error) { return nil, c.QueueStart(ctx, "T") }, nil},
		{`"turn/steer","params":{"threadId":"T","expectedTurnId":"U","clientUserMessageId":"m1","input":[{"type":"text","text":"hello"}]}`,
			`{"turnId":"U"}`, func() (any, error) { return nil, c.Steer(ctx, "T", "U", "m1", "hello") }, nil},
		{`"thread/loaded/list","params":{}`, `{"data":["T"]}`, func() (any, error) { return c.Loaded(ctx) }, []string{"T"}},
		{`"thread/read","params":{"threadId":"T"}`, `{"thread":{"id":"T","cwd":"/w","status":{"type":"active","activeFlags":["waitingOnApproval"]}}}`,
			func() (any, error) { return c.Read(ctx, "T") },
			Thread{ID: "T", Dir: "/w", Status: Status{Type: Active, Flags: []string{"waitingOnApproval"}}}},
		{`"thread/resume","params":{"threadId":"T","excludeTurns":true}`, `{"thread":{"id":"T","status":{"type":"idle"}}}`,
			func() (any, error) { return c.Resume(ctx, "T") }, Thread{ID: "T", Status: Status{Type: Idle}}},
		{`"thread/turns/list","params":{"threadId":"T","limit":1,"sortDirection":"desc","itemsView":"notLoaded"}`,
			`{"data":[{"id":"U","status":"failed","error":{"message":"limit"}}],"nextCursor":"more"}`,
			func() (any, error) { return c.Turns(ctx, "T", 1) },
			[]Turn{{ID: "U", Status: TurnFailed, Error: &TurnError{Message: "limit"}}}},
		{`"thread/items/list","params":{"threadId":"T","limit":9,"sortDirection":"desc"}`,
			`{"data":[{"turnId":"U","item":{"type":"reasoning","id":"2","content":["hm"]}},{"turnId":"U","item":{"type":"userMessage","id":"1","clientId":"m1","content":[{"type":"text","text":"hello"}]}}]}`,
			func() (any, error) { return c.Items(ctx, "T", 9) },
			[]Item{{ID: "2", Type: "reasoning", Content: []Input{{}}}, {ID: "1", Type: "userMessage", ClientID: "m1", Content: text("hello")}}},
	} {
		method := strings.Split(test.request, `"`)[1]
		s.results.Store(method, test.result)
		got, err := test.do()
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", method, diff)
		}
		if asked := <-s.asked; !strings.HasSuffix(asked, `"method":`+test.request+`}`) {
			t.Errorf("asked %s, want %s", asked, test.request)
		}
		s.results.Store(method, `!{"code":-32600,"message":"not\nnow"}`)
		if _, err := test.do(); err == nil || !strings.HasPrefix(err.Error(), method) || !strings.HasSuffix(err.Error(), "codex's server refuses: not now") {
			t.Errorf("%s: %v", method, err)
		}
		<-s.asked
	}
}

// Whatever a server sends, a call ends with an answer or an error, and an event is empty where it is not understood.
func TestNonsense(t *testing.T) {
	s := newServer(t)
	c, conn := s.dial()
	for _, text := range []string{"", "hello", "[]", "null", "{}", `{"id":"x","result":1}`, `{"id":99,"result":{}}`, `{"id":1,"error":7}`, "\xff\xfe", "{\"id\":", "12"} {
		s.send(conn, text)
	}
	for _, text := range []string{`{"method":"turn/started"}`, `{"method":"item/completed","params":[1]}`, `{"method":"thread/status/changed","params":{"threadId":7,"status":"idle"}}`,
		`{"id":{},"method":"item/commandExecution/requestApproval","params":{"command":["touch"]}}`, `{"method":"turn/started","params":{"turn":3}}`} {
		s.send(conn, text)
		e := <-c.Events()
		if q := newQuestion(e); e.Thread != "" || e.TurnID != "" || q != nil && q.Prompt != "" {
			t.Errorf("%s: %+v asks %+v", text, e, q)
		}
	}
	for _, answer := range []string{"7", `"yes"`, "[]", `{"thread":"T"}`, `{"thread":{"id":7}}`} {
		s.results.Store("thread/read", answer)
		_, err := c.Read(t.Context(), "T")
		if err == nil || err.Error() != "thread/read of thread T: codex's server answers with something else" {
			t.Errorf("%s: %v", answer, err)
		}
	}
	s.results.Store("thread/read", `!"no"`)
	var refused *RefusedError
	if _, err := c.Read(t.Context(), "T"); !errors.As(err, &refused) {
		t.Error(err)
	}
	s.results.Delete("thread/read") // no answer
	soon(func() {
		if _, err := c.Read(t.Context(), "T"); err == nil || err.Error() != "thread/read of thread T: no answer within 200ms" {
			t.Error(err)
		}
	})
	s.results.Store("thread/read", `{"thread":{"id":"T"}}`) // and it can be used on
	if thread, err := c.Read(t.Context(), "T"); err != nil || thread.ID != "T" {
		t.Error(thread, err)
	}
}

// An endless list is read to an end.
func TestEndlessList(t *testing.T) {
	s := newServer(t)
	c, _ := s.dial()
	s.results.Store("thread/loaded/list", `{"data":["T"],"nextCursor":"again"}`)
	if all, err := c.Loaded(t.Context()); err != nil || len(all) != maxPages {
		t.Error(len(all), err)
	}
}

func TestHugeMessageIsSkipped(t *testing.T) {
	s := newServer(t)
	c, conn := s.dial()
	s.send(conn, `{"method":"item/completed","params":{"threadId":"T","text":"`+strings.Repeat("x", maxMessage)+`"}}`)
	s.send(conn, `{"method":"turn/completed","params":{"threadId":"T"}}`)
	if e := <-c.Events(); e.Method != "turn/completed" {
		t.Errorf("%+v", e)
	}
}

func TestGone(t *testing.T) {
	dial := func(socket string) error {
		t.Helper()
		c, err := Dial(t.Context(), socket)
		if err == nil {
			c.Close()
			t.Fatal("connected")
		}
		return err
	}
	nobody := filepath.Join(testtree.Short(t), "s")
	if err := dial(nobody); !errors.Is(err, ErrGone) {
		t.Error(err)
	}
	if err := os.WriteFile(nobody, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := dial(nobody); !errors.Is(err, ErrGone) {
		t.Error(err)
	}

	s := newServer(t)
	c, conn := s.dial()
	ended := make(chan error)
	go func() {
		_, err := c.Read(t.Context(), "T")
		ended <- err
	}()
	<-s.asked
	conn.CloseNow() // while a call waits
	if err := <-ended; !errors.Is(err, ErrGone) {
		t.Error(err)
	}
	for range c.Events() {
	}
	if err := c.Err(); !errors.Is(err, ErrGone) {
		t.Error(err)
	}
	if _, err := c.Read(t.Context(), "T"); !errors.Is(err, ErrGone) {
		t.Error(err)
	}
	if err := c.Answer(t.Context(), "1", json.RawMessage(`{}`)); !errors.Is(err, ErrGone) {
		t.Error(err)
	}

	// Something else listens.
	mute := waytest.Serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-t.Context().Done() }))
	soon(func() {
		if err := dial(mute); !strings.Contains(err.Error(), "no answer within 200ms") {
			t.Error(err)
		}
	})
	for _, status := range []int{200, 302, 404} {
		other := waytest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://elsewhere.example/")
			w.WriteHeader(status)
			w.Write([]byte("one\ntwo\n"))
		}))
		if err := dial(other); strings.Contains(err.Error(), "\n") {
			t.Error(err)
		}
	}
	silent := newServer(t) // a server that does not answer initialize
	silent.results.Delete("initialize")
	soon(func() { // on a busy machine it may not even connect in that time
		if err := dial(silent.socket); !strings.Contains(err.Error(), "no answer within 200ms") {
			t.Error(err)
		}
	})
}

// Whoever does not take the events loses the connection, and not the memory.
func TestEventsMustBeTaken(t *testing.T) {
	s := newServer(t)
	c, conn := s.dial()
	for range maxWaiting + 1 {
		s.send(conn, `{"method":"turn/started"}`)
	}
	<-c.stopped
	if err := c.Err(); !strings.Contains(err.Error(), "nobody takes its events") {
		t.Error(err)
	}
}

func TestAnotherUsersServerIsRefused(t *testing.T) {
	s := newServer(t)
	conn, err := net.Dial("unix", s.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := checkPeer(conn, os.Geteuid()); err != nil {
		t.Error(err)
	}
	if err := checkPeer(conn, os.Geteuid()+1); err == nil || !strings.Contains(err.Error(), "not you") {
		t.Error(err)
	}
}
