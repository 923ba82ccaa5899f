package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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

// Explain gives an error of the packages below its exit code and its hint. What
// is an *Error already stays as it is, with what wrapping has added to its words.
func Explain(c *cli.Context, err error) *Error {
	var own *Error
	if errors.As(err, &own) {
		shown := *own
		shown.Message = err.Error()
		return &shown
	}
	if e := explainType(err); e != nil {
		return e
	}
	if e := explainValue(err); e != nil {
		return e
	}
	return explainSystem(c, err)
}

func explainType(err error) *Error {
	var unknown *teams.UnknownError
	var ambiguous *teams.AmbiguousError
	var held *lockfile.HeldError
	var format *teams.FormatError
	var untrusted *teams.UntrustedError
	var notDurable *mailbox.NotDurableError
	var hops *teams.HopError
	var content *mailbox.ContentError
	var leased *mailbox.LeasedError
	var mistakes *config.Error
	switch {
	case errors.As(err, &mistakes):
		return Failed("%s", err).WithHint("atm doctor names every mistake in team.toml")
	case errors.As(err, &unknown):
		return UnknownAgent(unknown)
	case errors.As(err, &ambiguous):
		ids := make([]string, len(ambiguous.Candidates))
		for i, id := range ambiguous.Candidates {
			ids[i] = string(id)
		}
		return Ambiguous("%s", err).WithHint("more digits: %s", Shorts(ambiguous.Candidates)).WithCandidates(ids...)
	case errors.As(err, &held):
		return Locked("%s", err).WithHint("try again, or wait longer: --lock-timeout 30s")
	case errors.As(err, &format):
		return Failed("%s", err).WithHint("upgrade atm; `atm version` says which this is")
	case errors.As(err, &untrusted):
		return Refused("%s", err).WithHint("name it to accept it: --root DIR")
	case errors.As(err, &notDurable):
		return Failed("%s", err).WithHint("retry with --id %s: it stays one message", notDurable.ID)
	case errors.As(err, &hops):
		return Refused("%s; are two agents thanking each other?", err).WithHint("end the turn without an answer, or begin anew: atm send")
	case errors.As(err, &content):
		return Usage("%s", err).WithHint("what is not a short text can go as a file: --attach FILE")
	case errors.As(err, &leased):
		return Locked("%s", err).WithHint("take another: atm take")
	}
	return nil
}

func explainValue(err error) *Error {
	known := []struct {
		err  error
		as   func(string, ...any) *Error
		hint string
	}{
		{teams.ErrNoRoot, NotFound, "atm init alice bob, where the project begins; one that is elsewhere: --root DIR"},
		{teams.ErrNoTeam, NotFound, "atm team ls lists the teams"},
		{policy.ErrNoQuestion, NotFound, "atm pending lists what is asked"},
		{policy.ErrNotYours, Refused, "approvers in team.toml says who answers"},
		{teams.ErrNotShared, Refused, "atm team add NAME --shared makes an inbox that others take from"},
		{mailbox.ErrNotFound, NotFound, "atm ls --all lists your messages, atm search WORDS the team's"},
		{mailbox.ErrNoAgent, NotFound, "atm team lists the members"},
		{mailbox.ErrUnreadable, Refused, "chmod g+rwx the team's directory, or send as the inbox's owner"},
		{mailbox.ErrRunning, Refused, "stop it first: atm stop NAME; atm status NAME says which process it is"},
		{mailbox.ErrBeingTyped, Refused, "again in a moment; once it is read, atm withdraw sends a notice"},
		{mailbox.ErrNotHeld, Refused, "atm trace ID says who has it"},
		{mailbox.ErrWithdrawn, Refused, "atm show ID shows it again"},
		{mailbox.ErrExists, Refused, "atm team lists the members; atm team retire NAME makes room"},
		{durable.ErrNotDirectory, Failed, "atm doctor"},
		{syscall.ENOTDIR, Failed, "atm doctor"},
		{syscall.ENOSPC, Failed, "free some space and send again; nothing was lost"},
	}
	for _, k := range known {
		if errors.Is(err, k.err) {
			return k.as("%w", err).WithHint("%s", k.hint)
		}
	}
	return nil
}

// explainSystem is for what the system forbids: in an agent's environment that
// is most often a sandbox.
func explainSystem(c *cli.Context, err error) *Error {
	as := Failed
	if errors.Is(err, fs.ErrPermission) {
		as = Refused
	} else if !errors.Is(err, syscall.EROFS) {
		return Failed("%w", err)
	}
	e := as("%w", err).WithHint("atm doctor")
	if InAgent() || os.Getenv("ATM_AGENT") != "" {
		where, known := c.App.Metadata["root"].(string)
		if !known {
			where = "the root"
		}
		e.WithHint("a sandbox may forbid it: let it write to %s", where)
	}
	return e
}

// UnknownAgent is the error for a name that is nobody's: with the nearest one,
// and in a small team with all of them.
func UnknownAgent(u *teams.UnknownError) *Error {
	e := NotFound("%s", u)
	names := Strings(u.Members)
	if u.Retired {
		return e.WithHint("atm team restore %s brings it back with its mail", u.Name)
	}
	if len(names) == 0 {
		return e.WithHint("the team has no members: atm team add %s", u.Name)
	}
	hint := "`atm team` lists them"
	if len(names) <= 12 {
		hint = "members: " + strings.Join(names, ", ")
		e.WithCandidates(names...)
	}
	near, found := Nearest(string(u.Name), names)
	if found && len(names) > 12 {
		e.WithCandidates(near)
	}
	if found {
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
	if errors.Is(err, errInterrupted) || errors.Is(err, context.Canceled) {
		return ExitInterrupted
	}
	if errors.Is(err, syscall.EPIPE) {
		return ExitFailed // nobody reads any more: nobody is to be told
	}
	e := Explain(c, err)
	if e.Silent {
		return e.Exit
	}
	if e.Hint == "" && len(e.Candidates) > 0 {
		e.Hint = "one of " + strings.Join(e.Candidates, ", ")
	}
	if e.Hint == "" && e.Code == "usage" && c.Command.HelpName != "" {
		e.Hint = c.Command.HelpName + " --help"
	}
	if c.Bool("json") && PrintJSON(e.object()) == nil {
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

// object is the error as JSON shows it.
func (e *Error) object() map[string]any {
	type shown struct {
		Code       string   `json:"code"`
		Message    string   `json:"message"`
		Hint       string   `json:"hint,omitempty"`
		Candidates []string `json:"candidates,omitempty"`
	}
	all := map[string]any{"error": shown{e.Code, e.Message, e.Hint, e.Candidates}}
	for k, v := range e.Extra {
		all[k] = v
	}
	return all
}
