package web

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	maxConnections = 256
	maxHeader      = 64 << 10         // bytes
	headerTimeout  = 10 * time.Second // for a request to come, but for its body
	bodyTimeout    = 10 * time.Second
	writeTimeout   = time.Minute // for an answer, or an event of a stream, to be read
	idleTimeout    = time.Minute // between two requests
)

// connections are those of the server. If there are too many, the oldest that was never let in is closed, so that
// somebody else's cannot keep the person's browser out.
type connections struct {
	mu  sync.Mutex
	all []*connection // the oldest first
}

type connection struct {
	net.Conn
	isLetIn bool
}

type connectionKey struct{}

// add is for http.Server.ConnContext.
func (cs *connections) add(ctx context.Context, conn net.Conn) context.Context {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if len(cs.all) >= maxConnections {
		i := max(slices.IndexFunc(cs.all, func(c *connection) bool { return !c.isLetIn }), 0)
		cs.all[i].Close()
		cs.all = slices.Delete(cs.all, i, i+1)
	}
	c := &connection{Conn: conn}
	cs.all = append(cs.all, c)
	return context.WithValue(ctx, connectionKey{}, c)
}

// remove is for http.Server.ConnState.
func (cs *connections) remove(conn net.Conn, state http.ConnState) {
	if state == http.StateClosed {
		cs.mu.Lock()
		defer cs.mu.Unlock()
		cs.all = slices.DeleteFunc(cs.all, func(c *connection) bool { return c.Conn == conn })
	}
}

// letIn records that a request of its connection was let in.
func (cs *connections) letIn(r *http.Request) {
	if c, ok := r.Context().Value(connectionKey{}).(*connection); ok {
		cs.mu.Lock()
		defer cs.mu.Unlock()
		c.isLetIn = true
	}
}

// limitTime limits how long a request's body and its answer may take.
func limitTime(w http.ResponseWriter) {
	limits := http.NewResponseController(w)
	limits.SetReadDeadline(time.Now().Add(bodyTimeout))
	limits.SetWriteDeadline(time.Now().Add(writeTimeout))
}
