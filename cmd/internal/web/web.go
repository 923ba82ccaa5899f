// Package web is atm web: a team in a browser. The server renders the pages from package room. They work without a
// script; a small one loads them again when something changes.
//
//	/  /mail  /timeline  /search?q=  /thread/ID/ID  /agent/NAME  pages, which mark nothing
//	/message/ID  /question/KEY                                    lead to the thread of a message, and to a question
//	/attached/ID/N                                                the file that is attached to a message, as a download
//	/do                                                           a button's action, as the verb of that name does it
//	/stream                                                       server-sent events: something has changed
//	/manifest.webmanifest                                         makes it an app that a phone can install
//
// A browser gets in with a one-time token, and then with a cookie: see gate.
package web

import (
	"cmp"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/room"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// Main runs the program and returns its exit code.
func Main(version string, words []string) int {
	return command.RunCompanion("web", version, words, func(c *cli.Context) error {
		p := command.PrinterOf(c)
		s, err := app.OpenMeIfGiven(p.Given)
		switch {
		case err != nil:
			return err
		case c.Bool("token"):
			return printTokens(s, p)
		}
		o := options{listen: address(c.String("listen")), proxy: c.String("url"), opens: !c.Bool("no-open")}
		return s.Await(func(ctx context.Context) error { return serve(ctx, s, p, o) })
	})
}

// options are what the flags say of a server.
type options struct {
	listen string
	proxy  string // the URL of a proxy
	opens  bool   // a browser, if stdout is a terminal
}

type server struct {
	*room.Room
	ctx     context.Context // ends when the room does, too
	CSRF    string          // the token in every form
	results sync.Map        // of forms, by their hash, so that one that is sent twice is done once
}

// newServer makes a server once its room is filled. The room is kept up to date until ctx ends.
func newServer(ctx context.Context, s *app.Scope) *server {
	ctx, cancel := context.WithCancelCause(ctx)
	r := room.Open(s)
	go func() { cancel(r.Run(ctx)) }()
	r.Wait(ctx, func(s *room.Snapshot) bool { return s.Version >= 2 })
	return &server{Room: r, ctx: ctx, CSRF: rand.Text()}
}

func serve(ctx context.Context, s *app.Scope, p *command.Printer, o options) error {
	proxy, err := proxyOf(o.proxy)
	if err != nil {
		return err
	}
	ln, err := listen(o.listen)
	if err != nil {
		return err
	}
	defer ln.Close()
	pages := newServer(ctx, s)
	now, _ := pages.Snapshot()
	g := newGate(ln.Addr(), proxy, pages.CSRF, pages.routes())
	g.As = now.Me
	if remove, err := g.entrance.save(s); err != nil {
		p.Warn("`atm web --token` will not work: %v", err)
	} else {
		defer remove()
	}
	if p.IsTerminal() && o.opens {
		openBrowser(g.address())
	}
	address := g.address()
	if err := p.PrintAs(map[string]string{"url": address}, address); err != nil {
		return err
	}
	web := &http.Server{
		Handler: g, BaseContext: func(net.Listener) context.Context { return pages.ctx },
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
	}
	context.AfterFunc(pages.ctx, func() { web.Close() })
	err = web.Serve(ln)
	return cmp.Or(context.Cause(pages.ctx), err)
}

// listen opens the port. Only this machine can reach it.
func listen(address string) (net.Listener, error) {
	at, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, failure.Usage("--listen: %v", err).WithHint("--listen 127.0.0.1:8080")
	}
	if !at.IP.IsLoopback() {
		return nil, failure.Refused("other machines can reach %s", address).
			WithHint("--listen 8080 --url https://HOST, and a proxy there; or --listen 8080, and ssh -L 8080:127.0.0.1:8080 from the other machine")
	}
	ln, err := net.ListenTCP("tcp", at)
	if err != nil {
		return nil, failure.Failed("%w", err).WithHint("--listen 127.0.0.1:0 picks a free port")
	}
	return ln, nil
}

// proxyOf reads --url, the origin at which a proxy serves the pages; nil: it was not given.
func proxyOf(address string) (*url.URL, error) {
	if address == "" {
		return nil, nil
	}
	u, err := url.Parse(strings.TrimSuffix(address, "/"))
	if err != nil || u.Host == "" || u.Hostname() == "" || *u != (url.URL{Scheme: u.Scheme, Host: u.Host}) {
		return nil, failure.Usage("--url: %q is not the address of a server, without a path", address).WithHint("--url https://HOST")
	}
	if strings.ContainsFunc(u.Host, func(r rune) bool { return r > unicode.MaxASCII }) {
		return nil, failure.Usage("--url: browsers send %s in other letters", letter.Escape(u.Host)).WithHint("--url https://xn--…, as the browser's tools show it")
	}
	if u.Scheme != "https" && !(u.Scheme == "http" && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback())) {
		return nil, failure.Refused("--url: what goes to %s can be read on its way", letter.Escape(address)).WithHint("--url https://%s", u.Host)
	}
	u.Host = strings.ToLower(u.Host)
	return u, nil
}

func openBrowser(address string) {
	words := map[string][]string{"darwin": {"open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"}}[runtime.GOOS]
	if words == nil {
		words = []string{"xdg-open"}
	}
	go exec.Command(words[0], append(words[1:], address)...).Run()
}

func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	for path, kind := range map[string]string{
		"/{$}": "team", "/mail": "mail", "/timeline": "timeline", "/search": "search", "/thread/{about...}": "thread", "/agent/{about}": "agent",
		"/agent/{about}/screen": "screen",
	} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { s.show(w, r, kind) })
	}
	mux.HandleFunc("GET /message/{id}", s.showMessage)
	mux.HandleFunc("GET /question/{key}", s.showQuestion)
	mux.HandleFunc("GET /manifest.webmanifest", s.manifest)
	mux.HandleFunc("GET /attached/{id}/{number}", s.download)
	mux.HandleFunc("POST /do", s.do)
	mux.HandleFunc("GET /stream", s.stream)
	for _, name := range []string{"atm.js", "icon.svg", "icon.png", "style.css"} {
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "private, max-age=3600")
			w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
			answer(w, r, http.StatusOK, staticFile(name))
		})
	}
	return mux
}

func (s *server) show(w http.ResponseWriter, r *http.Request, kind string) {
	p := s.newPage(kind)
	p.after = wire.ID(r.FormValue("next"))
	code := http.StatusOK
	if err := p.fill(r.Context(), cmp.Or(r.PathValue("about"), r.FormValue("q"), r.FormValue("after"))); err != nil {
		code = p.fail(err)
	} else if result, isDone := s.results.Load(r.URL.Query().Get("done")); isDone { // of the form that led here
		did, _ := result.(func() (did, error))()
		p.Result, p.Undo = did.said, did.read
	}
	p.write(w, r, code)
}

// answer sends data, compressed if the browser takes that: it is a tenth then. No page of another site can have a browser
// send the cookie, and so none can guess a token from the lengths of answers.
func answer(w http.ResponseWriter, r *http.Request, code int, data []byte) {
	w.Header().Set("Vary", "Accept-Encoding")
	takes := strings.FieldsFunc(r.Header.Get("Accept-Encoding"), func(r rune) bool { return r == ',' || r == ' ' })
	if !slices.Contains(takes, "gzip") {
		w.WriteHeader(code)
		w.Write(data)
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.WriteHeader(code)
	z := gzip.NewWriter(w)
	z.Write(data)
	z.Close()
}

// showMessage leads to the thread of a message, of whose id the beginning is enough.
func (s *server) showMessage(w http.ResponseWriter, r *http.Request) {
	it, _, err := s.Scope.Find(r.PathValue("id"))
	if err != nil {
		p := s.newPage("error")
		p.write(w, r, p.fail(err))
		return
	}
	http.Redirect(w, r, fmt.Sprintf("/thread/%s/%s#m-%[2]s", it.ThreadID(), it.ID), http.StatusSeeOther)
}

// showQuestion leads to a question, or to its agent once it is answered.
func (s *server) showQuestion(w http.ResponseWriter, r *http.Request) {
	key := r.PathValue("key")
	now := s.Wait(r.Context(), (*room.Snapshot).IsWhole)
	for _, q := range now.Waiting {
		if q.Key() == key {
			http.Redirect(w, r, "/#question-"+key, http.StatusSeeOther)
			return
		}
	}
	agent := key[:max(strings.LastIndex(key, "-"), 0)]
	http.Redirect(w, r, "/agent/"+url.PathEscape(agent), http.StatusSeeOther)
}

// manifest makes the pages an app that a phone can install. A browser asks for it with the cookie.
func (s *server) manifest(w http.ResponseWriter, r *http.Request) {
	p := s.newPage("team")
	w.Header().Set("Content-Type", "application/manifest+json")
	json.NewEncoder(w).Encode(map[string]any{
		"id": "/", "start_url": "/", "scope": "/", "display": "standalone",
		"name": fmt.Sprintf("%s / %s · atm", p.Project(), p.Room.Team), "short_name": p.Project(),
		"background_color": "#f6f7f9", "theme_color": "#ffffff",
		"icons": []map[string]string{
			{"src": "/icon.svg", "sizes": "any", "type": "image/svg+xml"},
			{"src": "/icon.png", "sizes": "512x512", "type": "image/png"},
			{"src": "/icon.png", "sizes": "512x512", "type": "image/png", "purpose": "maskable"},
		},
	})
}

// do performs a form's action, as the verb of that name does it, and redirects to its page, which shows the result.
func (s *server) do(w http.ResponseWriter, r *http.Request) {
	before, _ := s.Snapshot()
	given := r.PostForm.Get("back")
	back, err := url.Parse(given)
	if err != nil || back.Host != "" || !strings.HasPrefix(given, "/") || strings.Contains(given, `\`) {
		back = &url.URL{Path: "/"} // never to another site
	}
	hash := sha256.New()
	io.WriteString(hash, r.PostForm.Encode())
	files, closeFiles, err := attached(r, hash)
	defer closeFiles()
	if err != nil {
		p := s.newPage("error")
		p.Path, p.Typed = back.String(), r.PostForm
		p.write(w, r, p.fail(err))
		return
	}
	form := fmt.Sprintf("%x", hash.Sum(nil))
	// A second click aborts the first request, and waits here for its result.
	once, _ := s.results.LoadOrStore(form, sync.OnceValues(func() (did, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), time.Minute)
		defer cancel()
		result, err := s.act(ctx, r.PostForm, files)
		if err != nil {
			s.results.Delete(form) // it may be retried
		}
		now := did{said: letter.EscapeBody(result)}
		if r.PostForm.Get("do") == "read" {
			now.read = idsOf(r.PostForm)
		}
		return now, err
	}))
	now, err := once.(func() (did, error))()
	if err != nil {
		p := s.newPage("error")
		p.Path, p.Result, p.Typed = back.String(), now.said, r.PostForm
		if missed, ok := errors.AsType[*room.NotSentError](err); ok && p.Typed.Get("to") != "" {
			p.Typed.Set("to", missed.To) // the others have it
		}
		p.write(w, r, p.fail(err))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), 300*time.Millisecond)
	defer cancel()
	s.Wait(ctx, func(now *room.Snapshot) bool { return now.Version > before.Version }) // so that the page shows the change
	query := back.Query()
	query.Set("done", form)
	back.RawQuery = query.Encode()
	http.Redirect(w, r, back.String(), http.StatusSeeOther)
}

// did is what a form has done.
type did struct {
	said string
	read []wire.ID // the messages that it has marked as read, which may be undone
}

func idsOf(form url.Values) (ids []wire.ID) {
	for _, id := range form["id"] {
		ids = append(ids, wire.ID(id))
	}
	return ids
}

func (s *server) act(ctx context.Context, form url.Values, files []teams.File) (result string, err error) {
	id, text := form.Get("id"), strings.ReplaceAll(form.Get("text"), "\r\n", "\n") // browsers send line ends so
	switch verb := form.Get("do"); verb {
	case "approve", "reject", "answer":
		q := ask.Question{ID: id, Agent: wire.Name(form.Get("agent"))}
		q.Since, _ = time.Parse(time.RFC3339Nano, form.Get("since")) // a zero time matches no open question
		if verb == "answer" {
			return s.AnswerText(ctx, room.Question{Question: q}, text)
		}
		answer := ask.Answer{Deny: verb == "reject", Option: form.Get("option"), Reason: text}
		return s.Decide(ctx, room.Question{Question: q}, answer)
	case "send":
		return s.Send(ctx, &teams.Message{To: []string{form.Get("to")}, Content: &wire.Message{Body: text}, Files: files})
	case "reply":
		it, _, err := s.Scope.Find(id)
		if err != nil {
			return "", err
		}
		return s.Send(ctx, &teams.Message{Answers: it.Message, Content: &wire.Message{Body: text}, Files: files})
	case "withdraw":
		return s.Withdraw(ctx, wire.ID(id))
	case "ack":
		did, err := s.Ack(ctx, wire.ID(id))
		_, warnings, _ := strings.Cut(did, "; ")
		return app.JoinFilled("; ", "Acknowledged: "+s.titleOf(id), warnings), err
	case "read":
		_, err := s.MarkRead(ctx, idsOf(form)...)
		return "Marked as read: " + s.titlesOf(form), err
	case "unread":
		_, err := s.MarkUnread(ctx, idsOf(form)...)
		return "Unread again: " + s.titlesOf(form), err
	case "say":
		return s.SayInSession(ctx, wire.UUID(form.Get("session")), text)
	case "type":
		return s.Type(ctx, wire.Name(form.Get("agent")), text)
	case "interrupt":
		return s.Interrupt(ctx, wire.Name(form.Get("agent")))
	case "start":
		return s.Start(ctx, wire.Name(form.Get("agent")))
	case "stop":
		return s.Stop(ctx, wire.Name(form.Get("agent")))
	}
	return "", failure.Usage("the form has no action that atm knows")
}

// titleOf returns the title of a message of mine.
func (s *server) titleOf(id string) string {
	for _, it := range s.Mail([]wire.ID{wire.ID(id)}) {
		return message{Item: it}.Title()
	}
	return id
}

// titlesOf says which messages a form is about.
func (s *server) titlesOf(form url.Values) string {
	if n := len(form["id"]); n != 1 {
		return letter.Many(n, "message")
	}
	return s.titleOf(form.Get("id"))
}

const (
	gather    = 150 * time.Millisecond // changes within it are one event
	keepAlive = 30 * time.Second
)

// stream sends a browser an event for each change, with the version of the room's snapshot and the names of the agents
// whose screens have changed since the last event. The pages then load what they show. All pages of a browser share one
// connection. A page of an earlier server at this address is refused: its version says nothing here.
func (s *server) stream(w http.ResponseWriter, r *http.Request) {
	if !isSame(r.FormValue("csrf"), s.CSRF) {
		refuse(w, http.StatusGone, "this page comes from an earlier server: reload it")
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // else nginx keeps the events
	fmt.Fprint(w, "retry: 1000\n\n")
	for known := map[wire.Name]*room.Screen{}; ; {
		now, newer := s.Snapshot()
		screens := []wire.Name{}
		for _, m := range now.Members {
			if now.Screens[m.Name] != known[m.Name] {
				screens = append(screens, m.Name)
			}
		}
		known = now.Screens
		data, _ := json.Marshal(map[string]any{"version": now.Version, "screens": screens})
		limits := http.NewResponseController(w)
		limits.SetWriteDeadline(time.Now().Add(writeTimeout))
		if _, err := fmt.Fprintf(w, "data: %s\n\n", data); err != nil || limits.Flush() != nil {
			return
		}
		select {
		case <-newer:
		case <-time.After(keepAlive):
		case <-r.Context().Done():
			return
		}
		time.Sleep(gather)
	}
}

// address is where to serve: a port alone is one of this machine.
func address(listen string) string {
	if strings.Contains(listen, ":") {
		return listen
	}
	return net.JoinHostPort("127.0.0.1", cmp.Or(listen, "0"))
}
