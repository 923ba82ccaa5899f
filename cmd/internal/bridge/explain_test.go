package bridge

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/agentteammail/atm/cmd/internal/failure"
)

// An error of the server says what is wrong there, and what to do; doctor knows nothing of it.
func TestServerErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		server      server.Options
		creds       string
		cause, hint string
	}{
		"no JetStream":     {server.Options{}, "", "the server has no JetStream", "nats-server -js"},
		"a password":       {server.Options{Username: "x", Password: "y"}, "", "Authorization Violation", "nats://USER:PASSWORD@HOST"},
		"no credentials":   {server.Options{}, "/nonexistent/creds", "/nonexistent/creds: no such file", "--creds FILE"},
		"a login too weak": {server.Options{JetStream: true, NoAuthUser: "u", Users: []*server.User{{Username: "u", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Allow: []string{"x"}}}}}}, "", "does not answer", "$JS.API.>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := c.server
			o.Host, o.Port, o.NoSigs, o.NoLog, o.StoreDir = "127.0.0.1", -1, true, true, t.TempDir()
			s, err := server.NewServer(&o)
			must(t, err)
			s.Start()
			t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
			if !s.ReadyForConnections(time.Minute) {
				t.Fatal("the server does not start")
			}
			m := newMachine(t, s.ClientURL(), "laptop", "alice")
			m.server.creds = c.creds
			err = m.Once(t.Context())
			e, _ := errors.AsType[*failure.Error](err)
			if e == nil || !strings.Contains(err.Error(), c.cause) || !strings.Contains(e.Hint.String(), c.hint) || !strings.Contains(line(err), c.hint) {
				t.Errorf("%v; %+v", err, e)
			}
			m.run()
			m.eventually("told why", func() bool { return strings.Contains(m.log(), c.cause) && strings.Contains(m.log(), c.hint) })
		})
	}
}
