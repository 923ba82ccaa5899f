//go:build unix

package ptyrun_test

import (
	"context"
	"fmt"

	"github.com/agentteammail/atm/ptyrun"
)

// A shell gets a command as soon as it is at its prompt, and has done it when it is there again.
func ExampleStart() {
	ctx := context.Background()
	shell, err := ptyrun.Start(ctx, ptyrun.Options{Command: []string{"sh"}, Env: []string{"PS1=$ ", "PATH=/usr/bin:/bin"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer shell.Close()
	if err := shell.Prompt(ctx, "touch /dev/null"); err != nil {
		fmt.Println(err)
		return
	}
	for e := range shell.Events(ctx) {
		if e.Kind == "turn_completed" {
			fmt.Println(e.Text("status"))
			return
		}
	}
	// Output: completed
}
