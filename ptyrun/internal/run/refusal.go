package run

import (
	"errors"

	"github.com/agentteammail/atm/internal/control"
)

// ErrNotRunning means that the agent's program does not run now.
var ErrNotRunning = errors.New("its program is not running")

// ErrBeingTyped means that no key may come into the text that is being typed.
var ErrBeingTyped = &control.Error{Code: control.Locked, Message: "a message is being typed in; try again in a moment"}

// What most errors say to try.
var (
	TryScreen = control.Try{Op: "screen"}
	TryAttach = control.Try{Op: "attach"}
	TryRaw    = control.Try{Op: "type", Raw: true}
	TryPrompt = control.Try{Op: "type", Enter: true}
)

// NotNow and OnlyAtTerminal say why something was not done, and what to try instead.
func NotNow(why string) error {
	return &control.Error{Code: control.Locked, Message: why + ": no key was pressed; try again", Try: []control.Try{TryScreen}}
}

func OnlyAtTerminal(message string) error {
	return &control.Error{Code: "failed", Message: message, Try: []control.Try{TryAttach}}
}
