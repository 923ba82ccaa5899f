package claude

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// What Claude Code says of its sessions, and where their inboxes are:
//
//	~/.claude/sessions/PID.json   the session of each process; CLAUDE_CONFIG_DIR takes the place of ~/.claude
//	messagingSocketPath           the session's inbox, from version 2.1.224 on
//
// All of that is untrusted. A session counts only if its file is small and this user's, names the process that the file
// is named after, and that process still runs, is this user's and was started when the file says. A socket counts only
// if nobody else can reach it, and the kernel says that the session's process listens on it.

// ErrNoSession is the error for a process of which Claude Code says nothing.
var ErrNoSession = errors.New("no such session of Claude Code")

// Session is what Claude Code says of one of its processes.
type Session struct {
	PID        int    `json:"pid"`
	ID         string `json:"sessionId"` // of the conversation, as in hooks: another one after /clear
	Dir        string `json:"cwd"`
	Entrypoint string `json:"entrypoint"`          // "cli": in a terminal; "sdk-cli": claude -p
	Kind       string `json:"kind"`                // "interactive"
	Socket     string `json:"messagingSocketPath"` // "": it has none
	Status     Status `json:"status"`
	StatusAt   int64  `json:"statusUpdatedAt"` // since when, in milliseconds since 1970
	WaitingFor string `json:"waitingFor"`      // if Status is Waiting: "permission prompt", "input needed", "dialog open"
	Version    string `json:"version"`
	ProcStart  string `json:"procStart"` // Linux: see process.Info; macOS: as ps writes it, in UTC

	// Mode is the permission mode, which only hooks tell: set it before Send.
	Mode string `json:"-"`

	configDir string
}

// Status is what a session does. The file has it within a second.
type Status string

const (
	Idle    Status = "idle"
	Busy    Status = "busy"
	Waiting Status = "waiting" // for its person
	Shell   Status = "shell"   // idle, while a command runs in the background
)

// IsSince reports whether its version is this one, as 2, 1, 197, or a later one.
func (s *Session) IsSince(version ...int) bool {
	var own []int
	for part := range strings.SplitSeq(s.Version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return false
		}
		own = append(own, n)
	}
	return slices.Compare(own, version) >= 0
}

// IsIdle reports whether the session waits for its next prompt.
func (s *Session) IsIdle() bool { return s.Status == Idle || s.Status == Shell }

const maxFile = 64 << 10 // bytes that are read

// ConfigDir returns the directory of Claude Code's files for a process with that environment, "NAME=VALUE" each; "": it
// does not say. A sender's environment may differ from the agent's: ask with the agent's (process.Environment).
func ConfigDir(environment []string) string {
	its := process.Variables(environment)
	dir := its["CLAUDE_CONFIG_DIR"]
	if dir == "" && its["HOME"] != "" {
		dir = filepath.Join(its["HOME"], ".claude")
	}
	return dir
}

// Find returns the session of a process. The error is ErrNoSession, or says in one line why the file is not believed.
func Find(configDir string, pid int) (*Session, error) {
	root, err := openSessions(configDir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return read(root, configDir, strconv.Itoa(pid)+suffix)
}

const suffix = ".json"

func openSessions(configDir string) (*durable.Root, error) {
	if !filepath.IsAbs(configDir) { // nothing is read from where a command happens to run
		return nil, ErrNoSession
	}
	root, err := durable.Open(filepath.Join(configDir, "sessions"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrNoSession
	}
	return root, err
}

// read reads and checks a session's file.
func read(root *durable.Root, configDir, name string) (*Session, error) {
	pid, err := strconv.Atoi(strings.TrimSuffix(name, suffix))
	if err != nil || pid <= 1 || name != strconv.Itoa(pid)+suffix {
		return nil, ErrNoSession
	}
	refuse := func(why string) error { return fmt.Errorf("session file %s of Claude Code: %s", name, why) }
	f, err := root.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrNoSession
	}
	if err != nil {
		return nil, refuse(reason(err))
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !isOurs(info) {
		return nil, refuse("it is another user's")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, refuse(reason(err))
	}
	if len(data) > maxFile {
		return nil, refuse("it is too large")
	}
	s := &Session{configDir: configDir}
	if json.Unmarshal(data, s) != nil {
		return nil, refuse("it is no session")
	}
	if s.PID != pid {
		return nil, refuse(fmt.Sprintf("it says that it is of process %d", s.PID))
	}
	if !s.isRunning() {
		return nil, refuse("its process has ended")
	}
	return s, nil
}

// isRunning reports whether the process that wrote the file still runs, and is this user's.
func (s *Session) isRunning() bool {
	p, ok := process.Find(s.PID)
	if !ok || !hasStarted(p, s.ProcStart) {
		return false
	}
	own, err := os.FindProcess(s.PID)
	return err == nil && own.Signal(syscall.Signal(0)) == nil
}

// hasStarted reports whether a process was started at the time that a session's file gives.
func hasStarted(p process.Info, procStart string) bool {
	if ticks, err := strconv.ParseUint(procStart, 10, 64); err == nil {
		return ticks == p.Start
	}
	text := strings.Join(strings.Fields(procStart), " ")
	for _, zone := range []*time.Location{time.UTC, time.Local} { // older versions wrote the local time
		t, err := time.ParseInLocation("Mon Jan 2 15:04:05 2006", text, zone)
		if err == nil && uint64(t.Unix()) == p.Start/1e6 { // macOS counts in microseconds
			return true
		}
	}
	return false
}

func isOurs(info os.FileInfo) bool {
	uid := durable.Owner(info)
	return uid != nil && *uid == os.Geteuid()
}

func reason(err error) string {
	if failed, ok := errors.AsType[*os.PathError](err); ok {
		err = failed.Err
	}
	return wire.Clip(err.Error(), 200)
}

// session returns what a process of Claude Code says of itself.
func session(p agents.Process) (*agents.Session, error) {
	s, err := Find(ConfigDir(process.Environment(p.PID)), p.PID)
	if err != nil {
		return nil, err
	}
	says := &agents.Session{
		ID: s.ID, Activity: reducer.Unknown, Since: time.UnixMilli(s.StatusAt), WaitingFor: s.WaitingFor,
		// Older ones end their turn with it; and 2.1.332 shows its model twice why it may not stop.
		TakesContextAtStop: s.IsSince(2, 1, 197),
		Open: func(mode string) (delivery.Way, error) {
			s.Mode = mode
			return Way{Session: s}, s.MayTake()
		},
	}
	switch s.Status {
	case Idle, Shell:
		says.Activity = reducer.Idle
	case Busy:
		says.Activity = reducer.Thinking
	case Waiting:
		says.Activity = reducer.AwaitingInput
		if s.WaitingFor == "permission prompt" {
			says.Activity = reducer.Confirming
		}
	}
	return says, nil
}
