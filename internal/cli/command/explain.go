package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/config"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// known are the errors of the packages below that callers tell apart.
var known = []struct {
	matches func(error) bool
	as      func(string, ...any) *Error
	hint    string
}{
	{isA[*config.Error], Failed, "atm doctor names every mistake in team.toml"},
	{isA[*lockfile.HeldError], Locked, "try again, or wait longer: --lock-timeout 30s"},
	{isA[*mailbox.LeasedError], Locked, "take another: atm take"},
	{isA[teams.FormatError], Failed, "upgrade atm; `atm version` says which this is"},
	{is(teams.ErrUntrusted), Refused, "name it to accept it: --root DIR"},
	{isA[*teams.HopError], Refused, "end the turn without an answer, or begin anew: atm send"},
	{isA[*mailbox.ContentError], Usage, "what is not a short text can go as a file: --attach FILE"},
	{is(teams.ErrNoRoot), NotFound, "atm init alice bob, where the project begins; one that is elsewhere: --root DIR"},
	{is(teams.ErrNoTeam), NotFound, "atm team ls lists the teams"},
	{is(policy.ErrNoQuestion), NotFound, "atm pending lists what is asked"},
	{is(policy.ErrNotYours), Refused, "approvers in team.toml says who answers"},
	{is(teams.ErrNotShared), Refused, "atm team add NAME --shared makes an inbox that others take from"},
	{is(mailbox.ErrNotFound), NotFound, "atm ls --all lists your messages, atm search WORDS the team's"},
	{is(mailbox.ErrNoAgent), NotFound, "atm team lists the members"},
	{is(mailbox.ErrUnreadable), Refused, "chmod g+rwx the team's directory, or send as the inbox's owner"},
	{is(mailbox.ErrRunning), Refused, "stop it first: atm stop NAME; atm status NAME says which process it is"},
	{is(mailbox.ErrBeingTyped), Refused, "again in a moment; once it is read, atm withdraw sends a notice"},
	{is(mailbox.ErrNotHeld), Refused, "atm trace ID says who has it"},
	{is(mailbox.ErrWithdrawn), Refused, "atm show ID shows it again"},
	{is(mailbox.ErrExists), Refused, "atm team lists the members; atm team retire NAME makes room"},
	{is(durable.ErrNotDirectory), Failed, "atm doctor"},
	{is(syscall.ENOTDIR), Failed, "atm doctor"},
	{is(syscall.ENOSPC), Failed, "free some space and send again; nothing was lost"},
	{is(fs.ErrPermission), Refused, "atm doctor"},
	{is(syscall.EROFS), Failed, "atm doctor"},
}

func is(known error) func(error) bool {
	return func(err error) bool { return errors.Is(err, known) }
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// Explain gives an error of the packages below its exit code and its hint. What
// is an *Error already stays as it is, with what wrapping has added to its words.
func Explain(c *cli.Context, err error) *Error {
	if own, ok := errors.AsType[*Error](err); ok {
		shown := *own
		shown.Message = err.Error()
		return &shown
	}
	if e, ok := errors.AsType[*teams.UnknownError](err); ok {
		return unknownAgent(e)
	}
	if e, ok := errors.AsType[*teams.AmbiguousError](err); ok {
		short := Shorts(e.Candidates)
		return Ambiguous("%s", err).WithHint("more digits: %s", short).WithCandidates(strings.Fields(short)...)
	}
	if e, ok := errors.AsType[*mailbox.NotDurableError](err); ok {
		return Failed("%s", err).WithHint("retry with --id %s: it stays one message", e.ID)
	}
	for _, k := range known {
		if k.matches(err) {
			return k.as("%w", err).WithHint("%s", sandboxHint(c, err, k.hint))
		}
	}
	return Failed("%w", err)
}

// sandboxHint is the hint for what the system forbids an agent: most often a sandbox does.
func sandboxHint(c *cli.Context, err error, hint string) string {
	forbidden := errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
	if !forbidden || !InAgent() && os.Getenv("ATM_AGENT") == "" {
		return hint
	}
	where, found := c.App.Metadata["root"].(string)
	if !found {
		where = "the root"
	}
	return "a sandbox may forbid it: let it write to " + where
}

// unknownAgent is the error for a name that is nobody's: with the nearest one,
// and in a small team with all of them.
func unknownAgent(u *teams.UnknownError) *Error {
	e := NotFound("%s", u)
	names := Strings(u.Members)
	if u.Retired {
		return e.WithHint("atm team restore %s brings it back with its mail", u.Name)
	}
	hint := "`atm team` lists them"
	if len(names) <= 12 {
		hint = "members: " + strings.Join(names, ", ")
		e.WithCandidates(names...)
	}
	if near, ok := Nearest(string(u.Name), names); ok {
		hint = fmt.Sprintf("did you mean %q? %s", near, hint)
	}
	return e.WithHint("%s", hint)
}

// Shorts are ids as a line quotes them.
func Shorts(ids []wire.ID) string {
	n := letter.ShortLength(ids)
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = id.Short(n)
	}
	return strings.Join(out, " ")
}

// Report prints an error where the caller looks for it, and returns the exit
// code. Nothing that somebody else wrote reaches the terminal unescaped there.
func Report(c *cli.Context, err error) int {
	if err == nil {
		return ExitDone
	}
	if errors.Is(err, context.Canceled) {
		return ExitInterrupted
	}
	if errors.Is(err, syscall.EPIPE) {
		return ExitFailed // nobody reads any more: nobody is to be told
	}
	e := Explain(c, err)
	if e.Silent {
		return e.Exit
	}
	if e.Hint == "" && e.Code == "usage" && c.Command.HelpName != "" {
		e.Hint = c.Command.HelpName + " --help"
	}
	object := map[string]any{"error": e}
	maps.Copy(object, e.Extra)
	if c.Bool("json") && PrintJSON(object) == nil {
		return e.Exit
	}
	// Also where stdout takes no JSON: a full disk is not passed over in silence.
	fmt.Fprintln(os.Stderr, "atm: "+letter.Escape(e.Message))
	if e.Hint != "" {
		fmt.Fprintln(os.Stderr, "atm: hint: "+letter.Escape(e.Hint))
	}
	return e.Exit
}

// ReportHook is Report for what an agent's program calls: whatever goes wrong there
// is a line on stderr, nothing on stdout and exit 0, so that the program goes on.
func ReportHook(c *cli.Context, err error) int {
	if err == nil || errors.Is(err, syscall.EPIPE) {
		return ExitDone
	}
	e := Explain(c, err)
	if e.Silent {
		return e.Exit
	}
	fmt.Fprintln(os.Stderr, "atm: "+letter.Escape(e.Message))
	return ExitDone
}
