// Package tui is atm tui: a team in a terminal. It shows a room; only keys change anything, and opening a message does
// not mark it.
//
//	waiting   the members' questions, at the top
//	members   left; on a narrow terminal behind Tab
//	middle    my mail, a thread, an agent's screen or turns, a search, the keys
//
// It is a Bubble Tea program: only Update changes the model, View draws it and reads nothing, and slow work runs as a
// command.
package tui

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/output"
	"github.com/agentteammail/atm/cmd/internal/room"
)

// Main runs the program and returns its exit code.
func Main(version string, words []string) int {
	return command.RunCompanion("tui", version, words, func(c *cli.Context) error {
		g := command.Given(c)
		if !output.IsTerminal(g.In) || !output.IsTerminal(g.Out) {
			return failure.Usage("tui needs a terminal").WithHint("`atm team`, `atm ls`, `atm pending`")
		}
		s, err := app.OpenMeIfGiven(g)
		if err != nil {
			return err
		}
		s.WarnUnaccepted()
		return show(c.Context, room.Open(s))
	})
}

func show(ctx context.Context, r *room.Room) error {
	ctx, cancel := context.WithCancel(ctx)
	m := newModel(ctx, r)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGQUIT) // Ctrl-\, pressed before atm attach runs
	p := tea.NewProgram(m, tea.WithFPS(30))                 // it wakes that often even if nothing happens
	hangup := make(chan os.Signal, 1)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(hangup, syscall.SIGHUP)
	}
	go func() { // it ends with the process
		<-hangup
		p.Send(tea.InterruptMsg{})
	}()
	terminated := make(chan os.Signal, 1) // for Bubble Tea that is a plain end
	signal.Notify(terminated, syscall.SIGTERM)
	ended := make(chan error, 1)
	go func() {
		ended <- r.Run(ctx)
		p.Quit()
	}()
	go func() { // it ends with the process
		for {
			s, newer := r.Snapshot()
			p.Send(s)
			select {
			case <-newer:
			case <-time.After(time.Second): // ages grow
			}
		}
	}()
	io.WriteString(r.Scope.Given.Out, "\x1b[22;2t") // save the terminal's title
	_, err := p.Run()
	io.WriteString(r.Scope.Given.Out, "\x1b[23;2t")
	cancel()
	runErr := <-ended
	if errors.Is(err, tea.ErrInterrupted) || len(terminated) > 0 {
		return failure.Exit(failure.ExitInterrupted)
	}
	return errors.Join(runErr, err)
}
