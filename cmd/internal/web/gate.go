package web

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/wire"
)

// A gate checks every request. A one-time token gets a browser its cookie, and the cookie lets it in. A request that
// changes something also needs the CSRF token of its page. All of these end with the program.
type gate struct {
	entrance
	http.Handler                   // the pages
	host, port   string            // of the listener
	cert         *x509.Certificate // nil: without TLS

	cookie, csrf string
	foreign      http.CrossOriginProtection
	used         sync.Map // tokens
	connections  connections
}

func newGate(at net.Addr, cert *x509.Certificate, csrf string, pages http.Handler) *gate {
	host, port, _ := net.SplitHostPort(at.String())
	g := &gate{Handler: pages, host: host, port: port, cert: cert, cookie: rand.Text(), csrf: csrf}
	g.Key, g.At, g.URL = rand.Text(), at.String(), "http://"+at.String()
	if cert != nil {
		if net.ParseIP(host).IsUnspecified() || cert.VerifyHostname(host) != nil {
			host = append(cert.DNSNames, "localhost")[0]
		}
		g.URL = "https://" + net.JoinHostPort(host, port)
	}
	return g
}

// useToken reports whether a token is valid and unused, and marks it as used.
func (g *gate) useToken(token string) bool {
	random := len(rand.Text())
	n := random + 8
	if len(token) <= n || !isSame(token[n:], g.sign(token[:n])) {
		return false
	}
	made, _ := strconv.ParseInt(token[random:n], 16, 64)
	if time.Since(time.Unix(made, 0)) > tokenAge {
		return false
	}
	_, isUsed := g.used.LoadOrStore(token, true)
	if !isUsed {
		time.AfterFunc(tokenAge, func() { g.used.Delete(token) }) // then it is too old
	}
	return !isUsed
}

// isHost reports whether a Host header names this server. Another name may be an attacker's that points here.
func (g *gate) isHost(host string) bool {
	name, port, err := net.SplitHostPort(host)
	if err != nil { // browsers leave out the scheme's default port
		name, port = strings.Trim(host, "[]"), "80"
		if g.cert != nil {
			port = "443"
		}
	}
	switch {
	case port != g.port:
		return false
	case strings.EqualFold(name, "localhost"), name == "127.0.0.1", name == "::1", name == g.host:
		return true
	}
	return g.cert != nil && g.cert.VerifyHostname(name) == nil
}

// isForeign reports whether a page of another origin sends the request, as far as the browser says so.
func (g *gate) isForeign(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	scheme, _, _ := strings.Cut(g.URL, ":")
	return origin != "" && origin != scheme+"://"+r.Host || g.foreign.Check(r) != nil
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
			"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		"Cache-Control": "no-store", "Referrer-Policy": "same-origin", "X-Content-Type-Options": "nosniff",
		"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
	} {
		w.Header().Set(name, value)
	}
	limitTime(w)
	name := "atm-" + g.port // cookies are shared by all ports of a host
	cookie, err := r.Cookie(name)
	isKnown := err == nil && isSame(cookie.Value, g.cookie)
	isLook := r.Method == http.MethodGet
	token := r.URL.Query().Get("token")
	r.Body = http.MaxBytesReader(w, r.Body, 4<<20) // a text has 1 MiB at most, but is encoded
	switch {
	case !g.isHost(r.Host):
		refuse(w, http.StatusMisdirectedRequest, "this server does not serve that host name")
	case g.isForeign(r):
		refuse(w, http.StatusForbidden, "this request comes from another site")
	case isLook && r.URL.Path == "/" && token != "" && g.useToken(token):
		http.SetCookie(w, &http.Cookie{
			Name: name, Value: g.cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: g.cert != nil,
		})
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		// No redirect: after a link on another site, the browser would follow that without the cookie.
		fmt.Fprint(w, `<!doctype html><html lang="en"><meta http-equiv="refresh" content="0;url=/"><title>atm</title><a href="/">continue</a>`)
	case !isKnown:
		reason := "this browser has no access yet"
		if isLook && r.URL.Path == "/" && token != "" {
			reason = "this browser has no access yet, and this address was used already, or is older than five minutes"
		}
		refuse(w, http.StatusUnauthorized, reason, "atm web --token", "prints an address that lets one browser in, once, within five minutes.")
	case !isLook && r.ParseForm() != nil:
		refuse(w, http.StatusBadRequest, "the text is over 1 MiB, or this is not a form")
	case !isLook && !isSame(r.PostFormValue("csrf"), g.csrf):
		refuse(w, http.StatusForbidden, "this request does not come from a page of this server: reload the page")
	default:
		g.connections.letIn(r)
		http.NewResponseController(w).SetReadDeadline(time.Time{}) // the body was read
		g.Handler.ServeHTTP(w, r)
	}
}

func isSame(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// refuse says why a request is refused, with a command and what it does, and ends its connection. The page has no style:
// that is for those who are let in.
func refuse(w http.ResponseWriter, code int, reason string, wayOut ...string) {
	w.Header().Set("Connection", "close")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	templates.ExecuteTemplate(w, "refusal", map[string]any{"Reason": strings.ToUpper(reason[:1]) + reason[1:], "WayOut": wayOut})
}

// An entrance makes the one-time addresses that let a browser in. It is saved in a file that only this user can read, so
// that `atm web --token` can make another address.
type entrance struct {
	URL string    `json:"url"`
	At  string    `json:"at"`  // the listener: the URL's host may be known elsewhere only
	Key string    `json:"key"` // of this run of the server
	As  wire.Name `json:"as,omitempty"`
}

const tokenAge = 5 * time.Minute // after which a token is refused

// address returns an address that opens the pages once, within tokenAge.
func (e entrance) address() string {
	nonce := fmt.Sprintf("%s%08x", rand.Text(), time.Now().Unix())
	return e.URL + "/?token=" + nonce + e.sign(nonce)
}

func (e entrance) sign(nonce string) string {
	mac := hmac.New(sha256.New, []byte(e.Key))
	mac.Write([]byte(nonce))
	return hex.EncodeToString(mac.Sum(nil))
}

// save writes the entrance into a file of this server's own, which remove removes.
func (e entrance) save(s *app.Scope) (remove func(), err error) {
	prefix, err := s.StateFile("web", string(s.Team.Name), "-")
	if err != nil {
		return nil, err
	}
	data, _ := json.Marshal(e)
	file := fmt.Sprint(prefix, os.Getpid())
	return func() { os.Remove(file) }, durable.WritePrivate(file, data)
}

// printTokens prints an address of each running server of the team. An agent may get in only as itself.
func printTokens(s *app.Scope, p *command.Printer) error {
	prefix, err := s.StateFile("web", string(s.Team.Name), "-")
	if err != nil {
		return err
	}
	files, _ := filepath.Glob(prefix + "*")
	who, isAgent := s.Actor()
	addresses := []string{}
	for _, file := range files {
		var e entrance
		if data, err := durable.ReadRegular(file, 64<<10); err != nil || json.Unmarshal(data, &e) != nil {
			continue // the server has just begun or ended
		}
		if conn, err := net.DialTimeout("tcp", e.At, time.Second); err == nil {
			conn.Close()
		} else if !os.IsTimeout(err) { // a slow server still runs
			os.Remove(file) // it was killed
			continue
		}
		if isAgent && (who == "" || who != e.As) {
			return failure.Refused("an agent may not open a page as %s", cmp.Or(e.As, "somebody else")).WithHint("`atm team`, `atm ls`")
		}
		addresses = append(addresses, e.address())
	}
	if len(addresses) == 0 {
		return failure.NotFound("no atm web is running for team %q", s.Team.Name).WithHint("`atm web`")
	}
	return p.PrintAs(map[string]any{"urls": addresses}, strings.Join(addresses, "\n"))
}
