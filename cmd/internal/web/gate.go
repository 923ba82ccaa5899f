package web

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/wire"
)

// A gate checks every request. A one-time token gets a browser its cookie, and the cookie lets it in. A request that
// changes something also needs the CSRF token of its page. All of these end with the program.
type gate struct {
	entrance
	http.Handler          // the pages
	host, port   string   // of the listener
	proxy        *url.URL // the origin at which a proxy serves the pages, too; nil: none does

	cookie, csrf string
	used         sync.Map // tokens
}

func newGate(at net.Addr, proxy *url.URL, csrf string, pages http.Handler) *gate {
	host, port, _ := net.SplitHostPort(at.String())
	g := &gate{Handler: pages, host: host, port: port, proxy: proxy, cookie: rand.Text(), csrf: csrf}
	g.Key, g.At, g.URL = rand.Text(), at.String(), "http://"+at.String()
	if proxy != nil {
		g.URL = proxy.String()
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

// A site is a scheme, a name and a port, in the one spelling of all that mean it.
type site struct{ scheme, name, port string }

// siteOf reads a host with or without a port. Proxies and browsers leave out the scheme's own port, or name it, and leave
// names in any case, with a dot at the end or without.
func siteOf(scheme, host string) site {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = strings.Trim(host, "[]"), ""
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if at, err := netip.ParseAddr(name); err == nil {
		name = at.String()
	}
	return site{scheme, name, cmp.Or(port, map[string]string{"http": "80", "https": "443"}[scheme])}
}

// isHost reports whether a Host header names this server. Another name may be an attacker's that points here.
func (g *gate) isHost(host string) bool { return g.isListener(host) || g.isProxy(host) }

func (g *gate) isListener(host string) bool {
	at := siteOf("http", host)
	return at.port == g.port && slices.Contains([]string{"localhost", "127.0.0.1", "::1", g.host}, at.name)
}

// isProxy reports whether a Host header names the proxy, which may have left out its port.
func (g *gate) isProxy(host string) bool {
	if g.proxy == nil {
		return false
	}
	at, proxy := siteOf(g.proxy.Scheme, host), siteOf(g.proxy.Scheme, g.proxy.Host)
	return at == proxy || at.name == proxy.name && siteOf("", host).port == ""
}

// origin is that of the pages for a browser that names this host.
func (g *gate) origin(host string) string {
	if !g.isListener(host) {
		return g.proxy.String()
	}
	return "http://" + host
}

// isForeign reports whether a page of another origin sends the request, as far as the browser says so. Some proxies put
// this listener's address into Host.
func (g *gate) isForeign(r *http.Request) bool {
	isOrigin := func(a, b string) bool {
		x, err := url.Parse(a)
		y, _ := url.Parse(b)
		return err == nil && siteOf(x.Scheme, x.Host) == siteOf(y.Scheme, y.Host)
	}
	origin, from := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	isOwn := origin == "" || isOrigin(origin, g.origin(r.Host)) || g.proxy != nil && isOrigin(origin, g.proxy.String())
	isLook := r.Method == http.MethodGet || r.Method == http.MethodHead
	return !isOwn || !isLook && !slices.Contains([]string{"", "none", "same-origin"}, from)
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; manifest-src 'self'; " +
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
	if _, after, isAddress := strings.Cut(token, "token="); isAddress { // as it was pasted into the form
		token = after
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	hasFiles, limit := isKnown && !isLook && kind == "multipart/form-data", int64(maxForm)
	if hasFiles { // it may be larger, and take longer
		limit += maxFiles
		http.NewResponseController(w).SetReadDeadline(time.Now().Add(filesTimeout))
	}
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	switch {
	case !g.isHost(r.Host):
		served := "localhost:" + g.port
		if g.proxy != nil {
			served += " and " + g.proxy.Host
		}
		refuse(w, http.StatusMisdirectedRequest, fmt.Sprintf("this server does not serve that host name, %s, but %s", letter.Quote(r.Host, 100), served))
	case g.isForeign(r):
		refuse(w, http.StatusForbidden, "this request comes from another site")
	case isLook && r.URL.Path == "/" && token != "" && g.useToken(token):
		http.SetCookie(w, &http.Cookie{
			Name: name, Value: g.cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
			Secure: strings.HasPrefix(g.origin(r.Host), "https:"), MaxAge: int(cookieAge.Seconds()),
		})
		goOn(w, "/")
	case !isKnown && isLook && r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") == "navigate":
		goOn(w, g.origin(r.Host)+r.URL.RequestURI())
	case !isKnown:
		reason := "this browser has no access yet"
		if isLook && r.URL.Path == "/" && token != "" {
			reason = "this browser has no access yet, and this address was used already, or is older than five minutes"
		}
		refuse(w, http.StatusUnauthorized, reason, "atm web --token", "prints an address that lets one browser in, once, within five minutes.")
	case !isLook && parseForm(r, hasFiles) != nil:
		refuse(w, http.StatusBadRequest, fmt.Sprintf("the text is over 1 MiB, the files are over %s or took over a minute, or this is not a form", letter.Size(maxFiles)))
	case !isLook && !isSame(r.PostFormValue("csrf"), g.csrf):
		refuse(w, http.StatusForbidden, "this request does not come from a page of this server: reload the page")
	default:
		limits := http.NewResponseController(w)
		limits.SetReadDeadline(time.Time{}) // the body was read
		limits.SetWriteDeadline(time.Now().Add(writeTimeout))
		g.Handler.ServeHTTP(w, r)
	}
}

// parseForm reads a form, and the files in it.
func parseForm(r *http.Request, hasFiles bool) error {
	if hasFiles {
		return r.ParseMultipartForm(maxForm)
	}
	return r.ParseForm()
}

const (
	maxHeader     = 64 << 10         // bytes
	maxForm       = 4 << 20          // a text has 1 MiB at most, but is encoded
	maxFiles      = 100 << 20        // of a form
	headerTimeout = 10 * time.Second // for a request to come, but for its body
	bodyTimeout   = 10 * time.Second
	filesTimeout  = time.Minute // for a body with files
	writeTimeout  = time.Minute // for an answer, or an event of a stream, to be read
	idleTimeout   = time.Minute // between two requests
)

// limitTime limits how long a request's body and its answer may take.
func limitTime(w http.ResponseWriter) {
	limits := http.NewResponseController(w)
	limits.SetReadDeadline(time.Now().Add(bodyTimeout))
	limits.SetWriteDeadline(time.Now().Add(writeTimeout))
}

// goOn is a page that leads to another one. It is no redirect: after a link on another site, such as that of [[on]] in a
// mail, the browser would follow that without the cookie.
func goOn(w http.ResponseWriter, to string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	templates.ExecuteTemplate(w, "go-on", to)
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

// An entrance makes the one-time addresses that let a browser in. It is saved, so that `atm web --token` can make another
// address.
type entrance struct {
	URL string    `json:"url"` // where browsers reach it
	At  string    `json:"at"`  // its listener: the URL may be a proxy's
	Key string    `json:"key"` // signs the tokens that let a browser in
	As  wire.Name `json:"as,omitempty"`
}

const (
	tokenAge  = 5 * time.Minute     // after which a token is refused
	cookieAge = 30 * 24 * time.Hour // else a phone that closes the page loses the cookie, which ends with the program anyway
)

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
	prefix, err := entranceFile(s)
	if err != nil {
		return nil, err
	}
	data, _ := json.Marshal(e)
	file := fmt.Sprint(prefix, os.Getpid())
	return func() { os.Remove(file) }, durable.WritePrivate(file, data)
}

// entranceFile is the beginning of the names of the files of a team's entrances; their process ids end them. Only this user
// can read them.
func entranceFile(s *app.Scope) (prefix string, err error) {
	return s.Root.StateFile("web", string(s.Team.Name), "-")
}

// entrances returns those of the team's running servers, and removes the files of killed ones.
func entrances(s *app.Scope) (running []entrance, err error) {
	prefix, err := entranceFile(s)
	if err != nil {
		return nil, err
	}
	files, _ := filepath.Glob(prefix + "*")
	for _, file := range files {
		var e entrance
		if data, err := durable.ReadRegular(file, 64<<10); err != nil || json.Unmarshal(data, &e) != nil {
			continue // it has just begun or ended
		}
		if conn, err := net.DialTimeout("tcp", e.At, time.Second); err == nil {
			conn.Close()
		} else if !os.IsTimeout(err) { // a slow server still runs
			os.Remove(file) // it was killed
			continue
		}
		running = append(running, e)
	}
	return running, nil
}

// printTokens prints an address of each running server of the team. An agent may get in only as itself.
func printTokens(s *app.Scope, p *command.Printer) error {
	servers, err := entrances(s)
	if err != nil {
		return err
	}
	by := s.Actor()
	addresses := []string{}
	for _, server := range servers {
		switch {
		case by == policy.Actor{}, by.Name != "" && by.Name == server.As, server.As == "" && !by.IsAgent:
		case server.As == "":
			return failure.Refused("an agent may not open that page").WithHint("`atm team`, `atm ls`")
		default:
			return failure.Refused("only %[1]s may open a page as %[1]s", server.As).WithHint("`atm team`, `atm ls`")
		}
		addresses = append(addresses, server.address())
	}
	if len(addresses) == 0 {
		return failure.NotFound("no atm web is running for team %q", s.Team.Name).WithHint("`atm web`")
	}
	return p.PrintAs(map[string]any{"urls": addresses}, strings.Join(addresses, "\n"))
}
