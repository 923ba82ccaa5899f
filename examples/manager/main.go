// Command manager runs one agent with atm's packages, as a PTY manager does: it starts the agent by the name of its
// driver, prints its events, asks it a question, answers its permission requests, reads its screen, interrupts it,
// types into it and stops it.
//
//	go run . claude claude                        # the driver's name, then the command
//	go run . -ask 'ls | wc -l' plain bash --norc
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/ptyrun"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/rootdir"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

func main() {
	question := flag.String("ask", "echo hello", "ask the agent this `TEXT`")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := manage(ctx, *question, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}

func manage(ctx context.Context, question string, args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("go run . DRIVER COMMAND…, DRIVER is one of %s", drivers())
	}
	dir, err := os.MkdirTemp("", "manager-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	a, err := start(ctx, dir, args[0], args[1:])
	if err != nil {
		return err
	}
	defer a.team.Root().Close()
	defer a.hold.Release()
	return errors.Join(a.exercise(ctx, question), a.stop(ctx))
}

// drivers lists the drivers to choose from. acp is not one: that needs ptyrun.Options.ACP, which this example leaves out.
func drivers() string {
	names := slices.DeleteFunc(driver.Names(), func(name string) bool { return name == "acp" })
	return strings.Join(names, ", ")
}

// agent is bob, which runs, in a team with me.
type agent struct {
	team    *teams.Team
	me, bob *mailbox.Box
	hold    *mailbox.Runner
	ended   chan error
	exit    ptyrun.Exit
}

// start makes the team and runs bob's program.
func start(ctx context.Context, dir, driverName string, command []string) (*agent, error) {
	d, ok := driver.Named(driverName)
	if !ok || driverName == "acp" {
		return nil, fmt.Errorf("no driver %q: there are %s", driverName, drivers())
	}
	path := filepath.Join(dir, ".atm")
	if _, err := rootdir.Make(path); err != nil {
		return nil, err
	}
	root, err := teams.Open(rootdir.Found{Path: path}, nil)
	if err != nil {
		return nil, err
	}
	team, err := root.CreateTeam("main")
	if err != nil {
		return nil, err
	}
	for _, name := range []wire.Name{"me", "bob"} {
		if err := team.Create(ctx, name); err != nil {
			return nil, err
		}
	}
	a := &agent{team: team, me: team.Box("me"), bob: team.Box("bob"), ended: make(chan error, 1)}
	if a.hold, err = a.bob.Store().HoldRunner(ctx, "bob"); err != nil {
		return nil, err
	}
	run := string(wire.NewID())
	options := ptyrun.Options{
		Box: a.bob, Run: run, Command: command, Dir: dir, Driver: d, Cols: 120, Rows: 30,
		Env: append(os.Environ(), "ATM_RUN="+run, "TERM=xterm-256color", "PS1=$ "), Hold: a.hold,
		Inject: ptyrun.Execute, // a shell runs its mail; without this it is told to read it
		// The manager's policy. Ask, the default, answers nothing.
		Decide: func(driver.Dialog) ptyrun.Decision { return ptyrun.Ask },
	}
	go a.print(ctx)
	go func() {
		exit, err := ptyrun.Run(context.WithoutCancel(ctx), options)
		a.exit = exit
		a.ended <- err
	}()
	return a, a.waitFor(ctx, func(s control.Status) bool { return s.State == "idle" })
}

// print prints bob's events: states, permission requests, and the end of the program.
func (a *agent) print(ctx context.Context) {
	watcher.Until(ctx, []*mailbox.Box{a.bob}, watcher.Options{Events: true}, func(entry watcher.Entry) (done bool, err error) {
		if e := entry.Event; e != nil && e.Kind == "state_change" {
			fmt.Printf("bob: %s, was %s\n", e.Text("new"), e.Text("previous"))
		} else if e != nil && (e.Kind == "confirm_required" || e.Kind == "exited") {
			fmt.Printf("bob: %s\n", e.Kind)
		}
		return false, nil
	})
}

// exercise asks bob a question, reads the screen, interrupts and types.
func (a *agent) exercise(ctx context.Context, question string) error {
	answer, err := a.ask(ctx, question)
	if err != nil {
		return err
	}
	fmt.Printf("bob answered in %s: %q\n", answer.Took.Round(time.Second), answer.Text)
	c, err := a.team.DialRunner(ctx, "bob")
	if err != nil {
		return err
	}
	defer c.Close()
	screen, err := c.Screen(ctx, control.ScreenRequest{Last: 5})
	if err != nil {
		return err
	}
	fmt.Printf("screen: %d lines, %s\n", len(screen.Lines), screen.State)
	if _, err := c.Interrupt(ctx); err != nil {
		return err
	}
	if err := a.waitFor(ctx, func(s control.Status) bool { return s.State == "idle" }); err != nil {
		return err
	}
	typed, err := c.Type(ctx, control.TypeRequest{Text: []byte("echo typed"), Enter: true})
	if err != nil {
		return err
	}
	fmt.Println("typed:", typed.Done)
	return nil
}

// ask sends bob a question and waits for the end of its turn. Permission requests in that time are allowed once.
func (a *agent) ask(ctx context.Context, text string) (*teams.Response, error) {
	question := &teams.Outgoing{
		From: a.me, To: []wire.Address{a.bob.Address()}, Message: &wire.Message{Body: text, ReplyWanted: "yes"},
	}
	answered, stop := context.WithCancel(ctx)
	defer stop()
	go a.waitFor(answered, func(s control.Status) bool {
		if s.State == "confirming" {
			a.confirm(answered)
		}
		return false
	})
	return a.team.Root().Ask(ctx, question, teams.Observer{})
}

func (a *agent) confirm(ctx context.Context) {
	c, err := a.team.DialRunner(ctx, "bob")
	if err != nil {
		return
	}
	defer c.Close()
	if done, err := c.Answer(ctx, control.AnswerRequest{By: "me"}); err == nil {
		fmt.Println("confirmed:", done.Done)
	}
}

// waitFor polls bob's status until the condition holds.
func (a *agent) waitFor(ctx context.Context, condition func(control.Status) bool) error {
	for ctx.Err() == nil {
		if c, err := a.team.DialRunner(ctx, "bob"); err == nil {
			status, err := c.Status(ctx)
			c.Close()
			if err == nil && condition(status) {
				return nil
			}
		}
		select {
		case err := <-a.ended:
			return errors.Join(fmt.Errorf("the program ended with %d", a.exit.Code), err)
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// stop stops bob's program and all processes that it started.
func (a *agent) stop(ctx context.Context) error {
	c, err := a.team.DialRunner(ctx, "bob")
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Stop(ctx); err != nil {
		return err
	}
	err = <-a.ended
	fmt.Println("bob has ended")
	return err
}
