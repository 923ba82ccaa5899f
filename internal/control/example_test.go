package control_test

import (
	"context"
	"fmt"

	"github.com/agentteammail/atm/internal/control"
)

// A client asks a runner what its agent shows.
func ExampleDial() {
	ctx := context.Background()
	c, err := control.Dial(ctx, ".atm/main/bob/run")
	if err == control.ErrNoRunner {
		fmt.Println("bob is not running")
		return
	} else if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	s, err := c.Status(ctx)
	fmt.Println(s.State, s.Detail, err)
	// Output: bob is not running
}
