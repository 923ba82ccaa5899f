package testagent

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/agentteammail/atm/internal/process"
)

// What becomes of a message in the inbox: see Options.Inbox.
const (
	inboxOpen  = "open"  // it begins a turn, or waits for the end of one
	inboxDrops = "drops" // nothing
	inboxShut  = "shut"  // nobody listens any more
)

// framed matches a message as Claude Code's other sessions send it.
var framed = regexp.MustCompile(`(?s)^<cross-session-message from="[^"]*" from-name="([^"]*)">\n(.*)\n</cross-session-message>$`)

// openInbox listens for messages as Claude Code does, and writes the file of its session. The returned function removes
// both.
func (a *agent) openInbox() (closeInbox func(), err error) {
	sessions := filepath.Join(os.Getenv("CLAUDE_CONFIG_DIR"), "sessions")
	if err := os.MkdirAll(sessions, 0o700); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "fake-") // a socket's path is short
	if err != nil {
		return nil, err
	}
	socket, own := filepath.Join(dir, "inbox.sock"), os.Getpid()
	file := filepath.Join(sessions, strconv.Itoa(own)+".json")
	closeInbox = func() {
		os.RemoveAll(dir)
		os.Remove(file)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return closeInbox, err
	}
	if a.o.Inbox == inboxShut {
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		l.Close()
	}
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			go a.takeMessage(c)
		}
	}()
	self, _ := process.Find(own)
	session, err := json.Marshal(map[string]any{
		"pid": own, "sessionId": fmt.Sprint("fake-", own), "cwd": a.cwd, "procStart": strconv.FormatUint(self.Start, 10), "version": "2.1.332",
		"kind": "interactive", "entrypoint": "cli", "messagingSocketPath": socket, "status": "idle",
	})
	if err == nil {
		err = os.WriteFile(file, session, 0o600)
	}
	return closeInbox, err
}

func (a *agent) takeMessage(c net.Conn) {
	defer time.AfterFunc(200*time.Millisecond, func() { c.Close() }) // Claude Code is in its turn by then
	line, _ := bufio.NewReader(c).ReadBytes('\n')
	var m struct{ Message struct{ Content string } }
	json.Unmarshal(line, &m)
	parts := framed.FindStringSubmatch(m.Message.Content)
	if parts == nil {
		parts = []string{"", "?", m.Message.Content}
	}
	a.events <- func() {
		a.log.add(Entry{Event: Pushed, Kind: parts[1], Text: parts[2]})
		switch {
		case a.o.Inbox == inboxDrops:
		case a.turn == nil && a.dialog == nil:
			a.startTurn(parts[2])
			a.pending = block{rows: a.Received, text: "@" + parts[1] + ": " + parts[2]}
		default:
			a.queue = append(a.queue, parts[2])
		}
	}
}
