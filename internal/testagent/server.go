package testagent

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"
)

// mainServer is a server for programs with --remote: `app-server --listen unix://PATH`. It tells each whose it is.
func mainServer(args []string) int {
	i := slices.Index(args, "--listen")
	if i < 0 || i+1 == len(args) {
		return 2
	}
	l, err := net.Listen("unix", strings.TrimPrefix(args[i+1], "unix://"))
	if err != nil {
		fmt.Fprintf(os.Stderr, "fakeagent: %v\n", err)
		return 1
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return 1
		}
		fmt.Fprintf(c, "ATM_AGENT=%s\n", os.Getenv("ATM_AGENT")) // it is closed with the process
	}
}

// connect connects to a server, and logs what that says.
func connect(address string, log journal) (net.Conn, error) {
	c, err := net.Dial("unix", strings.TrimPrefix(address, "unix://"))
	if err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		c.Close()
		return nil, err
	}
	log.add(Entry{Event: Connected, Text: strings.TrimSpace(line)})
	return c, nil
}

// stayConnected connects again whenever the server has ended.
func stayConnected(c net.Conn, address string, log journal) {
	for {
		io.Copy(io.Discard, c)
		c.Close()
		for {
			next, err := connect(address, log)
			if c = next; err == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}
