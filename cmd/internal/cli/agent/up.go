package agent

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/teamdir/config"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

var upCommand = &cli.Command{
	Name: "up", ArgsUsage: "[NAME…]", Usage: "start the team: every member with a command in team.toml",
	UsageText: `atm up
atm up bob
atm init --toml    writes a team.toml to start from`,
	Description: `Waits until each member is ready, or says why it is not; members that already run count too.
With NAME it starts these and the members in their "after". Run it again after an interrupt.
Exit 6: some are not ready.`,
	Flags: []cli.Flag{
		resumeFlag,
	},
	Action: command.With(app.OpenTeam, up),
}

// A resultList prints each result as it comes. With --json they are one document at the end, unless they are a stream.
type resultList struct {
	Members []result `json:"members"`

	p  *command.Printer
	mu sync.Mutex
}

func (l *resultList) isDocument() bool { return l.p.IsJSON && !l.p.IsStream }

func (l *resultList) add(r result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Members = append(l.Members, r)
	switch {
	case l.isDocument():
	case r.State == "failed" && l.p.IsQuiet: // its reason is no confirmation
		failure.PrintLine(l.p.Err, "atm: "+r.String())
	default:
		l.p.Confirming().Print(r) // up and down go on without a reader
	}
}

// end prints the document, or puts it beside an error.
func (l *resultList) end(err error) error {
	if !l.isDocument() || err != nil && len(l.Members) == 0 {
		return err
	}
	return l.p.PrintDone(l, "printed", err)
}

// A startup is one call of up.
type startup struct {
	s       *app.Scope
	p       *command.Printer
	options runOptions
	plan    *config.Config // without those who were retired
	program string         // atm-runner
	names   []wire.Name    // the members to start, in this order
	results *resultList
}

func up(c *cli.Context, s *app.Scope, p *command.Printer) (err error) {
	u := &startup{s: s, p: p, options: runOptions{resume: resumeOf(c)}, results: &resultList{p: p}}
	u.plan, err = s.Team.Config()
	if err = cmp.Or(s.CheckAccepted(), err); err != nil { // in this order: git may write the file meanwhile
		return err
	}
	if u.program, err = command.FindCompanion(c, app.Runner, "which runs agents"); err != nil {
		return err
	}
	if err := u.choose(c.Context, c.Args().Slice()); err != nil {
		return err
	}
	warnOfDrivers(p)
	ctx, stop := app.Interruptible(c.Context)
	defer stop()
	return u.results.end(u.start(ctx))
}

// choose selects the named members and those that start before them, or all. It creates all mailboxes, also of people.
func (u *startup) choose(ctx context.Context, words []string) error {
	isRetired := func(n wire.Name) bool { return !u.s.Team.Box(n).Exists() && keep.WasRetired(u.s.Team.Store, n) }
	nobody := "no member"
	for _, n := range u.plan.Startable() {
		if len(words) == 0 && isRetired(n) {
			nobody = "no other member"
			u.p.Warn("%s is not started, since it was retired: `atm team restore %[1]s` brings it back", n)
		}
	}
	plan := *u.plan
	plan.Members = maps.Clone(plan.Members)
	maps.DeleteFunc(plan.Members, func(n wire.Name, _ config.Member) bool { return isRetired(n) })
	u.plan = &plan
	startable := u.plan.Startable()
	var named []wire.Name
	for _, word := range words {
		a, err := u.s.Team.ParseAddress(word) // @bob, bob@main
		if err != nil {
			return err
		}
		if a.Team != u.s.Team.Name || a.Host != "" || !slices.Contains(startable, a.Agent) {
			_, err := u.s.Member(word)
			if errors.Is(err, mailbox.ErrNoMailbox) && len(named) == 0 && len(words) > 1 && !slices.ContainsFunc(words[1:], u.s.IsMember) {
				e := u.p.Explain(err) // start carol bash
				return e.WithHint("`atm run %s -- %s`; %s", word, policy.QuoteAll(words[1:]), e.Hint.String())
			}
			return cmp.Or(err, noCommand(u.s.Team, a.Agent))
		}
		named = append(named, a.Agent)
	}
	if len(words) == 0 {
		named = startable
	}
	if len(named) == 0 {
		return failure.Usage("%s has a command in team.toml", nobody).
			WithHint("`atm init --toml` writes one to start from; `atm run NAME -- claude` works without one")
	}
	for _, n := range u.plan.StartOrder(named) {
		if err := u.s.May(policy.Start, n); err != nil {
			return err
		}
		if slices.Contains(startable, n) { // else a person starts it
			u.names = append(u.names, n)
		}
	}
	for n := range u.plan.Members {
		if err := u.s.Team.Store.Create(ctx, n); err != nil && !errors.Is(err, mailbox.ErrExists) {
			return err
		}
	}
	return nil
}

func (u *startup) start(ctx context.Context) error {
	errs := u.plan.Start(ctx, u.names, func(ctx context.Context, n wire.Name) error {
		r, err := u.startMember(ctx, n)
		if err == nil {
			u.results.add(r)
		}
		return err
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var failed []wire.Name
	for _, n := range u.names {
		if errs[n] == nil {
			continue
		}
		e := u.p.Explain(errs[n])
		why := strings.TrimPrefix(e.Message, string(n)+": ")
		u.results.add(result{Name: n, State: "failed", Detail: app.JoinFilled("; ", why, e.Hint.String())})
		failed = append(failed, n)
		if !u.isRunning(n) { // for atm team, which shows it
			event := wire.Event{Source: wire.SourceCLI, Kind: wire.StateChange}.With("new", "error").With("detail", e.Message)
			u.s.Team.Box(n).Log().Append(ctx, event)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	e := failure.Failed("not ready: %s", app.Join(failed)).WithHint("`atm up` tries again")
	if len(failed) < len(u.names) {
		e.Code, e.Exit = "partial", failure.ExitPartial
	}
	return e
}

// startMember starts a member, unless it runs or somebody else starts it first, and waits until it is ready.
func (u *startup) startMember(ctx context.Context, n wire.Name) (r result, err error) {
	k := &call{u.s, u.p, u.s.Team.Box(n)}
	if u.isRunning(n) {
		if r, err := k.awaitReady(ctx, nil); err == nil || ctx.Err() != nil || u.isRunning(n) {
			return r, err
		} // else it was about to end
	}
	spec, err := k.spec(ctx, u.plan, u.options)
	if err != nil {
		return r, err
	}
	p, err := startRunner(u.program, spec, u.p.Err)
	if err != nil {
		return r, err
	}
	r, err = k.awaitReady(ctx, p)
	if e, ok := errors.AsType[*failure.Error](err); ok && e.Exit == failure.ExitRefused && u.isRunning(n) {
		return k.awaitReady(ctx, nil)
	}
	return r, err
}

// isRunning is also true if nobody can tell.
func (u *startup) isRunning(n wire.Name) bool {
	running, err := u.s.Team.Running(n)
	return running || err != nil
}
