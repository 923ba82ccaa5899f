package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/failure"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/config"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/teams/rootdir"
	"github.com/agentteammail/atm/wire"
)

// known are errors of the packages below, with the kind and the hint that Explain gives them. The first match counts.
var known = []struct {
	matches func(error) bool
	make    func(format string, args ...any) *failure.Error
	hint    string
}{
	{isStdoutError, failure.Failed, "only the output failed: mail not shown stays unread, everything else was done"},
	{isA[*config.Error], failure.Failed, "atm doctor names every mistake in team.toml"},
	{isA[*lockfile.HeldError], failure.Locked, "try again, or wait longer: --lock-timeout 30s"},
	{isA[*mailbox.LeasedError], failure.Refused, "atm trace ID says who has it"},
	{is(rootdir.ErrFormat), failure.Refused, "for a larger number, upgrade atm; else write 1 into that file, or 2 if atm bridge was set up"},
	{is(rootdir.ErrNoDir), failure.Failed, "cd to a directory that exists"},
	{is(rootdir.ErrUntrusted), failure.Refused, "to accept it, name it: --root DIR"},
	{is(teams.ErrTooManyHops), failure.Refused, "end the turn without answering, or start a new thread: atm send"},
	{isA[*mailbox.ContentError], failure.Usage, "send it as a file: --attach FILE"},
	{is(rootdir.ErrNoRoot, rootdir.ErrNotRoot), failure.NotFound, "atm init alice bob at the top of your project; if it has a root: cd there, or --root DIR"},
	{is(teams.ErrNoTeam), failure.NotFound, "atm team ls lists the teams; for another machine: atm bridge trust HOST KEY"},
	{is(policy.ErrNoQuestion), failure.NotFound, "atm pending lists the open questions; for a message: atm ack or atm reply"},
	{is(teams.ErrAnswered), failure.NotFound, "atm pending lists the open questions"},
	{is(policy.ErrNotYours), failure.Refused, "approvers in team.toml says who may answer"},
	{is(session.ErrNotFound), failure.NotFound, "atm session ls --all lists them"},
	{is(teams.ErrForbidden), failure.Refused, "only a person may change team.toml"},
	{is(mailbox.ErrNotFound), failure.NotFound, "atm ls --all lists your messages, atm search WORDS the team's"},
	{is(mailbox.ErrKeyName), failure.Usage, "--once parser/1"},
	{is(mailbox.ErrKeyDamaged), failure.Failed, "atm ls --sent shows whether it was sent; to send it again, delete that file"},
	{is(mailbox.ErrDamaged), failure.Failed, "ask for it again: atm reply ID \"…\""},
	{is(mailbox.ErrNoContent), failure.NotFound, "ask for it again: atm reply ID \"…\""},
	{is(mailbox.ErrNoAgent), failure.NotFound, "atm team lists the members"},
	{is(mailbox.ErrUnreadable), failure.Refused, "chmod g+rwx the team's directory, or send as the inbox's owner"},
	{is(mailbox.ErrRunning), failure.Refused, "stop it first: atm stop NAME; atm status NAME shows its process"},
	{is(mailbox.ErrBeingTyped), failure.Refused, "try again in a moment; once it is read, atm withdraw sends a notice"},
	{is(mailbox.ErrNotHeld), failure.Refused, "atm trace ID says who has it"},
	{is(mailbox.ErrWithdrawn), failure.Refused, "atm show ID still shows it"},
	{is(mailbox.ErrExists), failure.Refused, "atm team lists the members; atm team retire NAME frees the name"},
	{is(process.ErrNoTable), failure.Failed, "run it outside the sandbox, or mount -t proc proc /proc"},
	{is(syscall.EXDEV), failure.Failed, "a container cannot rename a directory of its image: cp -a the root to a volume, and --root names it"},
	{is(syscall.EMFILE, syscall.ENFILE), failure.Failed, "ulimit -n 256, and try again"},
	{is(syscall.ENOSPC, syscall.EDQUOT), failure.Failed, "free some space, and try again; nothing was lost"},
	{is(durable.ErrNotDirectory, durable.ErrNotRegular, syscall.ENOTDIR, syscall.EROFS), failure.Failed, "atm doctor"},
	{is(fs.ErrPermission), failure.Refused, "atm doctor"},
}

func is(known ...error) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(known, func(k error) bool { return errors.Is(err, k) })
	}
}

// isStdoutError reports whether writing to stdout failed.
func isStdoutError(err error) bool {
	p, ok := errors.AsType[*fs.PathError](err)
	return ok && p.Path == os.Stdout.Name()
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// Explain gives any error an exit code and a hint. An *Error keeps its own, and gets the message of what wraps it.
func Explain(c *cli.Context, err error) *failure.Error {
	e := explain(c, err)
	e.Hint = CompleteHint(c, e.Hint)
	return e
}

func explain(c *cli.Context, err error) *failure.Error {
	if own, ok := errors.AsType[*failure.Error](err); ok {
		wrapped := *own
		wrapped.Message = err.Error()
		return &wrapped
	}
	if e, ok := errors.AsType[*teams.UnknownError](err); ok {
		return unknownAgent(err, e)
	}
	if e, ok := errors.AsType[*teams.UnknownHostError](err); ok {
		const hint = "atm bridge trust %s KEY; `atm bridge keygen` on that machine prints this line"
		hosts := Strings(e.Hosts)
		return failure.NotFound("%s", err).WithHint(hint, e.Host).WithCandidates(hosts...).WithNearest(string(e.Host), hosts)
	}
	if e, ok := errors.AsType[*teams.AmbiguousError](err); ok {
		short := Shorts(e.Candidates)
		return failure.Ambiguous("%s", err).WithHint("type more digits: %s", short).WithCandidates(strings.Fields(short)...)
	}
	if e, ok := errors.AsType[*session.AmbiguousError](err); ok {
		return failure.Ambiguous("%s", err).WithHint("one of these: %s", Join(e.IDs)).WithCandidates(Strings(e.IDs)...)
	}
	if e, ok := errors.AsType[*wire.SessionError](err); ok {
		return failure.Refused("%s", e.Reason).WithHint("atm session ls --all shows the state of each")
	}
	if e, ok := errors.AsType[*mailbox.NotDurableError](err); ok {
		return failure.Failed("%s", err).WithHint("it was sent, do not send it again: atm show %s", e.ID)
	}
	for _, k := range known {
		if !k.matches(err) {
			continue
		}
		hint := k.hint
		if c != nil && c.Args().First() != "" && (c.Args().Len() == 1 || strings.HasPrefix(c.Command.ArgsUsage, "NAME")) {
			hint = strings.NewReplacer("NAME", c.Args().First(), "ID", c.Args().First()).Replace(hint)
		}
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
			hint = permissionHint(err, hint)
		}
		if held, ok := errors.AsType[*lockfile.HeldError](err); ok && held.PID > 0 {
			hint += fmt.Sprintf("; if it was suspended: kill -CONT %d", held.PID)
		}
		return k.make("%w", err).WithHint("%s", hint)
	}
	return failure.Failed("%w", err)
}

// permissionHint says what to do about a file that may not be read or written. In an agent it names the sandbox.
func permissionHint(err error, hint string) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok && errors.Is(err, fs.ErrPermission) {
		hint = lookAt(p.Path)
	}
	if !InAgent() && os.Getenv("ATM_AGENT") == "" {
		return hint
	}
	return "a sandbox may forbid it: let it read and write the root, which `atm where` shows; otherwise: " + hint
}

// lookAt returns a command that shows who owns a path, or the nearest directory above it that is accessible.
func lookAt(path string) string {
	for _, err := os.Lstat(path); err != nil && path != filepath.Dir(path); _, err = os.Lstat(path) {
		path = filepath.Dir(path)
	}
	return "ls -ld " + policy.Quote(path) + " shows who owns it"
}

// Explain is Explain for a program that shows errors itself.
func (s *Scope) Explain(err error) *failure.Error { return Explain(s.c, err) }

// IsRefusal reports whether an error says that an answer is void and that retrying cannot help.
func IsRefusal(err error) bool {
	e, isOwn := errors.AsType[*failure.Error](err)
	return isOwn && (e.Code == "usage" || e.Code == "refused") || errors.Is(err, policy.ErrNotYours) || errors.Is(err, policy.ErrNoQuestion)
}

// unknownAgent names the nearest member and, in a team of up to twelve, all of them.
func unknownAgent(err error, u *teams.UnknownError) *failure.Error {
	e := failure.NotFound("%s", err).WithHint("`atm team` lists them")
	if u.Retired {
		return e.WithHint("atm team restore %s --team %s brings it back with its mail", u.Name, u.Team)
	}
	if u.Planned {
		return e.WithHint("atm team add %s --team %s makes its mailbox, as atm up does for all in team.toml", u.Name, u.Team)
	}
	if len(u.Members) <= 12 {
		e.WithHint("%s", listed(u.Members)).WithCandidates(Strings(u.Members)...)
	}
	if _, notID := wire.ParseFragment(string(u.Name)); notID == nil {
		e.WithHint("the id of a message? atm show %s, atm ack %[1]s, atm trace %[1]s; %s", u.Name, e.Hint)
	}
	return e.WithNearest(string(u.Name), Strings(u.Members))
}

// Report prints an error, as JSON on stdout or as text on stderr, and returns the exit code. With failsOpen, for verbs
// that an agent's program calls, it is a line on stderr and exit 0. Text of others is escaped.
func Report(c *cli.Context, err error, failsOpen bool) int {
	switch {
	case err == nil:
		return failure.ExitDone
	case failsOpen:
	case isStdoutError(err) && errors.Is(err, syscall.EPIPE): // its reader has enough; a runner's socket is no stdout
		return failure.ExitDone
	case errors.Is(err, context.Canceled):
		return failure.ExitInterrupted
	}
	e := Explain(c, err)
	if e.Silent {
		return e.Exit
	}
	if e.Hint == "" && e.Code == "usage" {
		e.Hint = cmp.Or(c.Command.HelpName, c.App.Name) + " --help"
	} else if e.Hint == "" {
		e.Hint = CompleteHint(c, "atm doctor")
	}
	if c.Command.Name == "doctor" && e.Code != "usage" && strings.HasSuffix(e.Hint, " doctor") {
		e.Hint = lookAt(cmp.Or(c.String("root"), os.Getenv("ATM_ROOT"), ".atm"))
	}
	if failsOpen {
		e.Hint, e.Exit = "", failure.ExitDone
	} else if c.Bool("json") && c.App.Metadata[printed] == nil {
		if PrintJSON(errorObject(e)) == nil { // on a full disk the error goes to stderr
			return e.Exit
		}
	}
	e.Print()
	return e.Exit
}

// errorObject is the JSON of an error, with what was done all the same.
func errorObject(e *failure.Error) map[string]any {
	object := map[string]any{}
	done, _ := JSON(e.Done)
	fields, _ := wire.ReadObject(done)
	for _, f := range fields {
		object[f.Name] = f.Value
	}
	object["error"] = e
	if e.Code == "timeout" {
		object["timeout"] = true
	}
	return object
}
