// Package web is atm-web: a team in a browser. The pages are made here, from what package room says, and work
// without a script; a small one has them fetched again when something changes.
//
//	/  /mail  /timeline  /search?q=  /thread/ID/ID  /agent/NAME  looking, which marks nothing
//	/do                                                           what a button does, as the verb of that name
//	/stream                                                       server-sent events: something has changed
//
// A browser is let in by a one-time token, and then by a cookie: see gate. The same pages as files are what
// --export writes.
package web

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/room"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

// Main is the program: it returns its exit code.
func Main(version string, words []string) int {
	return command.RunCompanion("web", version, words, func(c *cli.Context) error {
		s, err := command.OpenMeIfSaid(c)
		switch {
		case err != nil:
			return err
		case c.Bool("token"):
			return printTokens(c, s)
		case c.IsSet("export"):
			return s.Await(func(ctx context.Context) error { return export(ctx, c, s) })
		}
		return s.Await(func(ctx context.Context) error { return serve(ctx, c, s) })
	})
}

type server struct {
	*room.Room
	ctx  context.Context // ends with the room as well
	CSRF string          // of every form
	done sync.Map        // what came of the forms, by their hash: one that is sent twice is done once
}

// newServer is a server of a team, whose room has been looked at, and is until ctx ends.
func newServer(ctx context.Context, s *command.Scope) *server {
	ctx, cancel := context.WithCancelCause(ctx)
	r := room.Open(s)
	go func() { cancel(r.Run(ctx)) }()
	r.Wait(ctx, func(now *room.Snapshot) bool { return now.Version >= 2 })
	return &server{Room: r, ctx: ctx, CSRF: rand.Text()}
}

func serve(ctx context.Context, c *cli.Context, s *command.Scope) error {
	ln, cert, err := listen(c)
	if err != nil {
		return err
	}
	defer ln.Close()
	pages := newServer(ctx, s)
	now, _ := pages.Snapshot()
	g := newGate(ln.Addr(), cert, pages.CSRF, pages.routes())
	g.As = now.Me
	if forget, err := g.door.keep(s); err != nil {
		command.Warn(c, "atm web --token will not work: %v", err)
	} else {
		defer forget()
	}
	if command.Terminal() && !c.Bool("no-open") {
		open(g.address())
	}
	address := g.address()
	if err := command.PrintAs(c, map[string]string{"url": address}, address); err != nil {
		return err
	}
	web := &http.Server{Handler: g, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return pages.ctx }}
	context.AfterFunc(pages.ctx, func() { web.Close() })
	if err := web.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return context.Cause(pages.ctx)
}

// listen opens the port. What others can reach takes two words more: a certificate, and that it is meant.
func listen(c *cli.Context) (ln net.Listener, cert *x509.Certificate, err error) {
	address := cmp.Or(c.String("listen"), "127.0.0.1:0")
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, nil, command.Usage("--listen: %v", err).WithHint("--listen 127.0.0.1:8080")
	}
	hasTLS := c.IsSet("tls-cert") && c.IsSet("tls-key")
	isLocal := strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
	if !hasTLS && (c.IsSet("tls-cert") || c.IsSet("tls-key")) {
		return nil, nil, command.Usage("a certificate and its key go together").WithHint("--tls-cert FILE --tls-key FILE")
	}
	if !isLocal && !(hasTLS && c.Bool("allow-remote")) {
		return nil, nil, command.Refused("%s is not of this machine alone", address).
			WithHint("--allow-remote --tls-cert FILE --tls-key FILE; or ssh -L 8080:127.0.0.1:8080 HOST, and --listen 127.0.0.1:8080 there")
	}
	var pair tls.Certificate
	if hasTLS {
		if pair, err = tls.LoadX509KeyPair(c.String("tls-cert"), c.String("tls-key")); err != nil {
			return nil, nil, command.Usage("--tls-cert: %v", err)
		}
	}
	if ln, err = net.Listen("tcp", address); err != nil {
		return nil, nil, command.Failed("%w", err).WithHint("--listen 127.0.0.1:0 takes a free port")
	}
	if hasTLS {
		ln = tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{pair}})
	}
	return ln, pair.Leaf, nil
}

func open(address string) {
	words := map[string][]string{"darwin": {"open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"}}[runtime.GOOS]
	if words == nil {
		words = []string{"xdg-open"}
	}
	go exec.Command(words[0], append(words[1:], address)...).Run()
}

// keep writes a door down, until forget. Each server of a team has a file of its own.
func (d door) keep(s *command.Scope) (forget func(), err error) {
	prefix, err := s.StateFile("web", string(s.Team.Name), "-")
	if err != nil {
		return nil, err
	}
	data, _ := json.Marshal(d)
	file := fmt.Sprint(prefix, os.Getpid())
	return func() { os.Remove(file) }, durable.WritePrivate(file, data)
}

// printTokens prints an address of each server of the team that runs. An agent is let in as itself alone.
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
			continue // it has just ended
		}
		at, _ := url.Parse(d.URL)
		conn, err := net.DialTimeout("tcp", at.Host, time.Second)
		if err != nil {
			os.Remove(file) // it was killed
			continue
		}
		conn.Close()
		if isAgent && (who == "" || who != d.As) {
			return command.Refused("an agent does not look as %s", cmp.Or(d.As, "somebody else")).WithHint("atm team, atm ls")
		}
		addresses = append(addresses, d.address())
	}
	if len(addresses) == 0 {
		return command.NotFound("no atm web of team %q runs", s.Team.Name).WithHint("atm web")
	}
	return command.PrintAs(c, map[string]any{"urls": addresses}, strings.Join(addresses, "\n"))
}

func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	for path, kind := range map[string]string{
		"/{$}": "team", "/mail": "mail", "/timeline": "timeline", "/search": "search", "/thread/{about...}": "thread", "/agent/{about}": "agent",
		"/agent/{about}/screen": "screen",
	} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { s.show(w, r, kind) })
	}
	mux.HandleFunc("POST /do", s.do)
	mux.HandleFunc("GET /stream", s.stream)
	for _, name := range []string{"atm.js", "htmx.min.js", "icon.svg", "style.css"} {
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "private, max-age=3600")
			http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(file(name)))
		})
	}
	return mux
}

func (s *server) show(w http.ResponseWriter, r *http.Request, kind string) {
	p := s.newPage(kind)
	code := http.StatusOK
	if err := p.fill(r.Context(), cmp.Or(r.PathValue("about"), r.FormValue("q"))); err != nil {
		code = p.fail(err)
	} else if once, isDone := s.done.Load(r.URL.Query().Get("done")); isDone { // the form that led here
		p.Said, _ = once.(func() (string, error))()
	}
	p.write(w, code)
}

func (p *page) write(w http.ResponseWriter, code int) {
	data, err := p.render()
	if err != nil {
		http.Error(w, "atm: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	w.Write(data)
}

// do does what a form asks for, as the verb of that name, and leads back to the page with what came of it.
func (s *server) do(w http.ResponseWriter, r *http.Request) {
	before, _ := s.Snapshot()
	id, text, back := r.PostFormValue("id"), r.PostFormValue("text"), r.PostFormValue("back")
	u, err := url.Parse(back)
	if err != nil || u.Host != "" || !strings.HasPrefix(back, "/") || strings.Contains(back, `\`) {
		u, back = &url.URL{Path: "/"}, "/" // to nowhere else
	}
	text = strings.ReplaceAll(text, "\r\n", "\n") // as browsers send what has several lines
	form := fmt.Sprintf("%x", sha256.Sum256([]byte(r.PostForm.Encode())))
	// A second click breaks the first request off, and waits here for what comes of it.
	once, _ := s.done.LoadOrStore(form, sync.OnceValues(func() (string, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), mostActing)
		defer cancel()
		said, err := s.act(r.WithContext(ctx), id, text)
		if err != nil {
			s.done.Delete(form) // it may be tried again
		}
		return letter.EscapeBody(said), err
	}))
	said, err := once.(func() (string, error))()
	if err != nil {
		p := s.newPage("error")
		p.Path, p.Typed, p.TypedTo, p.Said = back, text, r.PostFormValue("to"), said
		if partly, ok := errors.AsType[*room.PartlySentError](err); ok {
			p.TypedTo = partly.Missed
		}
		p.write(w, p.fail(err))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), 300*time.Millisecond)
	defer cancel()
	s.Wait(ctx, func(now *room.Snapshot) bool { return now.Version > before.Version }) // the next page should show it
	query := u.Query()
	query.Set("done", form)
	u.RawQuery = query.Encode()
	http.Redirect(w, r, u.String(), http.StatusSeeOther)
}

func (s *server) act(r *http.Request, id, text string) (said string, err error) {
	ctx := r.Context()
	switch r.PostFormValue("do") {
	case "approve", "reject":
		answer := command.Answer{IsDeny: r.PostFormValue("do") == "reject", Option: r.PostFormValue("option"), Reason: text}
		return s.Decide(ctx, question(r), answer)
	case "send":
		return s.Send(ctx, r.PostFormValue("to"), nil, text)
	case "reply":
		it, _, err := s.Scope.Team.Find(s.Scope.Me, id)
		if err != nil {
			return "", err
		}
		return s.Send(ctx, "", it.Message, text)
	case "ack":
		return s.Ack(ctx, wire.ID(id))
	case "read":
		return s.MarkRead(ctx, wire.ID(id))
	}
	return "", command.Usage("the form asks for nothing that is known")
}

func question(r *http.Request) (q room.Question) {
	q.Agent, q.ID = wire.Name(r.PostFormValue("agent")), r.PostFormValue("id")
	q.Since, _ = time.Parse(time.RFC3339Nano, r.PostFormValue("since")) // else it is none that is open
	return q
}
