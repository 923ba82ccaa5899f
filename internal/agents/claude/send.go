package claude

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tailscale/peercred"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/wire"
)

// Errors of Send. After every one but ErrUnconfirmed the session has not got the text.
var (
	ErrHeadless    = errors.New("nobody sits before this Claude Code (claude -p), and mail would spoil its output")
	ErrNoSocket    = errors.New("this Claude Code has no inbox socket: it is older than 2.1.224, or has it turned off")
	ErrHeld        = errors.New("this Claude Code holds messages back until its person lets them in")
	ErrForeign     = errors.New("the inbox socket is not this Claude Code's, or others can reach it")
	ErrGone        = errors.New("this Claude Code has ended")
	ErrSlow        = errors.New("this Claude Code did not take the text in time")
	ErrTooLong     = errors.New("the text is longer than this Claude Code takes")
	ErrUnconfirmed = errors.New("this Claude Code has the text in its inbox, but does not read it") // it may yet
)

const (
	sendTime = 2 * time.Second
	maxLine  = 1 << 20 // Claude Code drops a connection with a longer one
	maxReply = 4 << 10
)

// Send puts a text into a session's inbox, as a message from that name. A busy session takes it behind the running tool,
// and one with a dialog open after the answer. Its UserPromptSubmit hook then has the text as the prompt, and only that
// shows that the model got it.
func (s *Session) Send(ctx context.Context, from, text string) error {
	if err := s.MayTake(); err != nil {
		return err
	}
	line, err := encode(from, text)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	conn, err := s.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })()
	if _, err := conn.Write(line); err != nil {
		return kindOf(err)
	}
	conn.CloseWrite()
	switch _, err := io.CopyN(io.Discard, conn, maxReply); {
	case err == nil || err == io.EOF: // it takes the line, or says more than we want to know
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrUnconfirmed
	default: // it closed the connection before it had read the whole line
		return kindOf(err)
	}
}

// MayTake returns why the session takes no text, as far as that is known without trying: an error of Send's.
func (s *Session) MayTake() error {
	switch {
	case s.Entrypoint != "cli" || s.Kind != "interactive":
		return ErrHeadless
	case s.Socket == "":
		return ErrNoSocket
	case s.isHolding():
		return ErrHeld
	case s.isOthersSocket():
		return ErrForeign
	}
	return s.checkSocket()
}

// checkSocket checks that nobody else can reach the session's socket.
func (s *Session) checkSocket() error {
	if !filepath.IsAbs(s.Socket) {
		return ErrForeign
	}
	dir, err := os.Lstat(filepath.Dir(s.Socket))
	if err != nil {
		return kindOf(err)
	}
	socket, err := os.Lstat(s.Socket)
	if err != nil {
		return kindOf(err)
	}
	isPrivate := dir.IsDir() && isOurs(dir) && dir.Mode().Perm()&0o077 == 0
	if !isPrivate || socket.Mode().Type() != fs.ModeSocket || !isOurs(socket) {
		return ErrForeign
	}
	return nil
}

// isOthersSocket reports whether Linux says, without a connection, that a process listens on the socket and that it is not
// the session's. Other systems do not tell.
func (s *Session) isOthersSocket() bool {
	sockets, _ := os.ReadFile("/proc/net/unix")
	names, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", s.PID))
	isFound := false
	for line := range strings.Lines(string(sockets)) {
		f := strings.Fields(line)                                 // Num RefCount Protocol Flags Type St Inode Path
		if len(f) < 8 || f[3] != "00010000" || f[7] != s.Socket { // the flag of one that listens
			continue
		}
		isFound = true
		for _, name := range names {
			if to, _ := os.Readlink(name); to == "socket:["+f[6]+"]" {
				return false
			}
		}
	}
	return isFound && err == nil && len(names) > 0
}

// dial connects to the session's socket, and checks who listens there.
func (s *Session) dial(ctx context.Context) (*net.UnixConn, error) {
	if err := s.checkSocket(); err != nil {
		return nil, err
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", s.Socket)
	if err != nil {
		return nil, kindOf(err)
	}
	conn := c.(*net.UnixConn)
	if err := s.checkPeer(conn); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// checkPeer checks that the session's process is at the other end. The kernel names the process that began to listen;
// that one must not have ended since.
func (s *Session) checkPeer(conn net.Conn) error {
	creds, err := peercred.Get(conn)
	if err != nil {
		return ErrForeign
	}
	uid, _ := creds.UserID()
	if pid, _ := creds.PID(); pid != s.PID || uid != strconv.Itoa(os.Geteuid()) {
		return ErrForeign
	}
	if !s.isRunning() {
		return ErrGone
	}
	return nil
}

func kindOf(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled),
		errors.Is(err, syscall.EAGAIN): // so many wait to be let in
		return ErrSlow
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return ErrGone
	}
	return fmt.Errorf("write to Claude Code's inbox: %s", reason(err))
}

// encode makes the line that the inbox takes.
func encode(from, text string) ([]byte, error) {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	content, err := wrap(from, text)
	if err != nil {
		return nil, err
	}
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	err = enc.Encode(struct {
		Type    string  `json:"type"`
		Version int     `json:"msgV"`
		ID      string  `json:"msg_id"`
		Message message `json:"message"`
	}{"user", 1, string(wire.NewID()), message{"user", content}})
	if err == nil && line.Len() > maxLine {
		err = ErrTooLong
	}
	return line.Bytes(), err
}

// wrap puts a text into Claude Code's frame for messages of other sessions. A sender writes neither the frame's end nor
// another one.
func wrap(from, text string) (string, error) {
	if strings.Trim(from, "abcdefghijklmnopqrstuvwxyz0123456789_-@.") != "" || from == "" {
		return "", fmt.Errorf("%q is no sender's name", wire.Clip(from, 40))
	}
	text = frame().ReplaceAllString(text, `<\$1`)
	return fmt.Sprintf("<cross-session-message from=\"atm:%s\" from-name=\"%[1]s\">\n%s\n</cross-session-message>", from, text), nil
}

// frame matches where a frame could begin or end.
var frame = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)<(\s*/?\s*cross-session-message)`) })

// isHolding reports whether messages wait in a dialog for the session's person: if it asks for no permissions, unless the
// settings accept them, and always if they say so. The file on disk counts, as Claude Code reads it again when it changes.
func (s *Session) isHolding() bool {
	user := inbound(filepath.Join(s.configDir, "settings.json"))
	for _, file := range []string{"settings.json", "settings.local.json"} {
		if how := inbound(filepath.Join(s.Dir, ".claude", file)); how != "" && how != Accept { // a project may only be stricter
			return true
		}
	}
	return user != "" && user != Accept || user == "" && s.Mode == "bypassPermissions"
}

// Inbound is the setting that says what becomes of messages, and Accept its value that lets all in.
const (
	Inbound = "crossSessionInbound"
	Accept  = "accept"
)

// inbound returns what a file of settings says, "" if nothing.
func inbound(file string) string {
	data, err := durable.ReadRegular(file, maxLine)
	if err != nil {
		return ""
	}
	var settings map[string]json.RawMessage
	var how string
	json.Unmarshal(data, &settings)
	if value, ok := settings[Inbound]; ok && json.Unmarshal(value, &how) != nil {
		return "invalid" // Claude Code holds messages then
	}
	return how
}
