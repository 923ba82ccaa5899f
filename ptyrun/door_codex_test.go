package ptyrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
)

// A codexServer is Codex's server, as far as a door needs one.
type codexServer struct {
	threads string // what thread/read says of each, without its id
	begins  bool   // a turn with what is queued
	refuses bool   // to queue
	hangsUp bool   // when it has queued

	mu     sync.Mutex
	queue  []string // of clients' ids
	items  []string // the same, of what a turn has begun with
	asked  []string
	queued string // the last text
}

// serve returns the door to the server.
func (s *codexServer) serve(t *testing.T) *codexDoor {
	dir, err := os.MkdirTemp("", "cx") // a socket's path must be short
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, serverSocket)
	l, err := net.Listen("unix", socket)
	must(t, err)
	server := &http.Server{Handler: http.HandlerFunc(s.talk)}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return &codexDoor{socket: socket}
}

func (s *codexServer) talk(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer conn.CloseNow()
	for {
		_, data, err := conn.Read(context.Background())
		if err != nil {
			return
		}
		var m struct {
			ID     *int
			Method string
			Params struct {
				ThreadID            string
				ClientUserMessageID string
				QueuedSubmissionID  string
				Input               []struct{ Text string }
			}
		}
		if json.Unmarshal(data, &m) != nil || m.ID == nil {
			continue
		}
		s.mu.Lock()
		s.asked = append(s.asked, m.Method)
		answer := `"result":{}`
		switch p := m.Params; m.Method {
		case "thread/loaded/list":
			var ids []string
			for i := range strings.Fields(s.threads) {
				ids = append(ids, fmt.Sprintf("%q", fmt.Sprint(i)))
			}
			answer = fmt.Sprintf(`"result":{"data":[%s]}`, strings.Join(ids, ","))
		case "thread/read":
			var i int
			fmt.Sscan(p.ThreadID, &i)
			answer = fmt.Sprintf(`"result":{"thread":%s}`, strings.Fields(s.threads)[i])
		case "thread/queue/add":
			if s.refuses {
				answer = `"error":{"message":"not now"}`
				break
			}
			s.queued = p.Input[0].Text
			s.queue = append(s.queue, p.ClientUserMessageID)
			answer = fmt.Sprintf(`"result":{"queuedSubmission":{"id":%q}}`, p.ClientUserMessageID)
			if s.begins {
				s.items, s.queue = s.queue, nil
			}
		case "thread/queue/delete":
			i := slices.Index(s.queue, p.QueuedSubmissionID)
			answer = fmt.Sprintf(`"result":{"deleted":%v}`, i >= 0)
			if i >= 0 {
				s.queue = slices.Delete(s.queue, i, i+1)
			}
		case "thread/items/list":
			answer = `"error":{"message":"not supported yet"}`
			if len(s.items) > 0 {
				answer = fmt.Sprintf(`"result":{"data":[{"item":{"type":"userMessage","clientId":%q}}]}`, s.items[0])
			}
		}
		isOver := s.hangsUp && m.Method == "thread/queue/add"
		s.mu.Unlock()
		if isOver {
			return
		}
		conn.Write(context.Background(), websocket.MessageText, fmt.Appendf(nil, `{"id":%d,%s}`, *m.ID, answer))
	}
}

const (
	idleThread  = `{"status":{"type":"idle"}}`
	titleThread = `{"ephemeral":true,"status":{"type":"active"}}`
	subThread   = `{"parentThreadId":"0","status":{"type":"active"}}`
)

// Mail goes to the one conversation that the program can show.
func TestCodexDoorLook(t *testing.T) {
	t.Parallel()
	for threads, want := range map[string]string{
		idleThread: "",
		titleThread + " " + idleThread + " " + subThread: "",
		"":                                   "no conversation yet",
		titleThread:                          "no conversation yet",
		idleThread + " " + idleThread:        "more than one conversation",
		`{"status":{"type":"active"}}`:       `its conversation is "active"`,
		strings.Repeat(titleThread+" ", 200): "200 conversations",
	} {
		d := (&codexServer{threads: threads}).serve(t)
		if err := d.look(t.Context(), nil); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.200s: %v, want %q", threads, err, want)
		}
	}
	if err := (&codexDoor{socket: "/nowhere"}).look(t.Context(), nil); err == nil {
		t.Error("no server is a door")
	}
}

// A text that began no turn is not in the queue when it is typed.
func TestCodexDoorPush(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		server                  *codexServer
		isReceived, isUncertain bool
	}{
		"begins":   {&codexServer{begins: true}, true, false},
		"stays":    {&codexServer{}, false, false},
		"refuses":  {&codexServer{refuses: true}, false, false},
		"hangs up": {&codexServer{hangsUp: true}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := c.server
			s.threads = idleThread
			d := s.serve(t)
			d.hasStarted.Store(true) // of the last text
			ctx, cancel := context.WithTimeout(t.Context(), handTime)
			defer cancel()
			err := d.push(ctx, pushText{"m1", "alice", "hello"})
			if (err == nil) != c.isReceived || d.isReceived() != c.isReceived || errors.Is(err, errUnconfirmed) != c.isUncertain {
				t.Errorf("%v, and it is received: %v", err, d.isReceived())
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if c.isReceived && (s.queued != "hello" || !slices.Equal(s.items, []string{"m1"})) {
				t.Errorf("%q, %q", s.queued, s.items)
			}
			if !c.isUncertain && len(s.queue) > 0 {
				t.Errorf("%q is still in its queue", s.queue)
			}
		})
	}
}
