// Package tui is atm-tui: a team in a terminal. It shows a room and does what its keys say; the mail stays as
// it is until a key says otherwise.
//
//	waiting   what members ask, above everything
//	members   left; on a narrow terminal behind Tab
//	middle    my mail, a thread, an agent's screen or its turns, what was found, the keys
//
// It is a Bubble Tea program: Update alone changes the model, View alone draws it, and what takes time runs
// as a command.
package tui

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/room"
)

// Main is the program: it returns its exit code.
func Main(version string, words []string) int {
	return command.RunCompanion("tui", version, words, func(c *cli.Context) error {
		if !term.IsTerminal(int(os.Stdin.Fd())) || !command.Terminal() {
			return command.Usage("tui needs a terminal").WithHint("atm team, atm ls, atm pending")
		}
		s, err := command.OpenMeIfSaid(c)
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
	signal.Notify(make(chan os.Signal, 1), syscall.SIGQUIT) // the detach key of atm attach, if it comes too early
	p := tea.NewProgram(m, tea.WithFPS(30))                 // it wakes as often while nothing happens
	hangup := make(chan os.Signal, 1)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(hangup, syscall.SIGHUP)
	}
	go func() { // it ends with the process
		<-hangup
		p.Send(tea.InterruptMsg{})
	}()
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
	os.Stdout.WriteString("\x1b[22;2t") // keep the terminal's title
	_, err := p.Run()
	os.Stdout.WriteString("\x1b[23;2t")
	cancel()
	gone := <-ended
	if errors.Is(err, tea.ErrInterrupted) || errors.Is(err, tea.ErrProgramKilled) {
		return command.Exit(command.ExitInterrupted)
	}
	return errors.Join(gone, err)
}
