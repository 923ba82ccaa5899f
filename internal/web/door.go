package web

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/cli/failure"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/wire"
)

// A door makes the one-time addresses that let a browser in. It is saved in a file that only this user can read, so
// that `atm web --token` can make another address.
type door struct {
	URL string    `json:"url"`
	At  string    `json:"at"`  // the listener: the URL's host may be known elsewhere only
	Key string    `json:"key"` // of this run of the server
	As  wire.Name `json:"as,omitempty"`
}

const tokenAge = 5 * time.Minute // after which a token is refused

// address returns an address that opens the pages once, within tokenAge.
func (d door) address() string {
	nonce := fmt.Sprintf("%s%08x", rand.Text(), time.Now().Unix())
	return d.URL + "/?token=" + nonce + d.sign(nonce)
}

func (d door) sign(nonce string) string {
	mac := hmac.New(sha256.New, []byte(d.Key))
	mac.Write([]byte(nonce))
	return hex.EncodeToString(mac.Sum(nil))
}

// save writes the door into a file of this server's own, which remove removes.
func (d door) save(s *command.Scope) (remove func(), err error) {
	prefix, err := s.StateFile("web", string(s.Team.Name), "-")
	if err != nil {
		return nil, err
	}
	data, _ := json.Marshal(d)
	file := fmt.Sprint(prefix, os.Getpid())
	return func() { os.Remove(file) }, durable.WritePrivate(file, data)
}

// printTokens prints an address of each running server of the team. An agent may get in only as itself.
func printTokens(c *cli.Context, s *command.Scope) error {
	prefix, err := s.StateFile("web", string(s.Team.Name), "-")
	if err != nil {
		return err
	}
	files, _ := filepath.Glob(prefix + "*")
	who, isAgent := s.Actor()
	addresses := []string{}
	for _, file := range files {
		var d door
		if data, err := os.ReadFile(file); err != nil || json.Unmarshal(data, &d) != nil {
			continue // the server has just begun or ended
		}
		conn, err := net.DialTimeout("tcp", d.At, time.Second)
		if err != nil {
			os.Remove(file) // the server was killed
			continue
		}
		conn.Close()
		if isAgent && (who == "" || who != d.As) {
			return failure.Refused("an agent may not open a page as %s", cmp.Or(d.As, "somebody else")).WithHint("atm team, atm ls")
		}
		addresses = append(addresses, d.address())
	}
	if len(addresses) == 0 {
		return failure.NotFound("no atm web is running for team %q", s.Team.Name).WithHint("atm web")
	}
	return command.PrintAs(c, map[string]any{"urls": addresses}, strings.Join(addresses, "\n"))
}
