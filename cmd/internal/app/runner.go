package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/agentteammail/atm/cmd/internal/aswire"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/driver/agents"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/runinfo"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/wire"
)

// AnswerWithin limits the first answer of a runner, which comes at once unless the runner or the machine is stuck.
const AnswerWithin = 3 * time.Second

// AskRunner connects to a member's runner, calls ask, and explains the error.
func (s *Scope) AskRunner(ctx context.Context, name wire.Name, ask func(*control.Client) error) error {
	dialCtx, cancel := context.WithTimeout(ctx, AnswerWithin)
	client, err := s.Team.DialRunner(dialCtx, name)
	cancel()
	if err == nil {
		defer client.Close()
		client.By = s.by()
		err = ask(client)
	}
	return s.RunnerError(name, err)
}

// by is the name under which this process asks a runner; "": none, as a person's may be.
func (s *Scope) by() string {
	return string(s.Actor().Name)
}

// RunnerError gives an error of a member's runner its exit code and its hint.
func (s *Scope) RunnerError(name wire.Name, err error) error {
	if answer, ok := errors.AsType[*control.Error](err); ok {
		e := failure.New(answer.Code, "%s: %s", name, letter.Escape(answer.Message)) // it may quote the screen
		e.Exit = cmp.Or(e.Exit, failure.ExitFailed)
		return e.WithHint("%s", cmp.Or(foreignHint(name, err), tryHint(name, answer.Try), failure.Say("`atm status %s`", name)))
	}
	if errors.Is(err, control.ErrNotAnswering) {
		return failure.Failed("the runner of %s does not answer", name).
			WithHint("`atm stop %s` ends it; in a container, it has to be typed there", name)
	}
	if errors.Is(err, control.ErrNoRunner) {
		return notRun(s.Team, name)
	}
	return err
}

// notRun is the error about a member that atm does not run now.
func notRun(t *teamdir.Team, name wire.Name) error {
	if err := CheckRunnable(t, name); err != nil {
		return err
	}
	if p := programs.Of(t, name); len(p) > 0 {
		return failure.Failed("atm did not start %s, so it reaches no more than its mail: %s", name, p[0]).
			WithHint("`atm send %s \"…\"`; the rest is done in its own terminal", name)
	}
	return failure.Failed("%s is not running", name).WithHint("`%s`", RunCommand(t, name))
}

// CheckRunnable returns the error about a member that atm never runs: a person, or a shared inbox.
func CheckRunnable(t *teamdir.Team, name wire.Name) error {
	if c, _ := t.Config(); c.IsPerson(name) {
		return personError(name)
	}
	if isShared, _ := claim.Shared(t.Box(name)); isShared {
		return failure.Refused("%s is a shared inbox", name).WithHint("`atm ls %s`; an agent that takes from it: `atm run NAME --serve %[1]s -- CMD`", name)
	}
	return nil
}

// personError says that a member is a person.
func personError(name wire.Name) error {
	return failure.Refused("%s is a person", name).WithHint("`atm send %s \"…\"`; an agent needs another name: `atm run NAME -- CMD`", name)
}

// foreignHint is for a runner that this process cannot talk to; "": for any other error.
func foreignHint(name wire.Name, err error) failure.Hint {
	if e, ok := errors.AsType[*control.OtherUserError](err); ok {
		who := letter.Escape(e.User)
		if who != "root" {
			who += " and root"
		}
		return failure.Say("only %s may do that; `atm send %s \"…\"` reaches the agent", who, name)
	}
	e, ok := errors.AsType[*control.OtherVersionError](err)
	switch {
	case !ok:
		return ""
	case e.PID == 0:
		return "use the version of atm that started it"
	}
	return failure.Say("use the version of atm that started it, or end it and its agent: kill %d", e.PID)
}

// tryHint says what to type instead of a request that a member's runner did not carry out; "": it does not know. Whoever
// is to answer a question sees it first.
func tryHint(name wire.Name, tries []control.Try) failure.Hint {
	look, acts := "", []string{}
	for _, t := range tries {
		switch {
		case t.Op == "screen":
			look = fmt.Sprintf("`atm screen %s`", name)
			if len(tries) > 1 {
				look += " shows it"
			}
		case t.Op == "attach":
			acts = append(acts, fmt.Sprintf("`atm attach %s`", name))
		case t.Op == "interrupt":
			acts = append(acts, fmt.Sprintf("`atm interrupt %s` ends its turn", name))
		case t.Op == "type" && t.Raw:
			acts = append(acts, "--raw to type anyway")
		case t.Op == "type" && t.Enter:
			acts = append(acts, fmt.Sprintf("`atm type %s \"…\" --enter` begins a turn with a text", name))
		case t.Op == "answer":
			verb, option := "approve", "OPTION"
			if t.Deny {
				verb, option = "reject", ""
			}
			if t.Option == "" {
				look = "`atm pending` shows the question"
			} else {
				option = policy.Quote(t.Option)
			}
			acts = append(acts, string(failure.Say("`%s`", JoinFilled(" ", "atm "+verb, string(name), option))))
		}
	}
	if n := len(acts) - 1; n > 0 {
		acts[n] = "or " + acts[n]
	}
	return failure.Hint(JoinFilled("; ", look, strings.Join(acts, ", ")))
}

// RunCommand returns the command that starts a member as team.toml configures it, or as it last ran. CMD stands for the
// program if neither is known or the command cannot be typed.
func RunCommand(t *teamdir.Team, name wire.Name) string {
	c, _ := t.Config()
	run, _ := runinfo.Read(t.Dir(), name)
	last, configured := run.Command, c.Members[name].Command
	if len(configured) > 0 && (len(last) == 0 || slices.Equal(last, configured)) {
		return "atm up " + string(name)
	}
	line := "atm run " + string(name)
	if len(last) > 0 && !slices.Contains([]string{"", agents.None, filepath.Base(last[0])}, run.Driver) {
		line += " --driver " + run.Driver
	}
	again := line + " -- " + policy.QuoteAll(last)
	if len(last) == 0 || len(again) > 200 || letter.Escape(again) != again {
		return line + " -- CMD"
	}
	return again
}

// Interrupt interrupts a member's turn.
func (s *Scope) Interrupt(ctx context.Context, name wire.Name) (o control.Outcome, err error) {
	if err := s.MayAct(policy.Interrupt, name); err != nil {
		return o, err
	}
	if running, _ := s.Team.Running(name); !running {
		if o, err = aswire.Cancel(ctx, s.Team, name); err != nil || o.Done != "" {
			return o, err
		}
	}
	err = s.AskRunner(ctx, name, func(c *control.Client) (err error) {
		o, err = c.Interrupt(ctx)
		return err
	})
	return o, err
}

// CheckTyped refuses a text that is typed only if that is asked for.
func CheckTyped(text string) error {
	isControl := func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\n\t", r) }
	if strings.ContainsFunc(text, isControl) {
		return failure.Usage("the text has control characters").WithHint(`atm type NAME --raw '\t'`)
	}
	return nil
}

// Type types into a member's terminal.
func (s *Scope) Type(ctx context.Context, name wire.Name, r control.TypeRequest) (o control.Outcome, err error) {
	if err := s.MayAct(policy.Type, name); err != nil {
		return o, err
	}
	r.By = s.by()
	err = s.AskRunner(ctx, name, func(c *control.Client) (err error) {
		o, err = c.Type(ctx, r)
		return err
	})
	return o, err
}
