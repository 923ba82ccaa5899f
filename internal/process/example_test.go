//go:build linux || darwin

package process_test

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/agentteammail/atm/internal/process"
)

// A program on pipes is read to its end; Stop ends what it left.
func ExampleStart() {
	c, err := process.Start(process.Command{Argv: []string{"sh", "-c", "echo hello; exit 3"}, Pipes: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	go io.Copy(io.Discard, c.Stderr)
	said, _ := io.ReadAll(c.Stdout)
	<-c.Done()
	left, _ := c.Stop(context.Background(), time.Second)
	fmt.Printf("%q, exit %d, left %d\n", said, c.Exit().Code, len(left))
	// Output: "hello\n", exit 3, left 0
}
