// Package command is what the verbs of atm share.
//
// # How a verb looks
//
// A verb is a *cli.Command (github.com/urfave/cli/v2) in a file of its own, in
// the package of its group (mail, agent, session, setup), which exports
// Commands() []*cli.Command. Its Action opens a Scope, calls one thing and returns
// Print(c, result):
//
//	var showCommand = &cli.Command{
//		Name:      "show",
//		Aliases:   []string{"cat", "view", "open"},   // synonyms work, and stand in no list
//		ArgsUsage: "ID",                              // counted: see below
//		Usage:     "show one message whole",          // the line in `atm help all`
//		UsageText: "atm show 9f3a1c\natm show 9f3a1c --save .", // examples, a line each; the first is a hint
//		Description: "Marks nothing.",                // notes, a line each
//		Flags:     []cli.Flag{&cli.BoolFlag{Name: "raw", Usage: "the bytes of the body alone"}},
//		Action:    show,
//	}
//
// # The command line
//
// Parse sorts flags before words, so that flags may stand anywhere until "--"; urfave
// reads their values, and UsageError says what it finds wrong with one. ArgsUsage is
// also the rule for the words: a field in [brackets] may be missing, one with an … may
// repeat; where one begins with CMD, the first word behind those before it ends the
// flags. A verb that counts for itself sets Args: true. A DurationFlag knows days
// (Duration asks for it), and a duration right behind a flag that begins with "wait" is
// its --timeout. Meant is a flag that people type for something else.
//
// # Who is who
//
// OpenRoot, OpenTeam, OpenMe and OpenMeIfSaid give a Scope: Root, Team, Me.
// s.Member(word) is a mailbox, s.Find a message, s.MayWrite before anything is
// written as me, s.MayAct before something is done to another agent (MayStop for
// ending it).
//
// # What a verb returns
//
// Any error: the app gives it its exit code and hint (Explain) and prints it. A verb
// that knows more returns Usage, NotFound, Refused, Timeout, …, WithHint a command that
// helps when typed; Exit(code) where it has said everything itself. An error of a
// package below gets its line in explain.go.
//
// Results go to stdout through Print alone, the rest to stderr through Warn. What is
// printed is one value with a String method, which escapes what came from outside
// (letter.Escape); a stream prints value after value. Messages in JSON are Message,
// lists of them Listing. What waits runs in s.Await, what shows what comes in s.Follow.
// StdinText is the text of a verb; ReadText and CheckText take it from elsewhere.
//
// A new group's Commands go into newApp (internal/cli/app.go), and the package into
// layout_test.go. testdata/script and TestGuesses (cmd/atm) are its tests.
package command

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/agentteammail/atm/internal/output"
)

// Interruptible is for what waits or takes long: a context that an interrupt
// ends. What is stuck in a write that nobody reads ends a second later all the
// same. A pipe that nobody reads is then an error of writing.
func Interruptible(ctx context.Context) (_ context.Context, stop func()) {
	ctx, end := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	output.IgnoreSIGPIPE()
	var done atomic.Bool
	context.AfterFunc(ctx, func() {
		time.AfterFunc(time.Second, func() {
			if !done.Load() {
				os.Exit(ExitInterrupted)
			}
		})
	})
	return ctx, func() {
		done.Store(true)
		end()
	}
}
