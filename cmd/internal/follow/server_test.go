//go:build linux || darwin

package follow

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"github.com/agentteammail/atm/internal/agents/codex/appserver"
)

// A fakeServer has one thread, "T" but for its id, as Codex's server has. An idle thread begins no turn by itself: the test says when.
type fakeServer struct {
	t        *testing.T
	socket   string
	http     *http.Server
	listener net.Listener

	mu      sync.Mutex
	conn    *websocket.Conn
	status  string
	turn    string
	loaded  bool
	queue   []queued
	items   []item
	steered []queued
	started []queued // each has begun a turn
	asked   []string // methods
	answers []string // of the client, to requests of ours

	id       string // of the thread
	failed   object // a turn; nil: none has failed
	queuedIn string // the thread that the last queued message was for

	odd func(method string) (answer string, isOdd bool) // JSON beside the id; "": none
}

type queued struct {
	ID       string            `json:"id"`
	ClientID string            `json:"clientUserMessageId"`
	Input    []appserver.Input `json:"input"`
	Expected string            `json:"expectedTurnId,omitempty"`
}

type item struct {
	Type     string            `json:"type"`
	ID       string            `json:"id"`
	ClientID string            `json:"clientId"`
	Content  []appserver.Input `json:"content"`
}

func newServer(t *testing.T, socket string) *fakeServer {
	s := &fakeServer{t: t, socket: socket, status: appserver.Idle, loaded: true, id: "T"}
	s.listen()
	t.Cleanup(s.stop)
	return s
}

func (s *fakeServer) listen() {
	l, err := net.Listen("unix", s.socket)
	must(s.t, err)
	s.listener = l
	s.http = &http.Server{Handler: http.HandlerFunc(s.serve)}
	go s.http.Serve(l)
}

func (s *fakeServer) stop() {
	s.listener.Close() // http.Server closes only what its goroutine serves already
	s.http.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		s.conn.CloseNow()
	}
}

func (s *fakeServer) serve(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer conn.CloseNow()
	s.mu.Lock()
	s.conn = conn
	s.mu.Unlock()
	for {
		_, data, err := conn.Read(context.Background())
		if err != nil {
			return
		}
		s.mu.Lock()
		s.answer(data)
		s.mu.Unlock()
	}
}

type object map[string]any

// answer answers a request. The caller has the lock.
func (s *fakeServer) answer(data []byte) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			ThreadID, ClientUserMessageID, ExpectedTurnID, QueuedSubmissionID string
			Input                                                             []appserver.Input
		}
	}
	json.Unmarshal(data, &m)
	if m.Method == "" {
		s.answers = append(s.answers, string(data))
		return
	}
	s.asked = append(s.asked, m.Method)
	text, isOdd := "", false
	if s.odd != nil {
		text, isOdd = s.odd(m.Method)
	}
	if isOdd && strings.Contains(text, `"error"`) { // it does not do what it was asked
		s.sayOdd(text, m.ID)
		return
	}
	thread := object{"id": s.id, "status": object{"type": s.status}}
	var result any = object{}
	p := m.Params
	switch m.Method {
	case "initialized":
		return
	case "thread/loaded/list":
		result = object{"data": []string{"other"}}
		if s.loaded {
			result = object{"data": []string{"other", s.id}}
		}
	case "thread/read", "thread/resume":
		result = object{"thread": thread}
	case "thread/turns/list":
		result = object{"data": []object{{"id": s.turn, "status": "inProgress"}}}
		if s.failed != nil {
			result = object{"data": []object{s.failed}}
		}
	case "thread/items/list":
		var entries []object
		for _, i := range slices.Backward(s.items) {
			entries = append(entries, object{"item": i})
		}
		result = object{"data": entries}
	case "thread/queue/list":
		result = object{"data": s.queue}
	case "thread/queue/add":
		q := queued{ID: "q" + strconv.Itoa(len(s.asked)), ClientID: p.ClientUserMessageID, Input: p.Input}
		s.queue, s.queuedIn = append(s.queue, q), p.ThreadID
		result = object{"queuedSubmission": q}
	case "thread/queue/delete":
		before := len(s.queue)
		s.queue = slices.DeleteFunc(s.queue, func(q queued) bool { return q.ID == p.QueuedSubmissionID })
		result = object{"deleted": len(s.queue) < before}
	case "turn/start":
		s.started = append(s.started, queued{ClientID: p.ClientUserMessageID, Input: p.Input})
	case "turn/steer":
		s.steered = append(s.steered, queued{ClientID: p.ClientUserMessageID, Input: p.Input, Expected: p.ExpectedTurnID})
	}
	if isOdd {
		s.sayOdd(text, m.ID)
		return
	}
	s.send(object{"id": m.ID, "result": result})
}

func (s *fakeServer) sayOdd(text string, id json.RawMessage) {
	if text != "" {
		s.conn.Write(context.Background(), websocket.MessageText, []byte(strings.ReplaceAll(text, "ID", string(id))))
	}
}

func (s *fakeServer) send(v any) {
	data, _ := json.Marshal(v)
	if s.conn != nil {
		s.conn.Write(context.Background(), websocket.MessageText, data)
	}
}

func (s *fakeServer) tell(method string, params object) {
	params["threadId"] = s.id
	s.send(object{"method": method, "params": params})
}

// become changes the thread's status; a turn that begins takes the first message of the queue.
func (s *fakeServer) become(status, turn string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, s.turn = status, turn
	s.tell(appserver.StatusChanged, object{"status": object{"type": status}})
	if status == appserver.Active && len(s.queue) > 0 {
		q := s.queue[0]
		s.queue = s.queue[1:]
		s.take(q)
	}
}

// take has the agent get a message. The caller has the lock.
func (s *fakeServer) take(q queued) {
	i := item{Type: appserver.UserMessage, ID: "item" + strconv.Itoa(len(s.items)), ClientID: q.ClientID, Content: q.Input}
	s.items = append(s.items, i)
	s.tell(appserver.ItemCompleted, object{"item": i, "turnId": s.turn})
}

// has reads the server's state.
func (s *fakeServer) has(read func() bool) func() bool {
	return func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return read()
	}
}
