package notices

import (
	"encoding/json"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

// A WebServer is a running atm web. It says so in a file that only this user can read.
type WebServer struct {
	URL string    `json:"url"` // where browsers reach it
	At  string    `json:"at"`  // its listener: the URL's host may be known elsewhere only
	Key string    `json:"key"` // signs the tokens that let a browser in
	As  wire.Name `json:"as,omitempty"`
}

// WebFile is the beginning of the names of the files of a team's WebServers; their process ids end them.
func WebFile(t *teamdir.Team) (prefix string, err error) {
	return t.Root().StateFile("web", string(t.Name), "-")
}

// WebServers returns the team's running servers, the last one that was started first. It removes the files of killed ones.
func WebServers(t *teamdir.Team) (running []WebServer, err error) {
	prefix, err := WebFile(t)
	if err != nil {
		return nil, err
	}
	files, _ := filepath.Glob(prefix + "*")
	var newest time.Time
	for _, file := range files {
		var s WebServer
		info, err := os.Stat(file)
		if err != nil {
			continue // it has just ended
		}
		if data, err := durable.ReadRegular(file, 64<<10); err != nil || json.Unmarshal(data, &s) != nil {
			continue // it has just begun or ended
		}
		if conn, err := net.DialTimeout("tcp", s.At, time.Second); err == nil {
			conn.Close()
		} else if !os.IsTimeout(err) { // a slow server still runs
			os.Remove(file) // it was killed
			continue
		}
		if info.ModTime().After(newest) {
			newest, running = info.ModTime(), append([]WebServer{s}, running...)
		} else {
			running = append(running, s)
		}
	}
	return running, nil
}

// link returns the address of the page about an occurrence, which lets nobody in; "": no atm web runs.
func (c *Commands) link(o Occurrence) string {
	servers, _ := WebServers(c.team)
	if len(servers) == 0 {
		return ""
	}
	path := "/agent/" + url.PathEscape(string(o.Agent))
	switch {
	case o.Message != nil:
		path = "/message/" + url.PathEscape(string(o.Message.ID))
	case !o.asked.IsZero():
		q := ask.Question{Agent: o.Agent, Since: o.asked}
		path = "/question/" + url.PathEscape(q.Key())
	}
	return servers[0].URL + path
}
