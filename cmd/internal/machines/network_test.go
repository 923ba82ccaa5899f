//go:build linux

package machines

import (
	"net"
	"sync"
	"testing"
)

// A network is what lies between one host and the servers: a proxy for each of them.
type network struct {
	open sync.RWMutex // locked: nothing passes, and nobody is told

	mu    sync.Mutex
	cut   bool // connections are refused
	conns map[net.Conn]bool
}

// newNetwork returns the addresses by which the host reaches the servers.
func newNetwork(t testing.TB, servers []string) (n *network, addresses []string) {
	n = &network{conns: map[net.Conn]bool{}}
	for _, server := range servers {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		addresses = append(addresses, l.Addr().String())
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go n.connect(conn, server)
			}
		}()
	}
	return n, addresses
}

func (n *network) connect(client net.Conn, address string) {
	defer client.Close()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer server.Close()
	n.mu.Lock()
	if n.cut {
		n.mu.Unlock()
		return
	}
	n.conns[client], n.conns[server] = true, true
	n.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { n.copy(server, client) })
	both.Go(func() { n.copy(client, server) })
	both.Wait()
	n.mu.Lock()
	delete(n.conns, client)
	delete(n.conns, server)
	n.mu.Unlock()
}

func (n *network) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	for buf := make([]byte, 32<<10); ; {
		got, err := from.Read(buf)
		n.open.RLock()
		_, werr := to.Write(buf[:got])
		n.open.RUnlock()
		if err != nil || werr != nil {
			return
		}
	}
}

// drop closes every connection; until heal there are no new ones.
func (n *network) drop() { n.set(true) }
func (n *network) heal() { n.set(false) }

func (n *network) set(cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cut = cut; cut {
		for conn := range n.conns {
			conn.Close()
		}
	}
}
