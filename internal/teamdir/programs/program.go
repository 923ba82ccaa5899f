// Package programs knows the programs of members: those that people have started under a member's name and those of atm's
// runs, as their hooks note them in the member's run directory; the ways that are open into each of them; whose a
// conversation is that a server has for several; and where a program's question is answered.
package programs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/tmux"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// Program is a program under a member's name, of a person's or of a run of atm, and the conversation that is open in it.
// Its hooks note it when a session and when a turn begins.
type Program struct {
	Tool  string `json:"tool"` // the name of its vendor
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // see process.Info

	Session string    `json:"session,omitempty"` // the conversation, as its hooks name it
	Entry   string    `json:"entry,omitempty"`   // how it was started, in its own words: see IsAttended
	Mode    string    `json:"mode,omitempty"`    // its permission mode, in its own words
	Run     string    `json:"run,omitempty"`     // of atm, whose program it is; "": a person has started it
	Flags   string    `json:"flags,omitempty"`   // what a command in it needs to act as the member: " --as bob"
	Opens   []string  `json:"opens,omitempty"`   // the ways (agents.Way) that its hooks have opened
	Server  string    `json:"server,omitempty"`  // the socket of the server that has the conversation, and has run its hooks
	At      time.Time `json:"at,omitzero"`       // when its hooks last said so

	Pane *tmux.Pane `json:"pane,omitempty"` // in which its person started it

	Space  string `json:"space,omitempty"` // where PID is its number: see processSpace
	Lasted bool   `json:"lasted,omitzero"` // two of its hooks have said so: PID is not a process between it and its hooks
}

func (p Program) String() string { return fmt.Sprintf("%s (process %d)", wire.Clip(p.Tool, 20), p.PID) }

// IsRunning reports whether its process runs.
func (p Program) IsRunning() bool { return process.Info{PID: p.PID, Start: p.Start}.IsRunning() }

// hasEnded reports whether the program has certainly ended.
func (p Program) hasEnded() bool { return p.Lasted && p.Space == processSpace() && !p.IsRunning() }

// processSpace names the host and, on Linux, the namespace of processes. Elsewhere a process's number says nothing.
func processSpace() string {
	host, _ := os.Hostname()
	namespace, _ := os.Readlink("/proc/self/ns/pid")
	return strings.TrimSpace(host + " " + namespace)
}

// SessionEnd is the event for the session of a program that has ended without saying so.
func (p Program) SessionEnd(other string) wire.Event {
	e := wire.Event{Source: wire.SourceHook, Kind: wire.SessionEnd, Session: p.Session}
	if e = e.With("transport", "hook").With(wire.FieldReason, "its program has ended"); other != "" {
		e = e.With(reducer.OtherSession, other)
	}
	return e
}

// OtherSession returns the session of the member's newest program that runs beside this one; "": none is known.
func OtherSession(t *teamdir.Team, name wire.Name, p Program) (session string) {
	for _, other := range Of(t, name) {
		if other.PID != p.PID && other.Session != p.Session {
			session = cmp.Or(other.Session, session)
		}
	}
	return session
}

// IsAttended reports whether the program has a prompt for its person, as far as it says: one of a script has none.
func (p Program) IsAttended() bool { return p.Entry == "" || p.Entry == "cli" }

// programsDir, in a member's directory, has a file for each.
const programsDir = "/run/programs"

func File(name wire.Name, pid int) string {
	return string(name) + programsDir + "/" + strconv.Itoa(pid) + ".json"
}

// noteEvery is how old the note of a program may be that has nothing new to say.
const noteEvery = time.Minute

// This returns the program whose hook this is, with its tool and process only.
func This(tool string) Program {
	info, _ := process.Program() // zero if it cannot be told
	return Program{Tool: tool, PID: info.PID, Start: info.Start}
}

// Note notes that a program uses the member's name, and forgets those that have ended; an event says so of the
// session of one that was killed. isNew says that its session begins; one that goes on keeps the ways that were noted.
func Note(t *teamdir.Team, name wire.Name, p Program, isNew bool) error {
	if p.PID == 0 {
		return nil
	}
	lock, err := lockNotes(t, name)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	p.At, p.Space = time.Now().UTC().Round(0), processSpace()
	noted := NotedPrograms(t, name)
	for _, other := range noted {
		p.Lasted = p.Lasted || other.PID == p.PID && other.Start == p.Start
	}
	var unsaid error
	if slices.ContainsFunc(noted, Program.hasEnded) {
		unsaid = endSessions(t, name, append(slices.Clone(noted), p))
	}
	for _, other := range noted {
		switch {
		case !other.IsRunning():
			t.Dir().Remove(File(name, other.PID))
		case other.PID == p.PID && other.Session == p.Session && !isNew:
			if p.Opens == nil {
				p.Opens = other.Opens
			}
			isRecent := p.At.Sub(other.At).Abs() < noteEvery
			if other.At = p.At; isRecent && reflect.DeepEqual(other, p) {
				return unsaid
			}
		}
	}
	return errors.Join(unsaid, saveProgram(t, name, p))
}

// endSessions notes in the member's log which sessions have ended with their programs.
func endSessions(t *teamdir.Team, name wire.Name, noted []Program) error {
	s, err := t.State(name)
	if err != nil {
		return err
	}
	var events []wire.Event
	for _, p := range EndedUnsaid(noted, s) {
		events = append(events, p.SessionEnd(OtherSession(t, name, p)))
	}
	return t.Box(name).Log().Append(context.Background(), events...)
}

// EndedUnsaid returns those of a member's programs that have ended with a session that is open as far as its events say.
func EndedUnsaid(noted []Program, s *reducer.State) (ended []Program) {
	for _, p := range noted {
		goesOn := func(other Program) bool { return other.Session == p.Session && other.IsRunning() }
		if p.Session == "" || !p.hasEnded() || slices.ContainsFunc(noted, goesOn) {
			continue
		}
		if ses := s.SessionOf(p.Session); ses != nil && ses.Activity != reducer.Exited {
			ended = append(ended, p)
		}
	}
	return ended
}

// lockNotes keeps the notes of a member's programs as they are while one of them is changed.
func lockNotes(t *teamdir.Team, name wire.Name) (*lockfile.Lock, error) {
	return t.Locks().Lock(context.Background(), string(name)+".programs", lockfile.Exclusive, lockfile.DefaultTimeout, t.Box(name).CheckPresent)
}

func saveProgram(t *teamdir.Team, name wire.Name, p Program) error {
	dir := string(name) + programsDir
	if err := cmp.Or(t.Dir().Mkdir(path.Dir(dir)), t.Dir().Mkdir(dir)); err != nil {
		return err
	}
	data, _ := json.Marshal(p) // strings, numbers and a time: cannot fail
	return t.Dir().Replace(File(name, p.PID), append(data, '\n'), false)
}

// EndedSessions returns the conversations of a member's programs that have ended without saying so, as far as these are
// still noted.
func EndedSessions(t *teamdir.Team, name wire.Name) (sessions []string) {
	for _, p := range NotedPrograms(t, name) {
		if p.Session != "" && !p.IsRunning() {
			sessions = append(sessions, p.Session)
		}
	}
	return sessions
}

// Forget undoes Note when the session ends.
func Forget(t *teamdir.Team, name wire.Name, p Program) {
	if p.PID == 0 {
		return
	}
	if lock, err := lockNotes(t, name); err == nil {
		defer lock.Unlock()
	}
	t.Dir().Remove(File(name, p.PID))
}

// Of returns the programs that people have started under a member's name and that still run, the oldest first.
// One that began its session before it had hooks is not known.
func Of(t *teamdir.Team, name wire.Name) []Program {
	return slices.DeleteFunc(RunningPrograms(t, name), func(p Program) bool { return p.Run != "" })
}

// RunningPrograms returns those that atm runs, too.
func RunningPrograms(t *teamdir.Team, name wire.Name) []Program {
	all := slices.DeleteFunc(NotedPrograms(t, name), func(p Program) bool { return !p.IsRunning() })
	slices.SortFunc(all, func(a, b Program) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.PID, b.PID)) })
	return all
}

// ShownIn returns the conversation that the program of a run of atm showed last, also if that has ended; "": none is noted.
func ShownIn(t *teamdir.Team, name wire.Name, run string) string {
	var last Program
	for _, p := range NotedPrograms(t, name) {
		if run != "" && p.Run == run && p.Session != "" && p.At.After(last.At) {
			last = p
		}
	}
	return last.Session
}

func NotedPrograms(t *teamdir.Team, name wire.Name) (all []Program) {
	files, _ := t.Dir().Names(string(name) + programsDir) // there is none, usually
	for _, file := range files {
		var p Program
		data, err := t.ReadRunFile(name, path.Base(programsDir)+"/"+file)
		if err == nil && json.Unmarshal(data, &p) == nil && file == strconv.Itoa(p.PID)+".json" {
			if !areFlags(t, p.Flags, name) {
				p.Flags = ""
			}
			if !p.Pane.IsValid() {
				p.Pane = nil
			}
			if p.At.After(time.Now().Add(noteEvery)) { // the clock was set back since
				p.At = time.Time{}
			}
			all = append(all, p)
		}
	}
	return all
}

// areFlags reports whether a text is nothing but flags that say who the member is. It stands beside mail, outside of what
// marks that as a teammate's, and agents can write the file that has it.
func areFlags(t *teamdir.Team, text string, name wire.Name) bool {
	text = strings.TrimPrefix(text, " --root "+policy.Quote(t.Root().Path))
	text = strings.TrimPrefix(text, " --team "+string(t.Name))
	as := []string{"", " --as " + string(name), " --as @" + string(name), " --as " + string(name) + "@" + string(t.Name)}
	return slices.Contains(as, text)
}

// OwnersOf returns the members, of any team, whose program, started by a person, is the first of these processes that is
// one: several if these share it, as a server. A member can remove the note of its program.
func OwnersOf(r *teamdir.Root, pids []int) (owners []wire.Address) {
	nearest := len(pids)
	for t, name := range members(r) {
		for _, p := range Of(t, name) {
			i := slices.Index(pids, p.PID)
			if i < 0 || i > nearest {
				continue
			}
			if i < nearest {
				nearest, owners = i, nil
			}
			owners = append(owners, t.Box(name).Address())
		}
	}
	return owners
}
