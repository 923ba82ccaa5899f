// Package runner is atm-runner, which runs one agent as a runspec.Spec on its stdin says. It is a program of its own
// because it links a terminal emulator, which would make every start of atm slower.
package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/output"
	"github.com/agentteammail/atm/cmd/internal/runner/sessions"
	"github.com/agentteammail/atm/cmd/internal/runspec"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/driver"
	"github.com/agentteammail/atm/internal/driver/agents"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/runhost"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/edits"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/internal/teamdir/push"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/internal/teamdir/work"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/ptyrun"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

// Main runs the program and returns its exit code.
func Main(version string, words []string, std output.Streams) int {
	version = command.Version(version)
	if len(words) == 1 && words[0] == "version" {
		fmt.Fprintln(std.Out, "atm-runner", version)
		return failure.ExitDone
	}
	if len(words) == 1 && words[0] == lookWord {
		return runLook(std)
	}
	if len(words) == 1 && words[0] == app.PaneWord {
		return runPane(std)
	}
	var spec runspec.Spec
	stdin := json.NewDecoder(std.In)
	if err := stdin.Decode(&spec); err != nil || len(words) > 0 {
		fmt.Fprintln(std.Err, "atm-runner: atm starts this program; to run an agent: atm run bob -- PROGRAM")
		return failure.ExitUsage
	}
	ctx, stop := output.UntilSignal(context.Background())
	defer stop()
	if spec.Attended {
		go func() {
			if isDetached := false; stdin.Decode(&isDetached) != nil { // atm has ended
				stop()
			}
		}()
	}
	endIfStuck(ctx, spec.Run)
	exit, err := run(ctx, version, spec, std.Err)
	report := runspec.Report{Code: exit.Code, Loop: exit.Loop, Tail: exit.Tail}
	if err != nil {
		report.Error = (&app.Given{}).Explain(err)
		if errors.Is(err, ptyrun.ErrRootGone) {
			report.Error.WithHint("a backup brings it back: `atm restore FILE --root %s`; a new one: `atm init`", policy.Quote(spec.Root))
		}
		report.Code, report.Hint = report.Error.Exit, string(report.Error.Hint)
	}
	command.WriteJSON(std.Out, report)
	if err != nil {
		return report.Code
	}
	return failure.ExitDone
}

// stuckAfter is how long the end of a run may take at most. An agent that ignores all signals but SIGKILL takes a few
// seconds, and each lock that somebody holds lockfile.DefaultTimeout. A test shortens it.
var stuckAfter = 30 * time.Second

// endIfStuck ends this process and its agent's if it has not ended long after ctx did. What it leaves is what a killed
// runner leaves.
func endIfStuck(ctx context.Context, run string) {
	context.AfterFunc(ctx, func() {
		time.AfterFunc(stuckAfter, func() {
			process.EndLeftovers(run)
			os.Exit(failure.ExitFailed)
		})
	})
}

func openTeam(spec runspec.Spec) (*teamdir.Team, error) {
	place := (&app.Given{Root: spec.Root}).Place()
	place.Dir = spec.Root
	found, _, err := rootdir.Find(place)
	if err != nil {
		return nil, err
	}
	root, err := teamdir.OpenFound(found, notices.Tell)
	if err != nil {
		return nil, err
	}
	root.KeysDir = app.KeysDir() // mail that is due may be for another host
	root.TypeInPane = app.TypeInPane
	return root.Team(spec.Team)
}

// run returns when the agent's program has exited for good and everything that it started is gone. If ctx ends it stops
// the agent, which may take some seconds.
func run(ctx context.Context, version string, spec runspec.Spec, stderr io.Writer) (exit ptyrun.Exit, err error) {
	team, err := openTeam(spec)
	if err != nil {
		return exit, err
	}
	name := spec.Agent
	endCommands := func() {}
	defer func() { endCommands() }() // after the release of the lock
	mail := &ptyrun.Mail{Mailbox: (*mailbox.Mailbox)(team.Box(name))}
	if err := mail.Hold(ctx); err != nil {
		return exit, err
	}
	defer mail.Release()
	// Whoever stops the agent records that first and then checks this lock, so one of the two sees the other.
	if team.LastStop(name) != spec.LastStop {
		return exit, failure.Refused("somebody stopped %s before it started", name).WithHint("`atm up %s`", name)
	}
	if err := team.Store.MayAct(ctx); err != nil { // git may have changed team.toml while atm read it
		return exit, err
	}
	o := options(version, spec, team)
	if spec.Fork != "" {
		if _, err := o.Driver.Fork(spec.Command, spec.Fork); err != nil {
			usage := failure.Usage("--fork %s: %w", letter.Clip(letter.Escape(spec.Fork), 60), err)
			if errors.Is(err, driver.ErrUnknown) {
				return exit, usage.WithHint("--driver says which one: `atm doctor --driver all` lists them")
			}
			return exit, usage.WithHint("`atm doctor --driver all` lists the programs; [resume] fork in their files says how")
		}
	}
	// Only after locking, because run.log may be another runner's. It must not be a link. Crashes are written to it,
	// too.
	if err := team.Dir().Mkdir(string(name) + "/run"); err != nil {
		return exit, err
	}
	log, err := team.Dir().OpenFile(string(name)+"/run/run.log", os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return exit, err
	}
	defer log.Close()
	debug.SetCrashOutput(log, debug.CrashOptions{})
	if err := team.SavePolicy(name, spec.Policy); err != nil {
		return exit, err
	}
	end, err := startCommands(team, name, spec.On)
	if err != nil {
		return exit, err
	}
	endCommands = end
	o.Mail = mail
	if len(spec.Serves) > 0 {
		origin := &wire.Origin{Via: "runner", Run: spec.Run, UID: app.Of(team).Origin().UID}
		o.Serves, o.Work = spec.Serves, work.Taker{Team: team, Agent: name, From: spec.Serves, Lease: spec.Lease, Origin: origin}
	}
	o.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if err := process.Subreaper(); err != nil {
		return exit, err
	}
	agent, err := ptyrun.Start(ctx, o)
	if err != nil {
		return exit, err
	}
	if len(agent.Leftovers) > 0 {
		left := fmt.Sprintf("atm: %s: ended the processes left by its last runner: %s", name, strings.Join(agent.Leftovers, ", "))
		fmt.Fprintln(stderr, letter.Escape(left))
	}
	until, stop := context.WithCancel(context.Background())
	defer stop()
	go notices.KeepLooking(until, team)
	return agent.Wait()
}

func options(version string, spec runspec.Spec, team *teamdir.Team) ptyrun.Options {
	name, box, p := spec.Agent, team.Box(spec.Agent), spec.Policy
	scope := app.Of(team)
	origin := &wire.Origin{Via: "runner", Run: spec.Run, UID: scope.Origin().UID}
	o := ptyrun.Options{
		Run: spec.Run, Command: spec.Command, Dir: spec.Dir, Env: spec.Env,
		Inject: ptyrun.Inject(spec.Inject), Restart: ptyrun.Restart(spec.Restart),
		Cols: spec.Cols, Rows: spec.Rows, Resume: spec.Resume, Prompt: spec.Prompt,
	}
	o.Host = runhost.Host{
		Version: version, Brought: spec.Brought, Rules: p.Rules, GoesOn: spec.GoesOn, Fork: spec.Fork, Anew: spec.Anew,
		Conversation: func(run string) string { return programs.ShownIn(team, name, run) },
		Carrier:      push.Carrier{Team: team, Name: name, Run: spec.Run},
		Follow: sessions.Options{
			Store: team.Sessions(), Begin: spec.Session, Capture: sessions.Capture(spec.Capture), Rules: spec.Rules, Mute: p.Mute,
			WhyKept: func(m *wire.Message) string { return team.WhyKept(m, name, p) },
			State:   func() (*reducer.State, error) { return team.State(name) },
		}.Follow,
		Authorize: func(right control.Right, pid int, by string) error {
			return scope.CheckRight(p, name, os.Getpid(), right, pid, by)
		},
		// These go to whoever answers the agent's questions.
		NotifyLead: func(ctx context.Context, q ask.Question) error {
			return notices.NotifyRequest(ctx, team, box, q, wire.ID(q.ID), origin)
		},
		WithdrawNotice: func(ctx context.Context, id wire.ID) error { return notices.WithdrawRequest(ctx, team, box, id) },
		Remind:         func(ctx context.Context, idle bool) error { return notices.Remind(ctx, team, box, idle, origin) },
		Edited:         func(ctx context.Context, path string) error { return edits.NoteEdit(ctx, team, box, path, origin) },
		HasAnswered: func(ctx context.Context, m *wire.Message) bool {
			return post.AnswersTo(ctx, team.Root(), m).HasFinished(m, box.Address(), box.Address())
		},
	}
	driver.Use(agents.Load(agents.Dir()))
	o.Driver = driver.ForCommand(spec.Command)
	if d, ok := driver.Named(spec.Driver); ok { // else "auto"
		o.Driver = d
	}
	if o.Driver.Protocol == "acp" {
		o.ACP = &ptyrun.ACP{}
	}
	return o
}
