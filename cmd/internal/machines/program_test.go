//go:build linux

package machines

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/testprogram"
)

func TestMain(m *testing.M) {
	testprogram.Main(m, testprogram.Beside, "github.com/nats-io/nats-server/v2")
}

// A program is a process that is started again whenever it has ended, until its test is over.
type program struct {
	name string // of the log, beside what it works on
	cmd  func() *exec.Cmd
	log  string

	mu      sync.Mutex
	process *os.Process   // nil: between two lives
	killed  bool          // this life was ended by kill
	pause   time.Duration // before the next
	alone   []string      // how it ended when nobody had killed it
	stopped chan struct{} // closed: there is no next
	ended   chan struct{}
}

func start(t testing.TB, name, log string, cmd func() *exec.Cmd) *program {
	p := &program{name: name, cmd: cmd, log: log, stopped: make(chan struct{}), ended: make(chan struct{})}
	go p.keep()
	t.Cleanup(func() { p.stop(syscall.SIGKILL) })
	return p
}

func (p *program) keep() {
	defer close(p.ended)
	runtime.LockOSThread() // which the parent's death signal is bound to
	for !p.isStopped() {
		select {
		case <-p.stopped:
		case <-time.After(p.live()):
		}
	}
}

func (p *program) isStopped() bool {
	select {
	case <-p.stopped:
		return true
	default:
		return false
	}
}

// live is one life, and how long to wait for the next one.
func (p *program) live() (pause time.Duration) {
	log, _ := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	defer log.Close()
	cmd := p.cmd()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.mu.Lock()
	if p.isStopped() {
		p.mu.Unlock()
		return 0
	}
	err := cmd.Start()
	p.process, p.killed, p.pause = cmd.Process, false, 300*time.Millisecond
	p.mu.Unlock()
	if err == nil {
		err = cmd.Wait()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.process = nil
	if !p.killed {
		p.alone = append(p.alone, fmt.Sprintf("%s: %v: %s", p.name, err, p.lastLine()))
	}
	return p.pause
}

func (p *program) lastLine() string {
	b, _ := os.ReadFile(p.log)
	s := strings.TrimSpace(string(b[max(0, len(b)-500):]))
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// kill ends this life, and has the next one begin after a pause.
func (p *program) kill(how syscall.Signal, pause time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process != nil {
		p.killed, p.pause = true, pause
		p.process.Signal(how)
	}
}

// stop ends it for good, and waits for that.
func (p *program) stop(how syscall.Signal) {
	if !p.isStopped() {
		close(p.stopped)
		p.kill(how, 0)
	}
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
		p.kill(syscall.SIGKILL, 0)
		<-p.ended
	}
}

// newServers starts a cluster of n servers, or one that stands alone, which keep their streams below
// dir. They do not tell clients of each other: the way to each is the proxy that the client was given.
// The servers have such ways to each other, too: ways[i] are those that lead to or from the i-th.
func newServers(t testing.TB, dir string, n int) (all []*program, addresses []string, ways [][]*network) {
	addresses, routes := freePorts(t, n), freePorts(t, n)
	ways = make([][]*network, n)
	for i := range n {
		name := fmt.Sprint("server", i+1)
		text := fmt.Sprintf("server_name: %s\nlisten: %q\njetstream { store_dir: %q }\n", name, addresses[i], filepath.Join(dir, name))
		if n > 1 {
			var others []string
			for j := range n {
				if j != i {
					way, to := newNetwork(t, routes[j:j+1])
					others, ways[i], ways[j] = append(others, "nats://"+to[0]), append(ways[i], way), append(ways[j], way)
				}
			}
			// What it says of itself to others leads nowhere: they would pass the proxies by.
			text += fmt.Sprintf("cluster { name: machines, listen: %q, advertise: \"127.0.0.1:1\", no_advertise: true, routes: [%s] }\n", routes[i], strings.Join(others, ", "))
		}
		config := filepath.Join(dir, name+".conf")
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		server := cmp.Or(os.Getenv("ATM_MACHINES_SERVER"), "nats-server") // the variable names an older one
		all = append(all, start(t, name, filepath.Join(dir, name+".log"), func() *exec.Cmd {
			return exec.Command(server, "-c", config)
		}))
	}
	return all, addresses, ways
}

func freePorts(t testing.TB, n int) (all []string) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		all = append(all, l.Addr().String())
	}
	return all
}
