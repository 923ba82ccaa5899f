package bridge

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/hostkey"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/wire"
)

// protocol is the version of what two bridges say to each other over a link.
const protocol = 1

// greeting is the first line of each side of a link. The side that called speaks first.
type greeting struct {
	Protocol int       `json:"atm_bridge"`
	Version  string    `json:"version"` // of atm, for people
	Team     wire.Name `json:"team"`
	Host     wire.Name `json:"host"`           // its own name
	Key      string    `json:"key"`            // its public key
	Peer     wire.Name `json:"peer,omitempty"` // the name that it knows the other side by
}

const (
	greetingMark  = `{"atm_bridge":`
	errorMark     = `{"error":`
	maxNoise      = 64 << 10 // bytes that a login may print before the greeting
	greetWithin   = time.Minute
	noDirectory   = 66 // exit codes of the shell there
	noProgram     = 127
	sshFailed     = 255
	connectWithin = 15 // seconds
)

// SSH is how another host is reached.
type SSH struct {
	Target  string    // what ssh takes: build, me@build, ssh://me@build:2222
	Options []string  // of ssh
	Dir     string    // there: of the project, relative to the home directory
	Name    wire.Name // of the host in the team
	Version string    // of this atm
	MayAsk  bool      // ssh may ask this person something, until it has connected once
}

// HostOf returns the name that a target gives a host: "" if none.
func HostOf(target string) wire.Name {
	name := strings.TrimPrefix(target, "ssh://")
	name = name[strings.LastIndexByte(name, '@')+1:]
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	if net.ParseIP(strings.Trim(name, "[]")) != nil {
		return ""
	}
	name, _, _ = strings.Cut(name, ".")
	host, err := hostkey.ParseHost(strings.ToLower(name))
	if err != nil {
		return ""
	}
	return host
}

// ThroughSSH makes the bridge one to the host that ssh reaches.
func (b *Bridge) ThroughSSH(to SSH) {
	l := &link{Bridge: b}
	l.dial = func(ctx context.Context) (*session, error) {
		s, err := l.call(ctx, to)
		if e, isClear := errors.AsType[*failure.Error](err); isClear && !l.hasBeen && slices.Contains([]string{"usage", "not_found", "refused"}, e.Code) {
			return nil, finalError{err} // what worked before may work again
		}
		return s, err
	}
	b.way, b.peer = l, to.Name
}

// script runs there, in sh. Programs are also looked for where people put them: a login shell's PATH may be longer.
const script = `PATH="$PATH:$HOME/.local/bin:$HOME/go/bin:/usr/local/bin:/opt/homebrew/bin"; cd -- "$1" || exit 66; exec atm bridge --stdio --json --team "$2"`

// command is the command line of ssh. The first of two equal options counts: the person's.
func (to SSH) command(team wire.Name, mayAsk bool) []string {
	words := append([]string{"ssh"}, to.Options...)
	words = append(words, "-T", "-o", "ClearAllForwardings=yes", "-o", "RemoteCommand=none", "-o", fmt.Sprintf("ConnectTimeout=%d", connectWithin))
	if !mayAsk {
		words = append(words, "-o", "BatchMode=yes")
	}
	dir := to.Dir
	if rest, isHome := strings.CutPrefix(dir, "~/"); isHome {
		dir = rest
	}
	dir = cmp.Or(strings.TrimPrefix(dir, "~"), ".")
	return append(words, to.Target, "exec sh -c "+quote(script)+" atm "+quote(dir)+" "+quote(string(team)))
}

// quote quotes a word for any shell.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// call starts ssh, and greets the bridge there.
func (l *link) call(ctx context.Context, to SSH) (*session, error) {
	mayAsk := to.MayAsk && !l.hasBeen
	words := to.command(l.Team.Name, mayAsk)
	said := &said{warn: func(line string) { l.warn("%s: %s", l.peer, line) }}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stderr, cmd.WaitDelay = said, time.Second // a connection that ssh shares keeps its stderr
	in, err := cmd.StdinPipe()
	var out, theirs *os.File // not of StdoutPipe: the end of ssh would close that before its last words are read
	if err == nil {
		out, theirs, err = os.Pipe()
	}
	if err == nil {
		cmd.Stdout = theirs
		err = errors.Join(cmd.Start(), theirs.Close())
	}
	if errors.Is(err, exec.ErrNotFound) {
		return nil, failure.NotFound("ssh is not on PATH").WithHint("install OpenSSH's client")
	}
	if err != nil {
		return nil, fmt.Errorf("start ssh: %w", err)
	}
	ended := make(chan struct{})
	wait := sync.OnceFunc(func() {
		cmd.Wait()
		close(ended)
	})
	end := sync.OnceFunc(func() {
		in.Close()
		select {
		case <-ended:
		case <-time.After(time.Second):
			cmd.Process.Kill()
		}
	})
	abort := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	defer abort()
	if !mayAsk {
		tooLate := time.AfterFunc(greetWithin, func() {
			said.Write([]byte("\nno answer within " + letter.Span(greetWithin) + "\n"))
			cmd.Process.Kill()
		})
		defer tooLate.Stop()
	}
	session, err := l.greet(bufio.NewReaderSize(out, 64<<10), in, to, end)
	if err != nil {
		if errors.Is(err, io.EOF) {
			wait()
			err = to.explain(cmd.ProcessState.ExitCode(), said.text())
		}
		go func() {
			wait()
			out.Close()
		}()
		end()
		return nil, cmp.Or(ctx.Err(), err)
	}
	said.show()
	go func() {
		wait()
		select {
		case <-session.hasRead:
		case <-time.After(time.Second): // a connection that ssh shares keeps its stdout
		}
		out.Close()
	}()
	return session, nil
}

// greet begins a session over streams to the other side.
func (l *link) greet(in *bufio.Reader, out io.Writer, to SSH, end func()) (*session, error) {
	mine := greeting{Protocol: protocol, Version: to.Version, Team: l.Team.Name, Host: l.Host, Key: publicKey(l.key), Peer: l.peer}
	line, _ := json.Marshal(mine)
	go out.Write(append(line, '\n')) // an error is that of the end
	theirs, err := l.awaitGreeting(in, to)
	if err == nil {
		err = l.checkGreeting(theirs, to)
	}
	if err != nil {
		return nil, err
	}
	return newSession(in, out, end), nil
}

// awaitGreeting reads what the other side prints until it greets. A login may print something first.
func (l *link) awaitGreeting(in *bufio.Reader, to SSH) (g greeting, err error) {
	for left := maxNoise; left > 0; {
		line, err := readLine(in, maxNoise)
		if err != nil {
			return g, io.EOF // the exit code says more
		}
		left -= len(line) + 1
		// What is printed without an end of line may stand before it.
		if at := bytes.Index(line, []byte(greetingMark)); at >= 0 && json.Unmarshal(line[at:], &g) == nil {
			return g, nil
		}
		var failed struct{ Error failure.Error }
		if at := bytes.Index(line, []byte(errorMark)); at >= 0 && json.Unmarshal(line[at:], &failed) == nil && failed.Error.Message != "" {
			return g, to.explainThere(failed.Error)
		}
	}
	return g, failure.Failed("%s prints more than %d bytes before atm speaks", l.peer, maxNoise).WithHint("what its shell prints for a login should not be printed for a command: %s true", to.ssh())
}

// checkGreeting checks who the other side is, and trusts it from now on if it is new: to name it is to trust it.
func (l *link) checkGreeting(g greeting, to SSH) error {
	switch {
	case g.Protocol != protocol:
		return failure.Refused("atm %s on %s speaks version %d of a bridge's protocol, atm %s here version %d", letter.Clip(g.Version, 40), l.peer, g.Protocol, to.Version, protocol).
			WithHint("install the same version of atm on both")
	case g.Team != l.Team.Name:
		return failure.Refused("%s answers for team %.80q", l.peer, g.Team).WithHint("a command in its authorized_keys decides that")
	case g.Host != l.peer:
		if _, err := hostkey.ParseHost(string(g.Host)); err != nil {
			return failure.Refused("%s calls itself %.80q", l.peer, g.Host).WithHint("there: `atm bridge keygen --host %s`", l.peer)
		}
		return failure.Refused("%s calls itself %s", l.peer, g.Host).WithHint("`atm bridge --ssh %s --name %s`", policy.Quote(to.Target), g.Host)
	}
	return l.meet(g.Key)
}

// meet trusts the other side's key, unless another one is trusted.
func (l *link) meet(text string) error {
	if l.Root.IsLink(l.peer) {
		return failure.Refused("%s is a root on this machine, by a link", l.peer).WithHint("`atm link --remove %s`, or --name NAME for the machine", l.peer)
	}
	key, err := hostkey.ParseKey(text)
	if err != nil {
		return failure.Refused("the key of %s: %v", l.peer, err)
	}
	known, err := l.keys().Key(l.peer)
	if err == nil && !known.Equal(key) {
		return failure.Refused("%s has another key than the one that is trusted here", l.peer).
			WithHint("if it has a new one: `atm bridge trust %s %s --replace`", l.peer, text)
	}
	if bad := l.keepKey(); bad != nil {
		return bad
	}
	if errors.Is(err, hostkey.ErrNoKey) {
		if err = l.keys().Trust(l.peer, key, false); err == nil {
			l.warn("host %s is trusted from now on, by its key %s", l.peer, text)
		}
	}
	if errors.Is(err, hostkey.ErrOwn) {
		return failure.Refused("%w", err).WithHint("give one of the two another name: `atm bridge keygen --host NAME`, or --name NAME")
	}
	return err
}

// keepKey gives this machine its name and key for good if it has none, now that another one has answered.
func (l *link) keepKey() error {
	if _, err := l.keys().Private(l.Host); !errors.Is(err, hostkey.ErrNoKey) {
		return err
	}
	err := l.keys().Keep(l.Host, l.key)
	if err == nil {
		l.warn("this machine is called %s from now on", l.Host)
	}
	return err
}

func (to SSH) ssh() string {
	return "ssh " + policy.QuoteAll(append(slices.Clone(to.Options), to.Target))
}

// explain says why ssh ended before atm spoke there.
func (to SSH) explain(code int, said string) error {
	said = cmp.Or(said, fmt.Sprintf("it ended with exit code %d", code))
	is := func(text string) bool { return strings.Contains(said, text) }
	switch {
	case code == noProgram:
		return failure.NotFound("atm is not on PATH on %s", to.Name).
			WithHint("install it there, so that this prints its version: %s atm version", to.ssh())
	case code == noDirectory:
		return failure.NotFound("there is no directory %s on %s", letter.Quote(cmp.Or(to.Dir, "."), 200), to.Name).
			WithHint("name the project's there: `atm bridge --ssh %s --dir DIR`", policy.Quote(to.Target))
	case code == sshFailed && is("Permission denied"):
		return failure.Refused("ssh %s: %s", to.Target, said).
			WithHint("this must work without a question: %s true. A key with a passphrase: ssh-add; a new key: ssh-copy-id", to.ssh())
	case code == sshFailed && is("Host key verification failed"):
		return failure.Refused("ssh %s: %s", to.Target, said).WithHint("look at its key once, by hand: %s true", to.ssh())
	case code == sshFailed:
		return failure.Failed("ssh %s: %s", to.Target, said).WithHint("to look: %s true", to.ssh())
	}
	return failure.Failed("on %s: %s", to.Name, said).WithHint("to look: %s atm version", to.ssh())
}

// explainThere is for an error of atm on the other side.
func (to SSH) explainThere(e failure.Error) error {
	err := failure.New(e.Code, "on %s: %s", to.Name, letter.Clip(e.Message, 300))
	if err.Exit == 0 {
		err = failure.Failed("%s", err.Message)
	}
	switch {
	case e.Code == "not_found":
		return err.WithHint("there, at the top of the project: `atm init NAME`; in another directory: `atm bridge --ssh %s --dir DIR`", policy.Quote(to.Target))
	case e.Code == "usage" && strings.Contains(e.Message, "--stdio"):
		return err.WithHint("atm there is too old: install the same version on both")
	case e.Hint != "":
		return err.WithHint("there: %s", letter.Clip(e.Hint.String(), 300))
	}
	return err
}

func publicKey(private []byte) string {
	return hostkey.EncodeKey(private[32:])
}

// said is what ssh and the other side print on stderr: kept until the bridge there has spoken, then shown.
type said struct {
	warn func(line string)

	mu      sync.Mutex
	isShown bool
	part    []byte // of a line
	last    string // line
}

func (s *said) Write(data []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.part = append(s.part, data...)
	for {
		line, rest, isWhole := bytes.Cut(s.part, []byte("\n"))
		if !isWhole && len(line) < maxHeader {
			return len(data), nil
		}
		s.part = rest
		if text := strings.TrimSpace(string(line)); text != "" {
			s.last = letter.Clip(text, 300)
			if s.isShown {
				s.warn(letter.Clip(strings.TrimPrefix(text, "atm: "), 500))
			}
		}
	}
}

func (s *said) show() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isShown = true
}

// text is the last line.
func (s *said) text() string {
	s.Write([]byte("\n"))
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// ThroughStreams makes the bridge the one that another has called: it speaks first. name sets this host's name, given
// the one that the other side knows it by.
func (b *Bridge) ThroughStreams(in io.Reader, out io.Writer, version string, name func(known wire.Name) error) error {
	reader := bufio.NewReaderSize(in, 64<<10)
	var theirs greeting
	got := make(chan error, 1)
	go func() {
		line, err := readLine(reader, maxHeader)
		if err == nil && (!bytes.HasPrefix(line, []byte(greetingMark)) || json.Unmarshal(line, &theirs) != nil) {
			err = errors.New("what came is no greeting")
		}
		got <- err
	}()
	err := errors.New("nothing came")
	select {
	case err = <-got:
	case <-time.After(greetWithin):
	}
	if err == nil && theirs.Protocol == protocol {
		_, err = hostkey.ParseHost(string(theirs.Host))
	}
	if err != nil {
		return failure.Usage("--stdio talks to the bridge of another machine: %v", err).WithHint("there: `atm bridge --ssh HOST`")
	}
	l := &link{Bridge: b, isServed: true}
	b.way, b.peer, b.isStranger = l, theirs.Host, true
	if err = name(theirs.Peer); err != nil {
		return err
	}
	isOver := false
	l.dial = func(context.Context) (*session, error) {
		if isOver { // who called calls again
			return nil, finalError{errEnded}
		}
		isOver = true
		mine := greeting{Protocol: protocol, Version: version, Team: b.Team.Name, Host: b.Host, Key: publicKey(b.key)}
		isFit := theirs.Protocol == protocol && theirs.Team == b.Team.Name
		if isFit {
			if err := l.meet(theirs.Key); err != nil {
				return nil, finalError{err}
			}
			b.isStranger = false
		}
		line, _ := json.Marshal(mine)
		if _, err := fmt.Fprintf(out, "%s\n", line); err != nil {
			return nil, finalError{err}
		}
		if !isFit { // which the other side explains
			return nil, finalError{errEnded}
		}
		return newSession(reader, out, func() {}), nil
	}
	return nil
}
