package web

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// proxy starts atm web behind a TLS reverse proxy that is called phone.example, and returns the address that atm prints.
// The proxy passes the name on, as most do.
func (s *team) proxy() (address string) {
	s.Helper()
	var behind atomic.Value
	proxy := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: behind.Load().(string)})
		r.Out.Host = r.In.Host
	}})
	s.Cleanup(proxy.Close)
	s.Cleanup(proxy.CloseClientConnections)
	address = s.web("--url", "https://phone.example"+proxy.URL[strings.LastIndex(proxy.URL, ":"):])
	data, err := os.ReadFile(s.webFile())
	must(s, err)
	var e entrance
	must(s, json.Unmarshal(data, &e))
	behind.Store(e.At)
	return address
}

// tap touches an element.
func (b *tab) tap(selector string) {
	b.Helper()
	b.becomes(`!document.querySelector(".moved")`) // or it cannot be pressed yet
	at := b.js(fmt.Sprintf(`(one => {
		one.scrollIntoView({ block: 'center', behavior: 'instant' })
		const at = one.getBoundingClientRect()
		return [at.x + at.width / 2, at.y + at.height / 2]
	})(document.querySelector(%q))`, selector)).([]any)
	finger := []*input.TouchPoint{{X: at[0].(float64), Y: at[1].(float64)}}
	for _, touch := range []input.DispatchTouchEventParams{{Type: input.DispatchTouchEventTypeTouchStart, TouchPoints: finger}, {Type: input.DispatchTouchEventTypeTouchEnd, TouchPoints: []*input.TouchPoint{}}} {
		_, err := chromedp.Call(b.ctx, input.DispatchTouchEvent, touch)
		must(b, err)
	}
}

// phone makes the tab's screen a phone's.
func (b *tab) phone() {
	b.do(chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile, chromedp.EmulateTouch))
}

// The address of a question opens it on a phone, behind a proxy with TLS, where it is answered by touch, also
// with large type. The pages can be installed.
func TestPhone(t *testing.T) {
	t.Parallel()
	s := newTeam(t, "alice", "bob", "me")
	b := s.browser("about:blank")
	s.Atm("run", "bob", "--detach", "--driver", "claude", "--", "fakeagent")
	s.Atm("wait", "--idle", "bob")
	t.Cleanup(func() { s.Command("atm", "stop", "bob").Run() })

	address := s.proxy()
	home := base(address)
	b.phone()
	b.load(s.Atm("web", "--token")) // the first one was used on another screen
	b.shows("Members")
	if got := b.js(`isSecureContext`); got != true {
		t.Error("a browser would not install it")
	}
	manifest, err := chromedp.Call(b.ctx, cdppage.GetAppManifest, cdppage.GetAppManifestParams{})
	must(t, err)
	var m struct {
		Name, Display, Scope string
		Start                string `json:"start_url"`
		Icons                []struct{ Src, Sizes, Type string }
	}
	if err := json.Unmarshal([]byte(manifest.Data), &m); err != nil || len(manifest.Errors) > 0 || !strings.HasPrefix(m.Name, filepath.Base(s.Dir)+" / main") ||
		m.Display != "standalone" || m.Start != "/" || len(m.Icons) < 2 || strings.Contains(manifest.Data, "token") {
		t.Error(manifest.Data, manifest.Errors, err)
	}
	for _, icon := range m.Icons {
		if got := b.js(fmt.Sprintf(`fetch(%q).then(answer => answer.blob()).then(async blob => blob.type + ' ' + (blob.type === 'image/png' ? (await createImageBitmap(blob)).width : 'any'))`, icon.Src)); got != icon.Type+" "+strings.Split(icon.Sizes, "x")[0] {
			t.Error(icon, got)
		}
	}

	// The link leads to the question, from another site too, and lets nobody in.
	s.Atm("send", "bob", "CONFIRM [git push]")
	b.load(home)
	b.becomes(`document.querySelector('[id^=question-bob-]') != null`)
	link := home + "/question/" + strings.TrimPrefix(b.js(`document.querySelector('[id^=question-bob-]').id`).(string), "question-")
	mail := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width"><a href="%s">bob is blocked</a>`, link)
	}))
	defer mail.Close()
	b.load(mail.URL)
	b.becomes(`document.querySelector('a') != null`)
	b.tap("a")
	b.becomes(`location.hash.startsWith('#question-bob-') && document.querySelector(location.hash).getBoundingClientRect().top < innerHeight`)
	stranger := s.visitNobody(address)
	r, err := stranger.Get(link)
	must(t, err)
	if data, _ := io.ReadAll(r.Body); r.StatusCode != http.StatusUnauthorized || strings.Contains(string(data), "git push") {
		t.Error(r.StatusCode, string(data))
	}
	r.Body.Close()

	// Type that is twice as large is larger, and nothing is cut off or too wide.
	for _, size := range []int64{32, 16} {
		_, err := chromedp.Call(b.ctx, cdppage.SetFontSizes, cdppage.SetFontSizesParams{FontSizes: &cdppage.FontSizes{Standard: size, Fixed: size}})
		must(t, err)
		for _, path := range []string{"/", "/mail", "/timeline", "/search?q=git", "/agent/bob"} {
			b.load(home + path)
			b.becomes(fmt.Sprintf(`getComputedStyle(document.body).fontSize === '%dpx'`, size))
			if wide := b.js(`document.documentElement.scrollWidth`).(float64); wide > 390 {
				t.Errorf("%s is %v wide with type of %d: %v", path, wide, size, b.js(tooWide))
			}
			if small := b.js(smallTargets); small != "" {
				t.Errorf("%s with type of %d has targets that are too small for a finger: %v", path, size, small)
			}
			if cut := b.js(cutOff); cut != "" {
				t.Errorf("%s with type of %d cuts off: %v", path, size, cut)
			}
			if dir := os.Getenv("ATM_SCREENSHOTS"); dir != "" {
				png, _ := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
				os.WriteFile(filepath.Join(dir, fmt.Sprint("phone", size, strings.NewReplacer("/", "-", "?", "-").Replace(path), ".png")), png, 0o600)
			}
		}
	}

	b.load(link)
	b.becomes(`location.hash.startsWith('#question-bob-') && !document.querySelector('.moved')`)
	b.tap(`.question .options button.main`)
	b.shows("bob: answered")
	s.Atm("wait", "--idle", "bob")
	b.load(link)
	b.becomes(`location.pathname === '/agent/bob'`)
}

// tooWide lists what is wider than a phone.
const tooWide = `[...document.querySelectorAll('body *')].filter(one => one.getBoundingClientRect().right > 390 && !one.closest('.screen, .chart'))
	.slice(0, 5).map(one => one.outerHTML.slice(0, 200)).join('\n')`

// cutOff lists texts that their own box cuts off.
const cutOff = `[...document.querySelectorAll('button, summary, nav a, .state, .note, h1, h2, h3, .list a, td, th, label, .me, .names span')]
	.filter(one => one.checkVisibility() && !one.closest('.hidden, thead') && getComputedStyle(one).overflow !== 'visible' && getComputedStyle(one).textOverflow !== 'ellipsis' &&
		(one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 1))
	.map(one => one.outerHTML.slice(0, 200)).join('\n')`

// visitNobody is a browser that was never let in, and believes every certificate.
func (s *team) visitNobody(address string) *http.Client {
	at, err := url.Parse(address)
	must(s, err)
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext: func(_ context.Context, network, _ string) (net.Conn, error) {
			return net.Dial(network, "127.0.0.1:"+at.Port())
		},
	}}
}

// A port that ssh -L forwards needs nothing else, if it has the same number.
func TestForwarded(t *testing.T) {
	t.Parallel()
	s := newTeam(t, "alice", "me")
	address := s.web()
	port := base(address)[strings.LastIndex(base(address), ":")+1:]
	ln, err := net.Listen("tcp", "[::1]:"+port) // the phone's own localhost
	if err != nil {
		t.Skip(err)
	}
	defer ln.Close()
	go func() {
		for {
			from, err := ln.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", "127.0.0.1:"+port)
			if err != nil {
				from.Close()
				return
			}
			go func() { io.Copy(to, from); to.Close() }()
			go func() { io.Copy(from, to); from.Close() }()
		}
	}()
	b := s.browser(strings.Replace(address, "127.0.0.1", "[::1]", 1))
	b.phone()
	b.shows("Members")
	faults, err := chromedp.Call(b.ctx, cdppage.GetInstallabilityErrors, cdp.Empty{})
	must(t, err)
	for _, fault := range faults.InstallabilityErrors {
		if fault.ErrorID != "in-incognito" { // so does a browser without a profile
			t.Error(fault.ErrorID, fault.ErrorArguments)
		}
	}
	s.Atm("send", "me", "through the tunnel", "--as", "alice")
	b.shows("through the tunnel")
	b.tap("button[value=read]")
	b.shows("Marked as read: through the tunnel")

	// An app has no place for an address: the page of who has no access does.
	other := s.browser(base(address))
	other.shows("has no access yet")
	other.do(chromedp.SendKeys("#token", s.Atm("web", "--token")), chromedp.Click("button"))
	other.shows("Members")
}

// What a proxy passes on is let in by its own name alone, whatever it puts into Host.
func TestProxy(t *testing.T) {
	t.Parallel()
	s := newTeam(t, "alice", "me")
	for _, c := range [][2]string{
		{"phone.example", "is not the address of a server"}, {"https://phone.example/atm", "without a path"}, {"https://münchen.example", "other letters"}, {"https://", "is not the address"},
		{"ftp://phone.example", "can be read on its way"}, {"http://phone.example", "can be read on its way"}, {"https://me@phone.example", "is not the address"},
	} {
		if out, err := s.Command("atm", "web", "--url", c[0]).CombinedOutput(); err == nil || !strings.Contains(string(out), c[1]) {
			t.Errorf("%s: %v %s", c[0], err, out)
		}
	}
	port := freePort(t)
	own := "127.0.0.1:" + port
	address := s.web("--listen", own, "--url", "https://Phone.example/")
	if base(address) != "https://phone.example" {
		t.Fatal(address)
	}
	ask := func(method, path, host, body string, header ...string) *http.Response {
		r, err := http.NewRequest(method, "http://"+own+path, strings.NewReader(body))
		must(t, err)
		r.Host = host
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		answer, err := (&http.Transport{}).RoundTrip(r)
		must(t, err)
		return answer
	}
	text := func(r *http.Response) string {
		defer r.Body.Close()
		data, _ := io.ReadAll(r.Body)
		return string(data)
	}
	in := ask("GET", strings.TrimPrefix(address, base(address)), "phone.example", "")
	set := in.Header.Get("Set-Cookie")
	if in.StatusCode != http.StatusOK || !strings.Contains(set, "; Secure") || !strings.Contains(set, "; Max-Age=") {
		t.Error(in.StatusCode, set)
	}
	known := []string{"Cookie", in.Cookies()[0].Name + "=" + in.Cookies()[0].Value}
	form := "do=send&to=alice&text=x&csrf=" + csrf.FindStringSubmatch(text(ask("GET", "/", own, "", known...)))[1]
	for _, c := range []struct {
		code         int
		host, origin string
	}{
		{303, "phone.example", "https://phone.example"}, {303, own, "https://phone.example"}, {303, own, "http://" + own}, {303, "phone.example", ""},
		{303, "PHONE.example", "https://phone.example"}, {303, "phone.example:443", "https://phone.example"}, {303, "phone.example.", "https://phone.example."},
		{303, "phone.example.:443", "https://Phone.example:443"}, {303, "LocalHost.:" + port, "http://localhost:" + port}, {303, "[::1]:" + port, "http://[0:0::1]:" + port},
		{303, "[0:0:0:0:0:0:0:1]:" + port, "http://[::1]:" + port}, {403, "phone.example", "https://phone.example:8443"}, {421, "phone.example..", ""},
		{403, "phone.example", "http://phone.example"}, {403, "phone.example", "https://evil.example"}, {403, own, "http://phone.example"},
		{421, "evil.example", "https://phone.example"}, {421, "phone.example:1", "https://phone.example"}, {421, "phone.example." + port, "https://phone.example"},
	} {
		header := known
		if c.origin != "" {
			header = append([]string{"Origin", c.origin}, known...)
		}
		if r := ask("POST", "/do", c.host, form, header...); r.StatusCode != c.code {
			t.Errorf("%s from %s: %d, not %d: %s", c.host, c.origin, r.StatusCode, c.code, text(r))
		}
	}
	if got := text(ask("GET", "/", "evil.example", "")); !strings.Contains(got, "evil.example&#34;, but localhost:"+port+" and phone.example.") {
		t.Error(got)
	}
	// What is large is compressed for who takes that; a stream never is.
	for _, path := range []string{"/", "/style.css", "/atm.js"} {
		r := ask("GET", path, own, "", append([]string{"Accept-Encoding", "br, gzip"}, known...)...)
		z, err := gzip.NewReader(r.Body)
		must(t, err)
		small, err := io.ReadAll(z)
		must(t, err)
		r = ask("GET", path, own, "", append([]string{"Accept-Encoding", "br"}, known...)...)
		if whole := text(r); len(whole) < 1000 || path != "/" && whole != string(small) || r.Header.Get("Content-Encoding") != "" || r.Header.Get("Vary") == "" {
			t.Errorf("%s: %d bytes, %d, %v", path, len(whole), len(small), r.Header)
		}
	}

	// A link of another site leads on, to this one only; nothing else of another site does.
	cross := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}
	if got := text(ask("GET", "//evil.example/x?y=%22", "phone.example", "", cross...)); !strings.Contains(got, `content="0;url=https://phone.example//evil.example/x?y=%22"`) {
		t.Error(got)
	}
	if r := ask("GET", "/mail", "phone.example", "", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"); r.StatusCode != http.StatusUnauthorized {
		t.Error(r.StatusCode)
	}
}

// Through a reverse proxy comes the stream, event by event, and it forbids nginx to keep them.
func TestStreamThroughProxy(t *testing.T) {
	t.Parallel()
	s := newTeam(t, "alice", "me")
	address := s.proxy()
	v := &http.Client{Transport: s.visitNobody(address).Transport}
	v.Jar, _ = cookiejar.New(nil)
	get := func(path string) *http.Response {
		r, err := v.Get(base(address) + path)
		must(t, err)
		return r
	}
	r := get(strings.TrimPrefix(address, base(address)))
	r.Body.Close()
	page, _ := io.ReadAll(get("/").Body)
	events := get("/stream?csrf=" + csrf.FindStringSubmatch(string(page))[1])
	defer events.Body.Close()
	if events.Header.Get("X-Accel-Buffering") != "no" || events.Header.Get("Content-Encoding") != "" {
		t.Error(events.Header)
	}
	lines := bufio.NewScanner(events.Body)
	next := func() string {
		for lines.Scan() {
			if data, isData := strings.CutPrefix(lines.Text(), "data: "); isData {
				return data
			}
		}
		t.Fatal(lines.Err())
		return ""
	}
	before := next()
	s.Atm("send", "me", "through the proxy", "--as", "alice")
	if after := next(); after == before {
		t.Error(after)
	}
}

func freePort(t *testing.T) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer ln.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	return port
}
