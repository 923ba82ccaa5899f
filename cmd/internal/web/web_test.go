package web

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"html"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/cmd/internal/testteam"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestMain(m *testing.M) {
	testteam.Main(m)
}

// A team has the member me, which runs its commands.
type team struct {
	*testteam.Team
	server *exec.Cmd // the last atm web
}

func newTeam(t *testing.T, members ...string) *team {
	s := &team{Team: testteam.New(t, members...)}
	s.Env = append(s.Env, "ATM_AGENT=me")
	return s
}

// web starts atm web, and returns the address that it prints.
func (s *team) web(args ...string) string {
	s.Helper()
	cmd := s.Command("atm", append([]string{"web"}, args...)...)
	s.server = cmd
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	must(s, err)
	s.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	must(s, err)
	return strings.TrimSpace(line)
}

// webFile is where the last atm web says where it is.
func (s *team) webFile() (file string) {
	s.Helper()
	must(s, filepath.WalkDir(filepath.Dir(s.Dir), func(path string, _ os.DirEntry, err error) error {
		if filepath.Base(filepath.Dir(path)) == "web" && strings.HasSuffix(path, fmt.Sprint("-", s.server.Process.Pid)) {
			file = path
		}
		return err
	}))
	return file
}

func base(address string) string { return address[:strings.Index(address, "/?")] }

// A visitor is a browser without a script.
type visitor struct {
	*team
	http.Client
	base string
}

func (s *team) visit(address string) *visitor {
	s.Helper()
	jar, _ := cookiejar.New(nil)
	v := &visitor{s, http.Client{Jar: jar}, base(address)}
	if code, text := v.get(strings.TrimPrefix(address, v.base)); code != http.StatusOK {
		s.Fatal(code, text)
	}
	return v
}

func (v *visitor) get(path string) (code int, text string) {
	v.Helper()
	r, err := v.Get(v.base + path)
	return v.read(r, err)
}

func (v *visitor) read(r *http.Response, err error) (code int, text string) {
	v.Helper()
	must(v, err)
	defer r.Body.Close()
	data, err := io.ReadAll(r.Body)
	must(v, err)
	return r.StatusCode, string(data)
}

var csrf = regexp.MustCompile(`name="csrf" value="(\w+)"`)

// do submits a form with the token of a page.
func (v *visitor) do(page string, fields ...string) (code int, text string) {
	v.Helper()
	_, text = v.get(page)
	form := url.Values{"csrf": csrf.FindStringSubmatch(text)[1:], "back": {page}}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	r, err := v.PostForm(v.base+"/do", form)
	return v.read(r, err)
}

// hostile texts must be shown as they are.
var hostile = []string{
	`<script>window.pwned = 1</script>`,
	`"><img src=x onerror="window.pwned = 1">`,
	`<svg onload="window.pwned = 1"><a xlink:href="javascript:window.pwned = 1">x</a></svg>`,
	`[click](javascript:window.pwned=1) javascript:window.pwned=1`,
	`{{.CSRF}} ${window.pwned = 1} <div hx-get="/mail" hx-trigger="load" hx-on:load="window.pwned=1">`,
	"\x1b]0;title\a\x1b[31mred\x1b[2J\u202egnp.exe\u0007",
	"</textarea></template></title></style><style>*{display:none}</style>",
	"pass\u200bword\U000e0041 </system-reminder>",
	strings.Repeat("W", 1_000_000),
}

// Everything works without a script: pages mark nothing, and a button does what its verb does.
func TestWithoutScript(t *testing.T) {
	t.Parallel()
	s := newTeam(t, "alice", "bob", "me")
	for _, text := range hostile {
		cmd := s.Command("atm", "send", "me", "--ack", "--as", "alice", "-")
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	s.Atm("event", "confirm_required", "tool=\x1b[2J\u202eX", "--as", "bob")
	v := s.visit(s.web())
	_, mail := v.get("/mail")
	threads := regexp.MustCompile(`href="(/thread/[^"#]+)#m-([^"]+)"`).FindAllStringSubmatch(mail, -1)
	if len(threads) != len(hostile) {
		t.Fatal(mail)
	}
	all, ids := "", map[string]string{}
	for i, match := range threads { // the newest is the first
		code, text := v.get(match[1])
		if code != http.StatusOK {
			t.Error(code, text)
		}
		all, ids[hostile[len(hostile)-1-i]] = all+text, match[2]
	}
	for _, path := range []string{"/", "/mail", "/timeline", "/search?q=" + url.QueryEscape(`<script> "><img`), "/agent/alice", "/agent/me", "/thread/" + url.QueryEscape(hostile[1])} {
		_, text := v.get(path)
		all += text
	}
	for _, pattern := range []string{`<script>`, `<img`, `<svg onload`, `<style`, `<div hx-get="/mail"`, "\x1b", "\u202e", "\u200b", "\U000e0041", "&lt;/system-reminder", `href="javascript:`} {
		if n := strings.Index(all, pattern); n >= 0 {
			t.Errorf("%q is on a page: %.200q", pattern, all[n:])
		}
	}
	if !strings.Contains(all, html.EscapeString(hostile[0])) || !strings.Contains(all, `\x1b]0;title\a`) && !strings.Contains(all, `]0;title`) {
		t.Error("a text is not on its page")
	}
	if !strings.Contains(all, `pass\u200bword\U000e0041 &lt;\/system-reminder&gt;</pre>`) || !strings.Contains(all, "escaped: <code>atm show ") {
		t.Error("what is hidden is not shown, or the page does not say so")
	}
	if n := s.Atm("ls", "--count"); n != fmt.Sprint(len(hostile)) {
		t.Error("unread after looking:", n)
	}
	_, text := v.get("/timeline")
	messages := 0
	for _, arrow := range regexp.MustCompile(`class="arrow"[^>]*><title>(?:(\d+) messages )?`).FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(cmp.Or(arrow[1], "1"))
		messages += n
	}
	if !strings.Contains(text, "<title>bob: blocked ") || messages != len(hostile) {
		t.Error("the timeline does not show states and messages: ", messages, text)
	}

	says := func(code int, text, want string) {
		t.Helper()
		if !strings.Contains(text, want) {
			t.Errorf("%d %.2000s\nwant %q", code, text, want)
		}
	}
	code, text := v.do("/mail", "do", "read", "id", ids[hostile[0]])
	says(code, text, "Marked as read: &lt;script&gt;")
	other := s.visit(s.Atm("web", "--token")) // which does not see this one's results
	if _, text = other.get("/mail?done=read"); strings.Contains(text, `Marked as read`) {
		t.Error(text)
	}
	code, text = v.do("/mail", "do", "ack", "id", ids[hostile[1]])
	says(code, text, "Acknowledged: ")
	code, text = v.do("/mail", "do", "reply", "id", ids[hostile[2]], "text", "one\r\ntwo")
	says(code, text, "sent ")
	if code, text = v.do("/mail", "do", "reply", "id", "no id!", "text", "one"); code != http.StatusBadRequest {
		t.Error(code)
	}
	says(code, text, "4 to 32 hex digits")
	code, text = v.do("/", "do", "send", "to", "alice,bob", "text", "hello")
	says(code, text, "sent ")
	v.do("/", "do", "send", "to", "alice,bob", "text", "hello") // as if the button was pressed twice
	if got := s.Atm("read", "--as", "alice", "--limit", "9"); !strings.Contains(got, "  one\n  two") || strings.Count(got, "  hello") != 1 || !strings.Contains(got, "acks ") {
		t.Error(got)
	}
	if n := s.Atm("ls", "--count"); n != fmt.Sprint(len(hostile)-3) {
		t.Error("unread after three buttons:", n)
	}
	// The second click aborts the first request; still the message is sent, once.
	_, text = v.get("/")
	form := url.Values{"csrf": csrf.FindStringSubmatch(text)[1:], "back": {"/"}, "do": {"send"}, "to": {"alice,bob"}, "text": {"impatient"}}
	for _, limit := range []time.Duration{time.Millisecond, 3 * time.Millisecond, 5 * time.Millisecond} {
		v.Timeout = limit
		if r, err := v.PostForm(v.base+"/do", form); err == nil {
			r.Body.Close()
		}
	}
	v.Timeout = 0
	r, err := v.PostForm(v.base+"/do", form)
	code, text = v.read(r, err)
	says(code, text, "sent ")
	for _, name := range []string{"alice", "bob"} {
		if got := s.Atm("read", "--as", name, "--limit", "9"); strings.Count(got, "  impatient") != 1 {
			t.Error(name, got)
		}
	}
	// A refusal gives its reason, and keeps the text.
	code, text = v.do("/", "do", "send", "to", "alcie", "text", "precious")
	says(code, text, "did you mean &#34;alice&#34;?")
	says(code, text, "precious</textarea>")
	says(code, text, `value="alcie"`)
	code, text = v.do("/", "do", "approve", "id", "nothing")
	says(code, text, "no open question")
	code, text = v.get("/agent/nobody")
	says(code, text, "no agent &#34;nobody&#34;")
	if code != http.StatusNotFound {
		t.Error(code)
	}

	// A question on the session channel has a field for its answer.
	s.Atm("event", "waiting_for_input", "prompt=Which branch?", "--as", "alice")
	field := regexp.MustCompile(`name="do" value="answer"><input type="hidden" name="agent" value="alice"><input type="hidden" name="id" value=""><input type="hidden" name="since" value="([^"]+)">`)
	var asked []string
	for end := time.Now().Add(3 * time.Minute); asked == nil && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		_, text = v.get("/")
		asked = field.FindStringSubmatch(text)
	}
	if asked == nil {
		t.Fatal(text)
	}
	code, text = v.do("/", "do", "answer", "agent", "alice", "since", asked[1], "text", "main")
	says(code, text, "sent ")
	if got := s.Atm("read", "--as", "alice", "--limit", "9"); !strings.Contains(got, "human_input\n  main") {
		t.Error(got)
	}

	// A search finds mail between others, also in a thread that is partly mine.
	id := strings.Fields(s.Atm("send", "alice", "of mine"))[1]
	s.Atm("send", "bob", "between others", "--thread", id, "--as", "alice")
	_, text = v.get("/search?q=between+others")
	_, text = v.get(regexp.MustCompile(`href="(/thread/[^"#]+)#`).FindStringSubmatch(text)[1])
	says(200, text, "between others</pre>")

	// Without an identity there are no forms.
	s.Env = append(s.Env, "ATM_AGENT=")
	v = s.visit(s.web())
	_, text = v.get("/")
	if strings.Contains(text, "<form") || !strings.Contains(text, "read-only") {
		t.Error(text)
	}
}

// sentID returns the id in what atm send prints.
func sentID(said string) string { return strings.Fields(said)[1] }

// What wants me comes first and is strong, also where newer mail is, and the mail of a question is not shown beside it.
func TestWhatWantsMe(t *testing.T) {
	t.Parallel()
	s := newTeam(t, "alice", "bob", "me")
	s.Atm("send", "me", "CI is red", "--urgent", "--as", "alice")
	s.Atm("send", "me", "Which port?", "--ack", "--as", "alice")
	s.Atm("send", "me", "An estimate?", "--due", "1ms", "--as", "alice")
	for i := range 2 * maxNew {
		s.Atm("send", "me", fmt.Sprint("note ", i), "--as", "alice")
	}
	s.Write(".atm/main/team.toml", "lead = \"me\"\n[members.bob]\n")
	s.Atm("run", "bob", "--detach", "--driver", "claude", "--", "fakeagent")
	t.Cleanup(func() { s.Command("atm", "stop", "bob").Run() })
	s.Atm("send", "bob", "CONFIRM [git push --force]")
	s.Atm("wait", "--blocked", "bob")
	s.Eventually("the lead is asked", func() bool { return strings.Contains(s.Atm("ls"), "bob asks") })
	v := s.visit(s.web())
	for _, path := range []string{"/", "/mail"} {
		_, text := v.get(path)
		if strings.Count(text, "git push --force") != 1 || strings.Count(text, `class="question"`) != 1 || strings.Contains(text, "bob asks: ") {
			t.Errorf("%s: the question is not there once: %s", path, text)
		}
		if !strings.Contains(text, fmt.Sprintf(`id="unread">%d<`, 2*maxNew+3)) {
			t.Errorf("%s counts the question as mail: %s", path, text)
		}
		rows := regexp.MustCompile(`(?s)<li id="row-.*?</li>`).FindAllString(text, -1)
		for i, want := range []string{"CI is red", "An estimate?", "Which port?", fmt.Sprint("note ", 2*maxNew-1)} {
			if len(rows) <= i || !strings.Contains(rows[i], want) {
				t.Fatalf("%s: row %d is not %q: %s", path, i, want, rows)
			}
			if isStrong := strings.Contains(rows[i], `class="note strong"`); isStrong != (i < 2) {
				t.Errorf("%s: row %d is strong: %v", path, i, isStrong)
			}
		}
		if owes := regexp.MustCompile(`href="/message/[0-9a-f-]+">you owe alice an answer, due `); path == "/" && !owes.MatchString(text) {
			t.Error("the page does not say that I owe an answer: ", text)
		}
		project := filepath.Base(s.Dir)
		if !strings.Contains(text, "· "+project+" / main · atm</title>") || !strings.Contains(text, "<bdi>"+project+"</bdi> / main</a>") {
			t.Error("the page does not say of which project it is: ", text)
		}
	}
}

// A file that is attached is a download with a harmless name, and never a page of this site.
func TestAttached(t *testing.T) {
	t.Parallel()
	s := newTeam(t, "alice", "me")
	page := "<script>alert(1)</script>"
	s.Write("CLAUDE.md", page)
	s.Write("a\u202eb;\"é.html", page)
	id := sentID(s.Atm("send", "me", "Two files", "--attach", "CLAUDE.md", "--attach", "a\u202eb;\"é.html", "--as", "alice"))
	v := s.visit(s.web())
	if _, text := v.get("/"); !strings.Contains(text, `<span class="note">2 attached</span>`) {
		t.Error(text)
	}
	_, text := v.get("/message/" + id)
	links := regexp.MustCompile(`href="(/attached/[^"]+)" download`).FindAllStringSubmatch(text, -1)
	if len(links) != 2 {
		t.Fatal(text)
	}
	names := []string{}
	for _, link := range links {
		r, err := v.Get(v.base + link[1])
		code, text := v.read(r, err)
		kind, fields, err := mime.ParseMediaType(r.Header.Get("Content-Disposition"))
		if code != http.StatusOK || text != page || kind != "attachment" || err != nil ||
			r.Header.Get("Content-Type") != "application/octet-stream" || r.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Error(code, text, r.Header, err)
		}
		names = append(names, fields["filename"])
	}
	if got, want := fmt.Sprintf("%q", names), `["1-CLAUDE.md" "2-a_u202eb;_é.html"]`; got != want {
		t.Errorf("%s, not %s", got, want)
	}
	for _, path := range []string{"/attached/" + id + "/3", "/attached/" + id + "/0", "/attached/" + id + "/x", "/attached/0123456789ab/1"} {
		if code, text := v.get(path); code != http.StatusNotFound {
			t.Error(path, code, text)
		}
	}
	if got := downloadName(1, "../../.ssh/x\n|y"); strings.ContainsAny(got, "/\\\n|") || strings.HasPrefix(got, ".") {
		t.Error(got)
	}
}

// A member's page says how to start it and has what it has: a person has no screen and no turns.
func TestMemberPage(t *testing.T) {
	t.Parallel()
	s := newTeam(t, "alice", "bob", "me")
	s.Write(".atm/main/team.toml", "[members.bob]\ncommand = [\"fakeagent\"]\ndriver = \"claude\"\n")
	v := s.visit(s.web())
	has := func(path, text string, is bool) {
		t.Helper()
		if _, page := v.get(path); strings.Contains(page, text) != is {
			t.Errorf("%q is on %s: %v: %s", text, path, !is, page)
		}
	}
	has("/", "atm run alice -- CMD", true)
	has("/", `<span class="state person">`, true)
	has("/agent/me", "<h2 id=\"turns-title\"", false)
	has("/agent/me", `id="screen"`, false)
	has("/agent/me", "Start it", false)
	has("/agent/alice", `id="screen"`, false)
	has("/agent/alice", "<code>atm run alice -- CMD</code>", true)
	has("/agent/alice", `value="start"`, false)
	has("/agent/bob", "<code>atm up bob</code>", true)
	t.Cleanup(func() { s.Command("atm", "stop", "bob").Run() })
	if code, text := v.do("/agent/bob", "do", "start", "agent", "bob"); code != http.StatusOK || !strings.Contains(text, `role="status" tabindex="-1">bob`) {
		t.Error(code, text)
	}
	s.Eventually("its page has its screen", func() bool {
		_, text := v.get("/agent/bob")
		return strings.Contains(text, `id="screen"`) && !strings.Contains(text, `value="start"`)
	})
	s.Atm("send", "bob", "THINK 3000")
	s.Eventually("it can be interrupted", func() bool {
		_, text := v.get("/agent/bob")
		return strings.Contains(text, `value="interrupt"`)
	})
	if code, text := v.do("/agent/bob", "do", "interrupt", "agent", "bob"); code != http.StatusOK {
		t.Error(code, text)
	}
	s.Atm("wait", "--idle", "bob")
	// Its turn has the message, without the frame in which a model gets it, and leads to it.
	_, text := v.get("/agent/bob")
	link := regexp.MustCompile(`<a id="said-[^"]+" href="(/message/[0-9a-f]+)">me</a>: THINK 3000</p>`).FindStringSubmatch(text)
	if link == nil || strings.Contains(text, "answer: atm reply") && !strings.Contains(text, "screen") {
		t.Fatal(text)
	}
	if code, text := v.get(link[1]); code != http.StatusOK || !strings.Contains(text, "THINK 3000</pre>") {
		t.Error(code, text)
	}

	if code, text := v.do("/agent/bob", "do", "stop", "agent", "bob"); code != http.StatusOK || !strings.Contains(text, `role="status" tabindex="-1">bob: stopped`) {
		t.Error(code, text)
	}
	s.Eventually("it can be started", func() bool {
		_, text := v.get("/agent/bob")
		return strings.Contains(text, `value="start"`)
	})

	// A member that has just joined, which the room may not know yet, has a page.
	s.Atm("team", "add", "carol")
	if code, text := v.get("/agent/carol"); code != http.StatusOK {
		t.Error(code, text)
	}

	alone := newTeam(t, "me")
	v = alone.visit(alone.web())
	has("/", "There is no agent yet. Start one in a terminal: <code>atm run alice -- claude</code>", true)
}

// The pages have what is on other machines, mail between others, what is kept, and all that can be read.
func TestWhatIsThere(t *testing.T) {
	t.Parallel()
	s := newTeam(t, "alice", "bob", "me")
	s.Write(".atm/main/team.toml", "[members.me]\nfrom = [\"bob\"]\n")
	s.Atm("send", "me", "--as", "alice", "--", hostile[0])
	s.Atm("send", "bob", "between others"+"\u200b\u3164", "--as", "alice")
	now := time.Now().UTC().Format(time.RFC3339) // and a member on another machine
	rows := `{"host":"build","at":"` + now + `","received_at":"` + now + `","members":[{"name":"dora","kind":"agent","state":"blocked",
		"questions":[{"id":"01a1f988-a192-7149-befa-09c1aa2f2250","agent":"dora","kind":"permission","tool":"Bash","prompt":"Run it?","running":true}]}]}`
	must(t, os.MkdirAll(filepath.Join(s.Dir, ".atm/main/.bridge/rows"), 0o700))
	must(t, os.WriteFile(filepath.Join(s.Dir, ".atm/main/.bridge/rows/build.json"), []byte(rows), 0o600))
	v := s.visit(s.web())
	has := func(path, text string) {
		t.Helper()
		if code, page := v.get(path); code != http.StatusOK || !strings.Contains(page, text) {
			t.Errorf("no %q on %s: %d %s", text, path, code, page)
		}
	}
	has("/", "dora@build</a> wants to run <small>")
	has("/mail", `<span class="note">kept</span>`)
	has("/style.css", ".f45{color:#00d7ff}") // the colours of screens
	_, page := v.get("/timeline")
	links := regexp.MustCompile(`href="(/[^"#]*)`).FindAllStringSubmatch(page, -1)
	all := ""
	for _, link := range links {
		code, page := v.get(link[1])
		if code != http.StatusOK {
			t.Error(link[1], code, page)
		}
		all += page
	}
	if !strings.Contains(all, `between others\u200b\u3164</pre>`) {
		t.Error("the timeline does not lead to mail between others: ", page)
	}
	// An unreadable mailbox does not hide the others.
	cur := filepath.Join(s.Dir, ".atm/main/bob/inbox/cur")
	must(t, errors.Join(os.RemoveAll(cur), os.WriteFile(cur, nil, 0o600)))
	for _, text := range []string{"Some of this cannot be read: the mailbox of bob: ", "between others"} {
		has("/search?q=between", text)
	}
}

// Requests without a token, with a used one, for another host, or from another site are refused.
func TestGate(t *testing.T) {
	t.Parallel()
	s := newTeam(t, "alice", "me")
	address := s.web()
	v := s.visit(address)
	port := address[strings.LastIndex(base(address), ":"):strings.Index(address, "/?")]
	_, page := v.get("/")
	csrf := csrf.FindStringSubmatch(page)[1]
	at, _ := url.Parse(v.base)
	cookie := v.Jar.Cookies(at)[0]
	ask := func(method, path, host string, header ...string) (int, string, http.Header) {
		t.Helper()
		r, err := http.NewRequest(method, v.base+path, strings.NewReader("do=send&to=alice&text=x&csrf="+csrf))
		must(t, err)
		r.Host = host
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		answer, err := (&http.Transport{}).RoundTrip(r)
		code, text := v.read(answer, err)
		return code, text, answer.Header
	}
	known := []string{"Cookie", cookie.Name + "=" + cookie.Value}
	own := "127.0.0.1" + port
	second := strings.TrimPrefix(s.Atm("web", "--token"), v.base)
	for _, c := range []struct {
		code               int
		method, path, host string
		header             []string
	}{
		{200, "GET", "/", own, known},
		{200, "GET", "/", "localhost" + port, known},
		{200, "GET", "/", "[::1]" + port, known},
		{200, "GET", "/style.css", own, known},
		{421, "GET", "/", "evil.example" + port, known},
		{421, "GET", "/", "127.0.0.1", known},
		{421, "GET", "/", "127.0.0.1.evil.example" + port, known},
		{421, "GET", "/", "localhost:1", known},
		{401, "GET", "/", own, nil},
		{401, "GET", "/stream", own, nil},
		{410, "GET", "/stream?csrf=x", own, known}, // of an earlier server's page
		{401, "GET", "/style.css", own, nil},
		{401, "GET", "/", own, []string{"Cookie", cookie.Name + "=x"}},
		{401, "GET", strings.TrimPrefix(address, v.base), own, nil}, // it was used
		{401, "GET", "/?token=" + strings.Repeat("A", 90), own, nil},
		{401, "GET", "/?token=A", own, nil},
		{401, "GET", "/attached/0123456789ab/1", own, nil},
		{401, "GET", "/message/0123456789ab", own, nil},
		{200, "GET", second, own, known},
		{401, "GET", second, own, nil}, // a browser with a cookie has used it
		{401, "POST", "/do", own, nil},
		{303, "POST", "/do", own, known},
		{303, "POST", "/do", own, append([]string{"Origin", "http://" + own}, known...)},
		{403, "POST", "/do", own, append([]string{"Origin", "http://evil.example"}, known...)},
		{403, "POST", "/do", own, append([]string{"Origin", "null"}, known...)},
		{403, "POST", "/do", own, append([]string{"Sec-Fetch-Site", "cross-site"}, known...)},
		{403, "POST", "/do", own, append([]string{"Sec-Fetch-Site", "same-site"}, known...)}, // from another port
		{403, "GET", "/stream", own, append([]string{"Origin", "http://localhost:1"}, known...)},
		{403, "GET", "/", own, append([]string{"Origin", "https://" + own}, known...)},
		{403, "DELETE", "/do", own, known}, // only a form may send its token
		{404, "GET", "/nothing", own, known},
	} {
		code, text, header := ask(c.method, c.path, c.host, c.header...)
		if code != c.code {
			t.Errorf("%s %s of %s with %q: %d %.200s, want %d", c.method, c.path, c.host, c.header, code, text, c.code)
		}
		if code == http.StatusUnauthorized && (!strings.Contains(text, "<pre>atm web --token</pre>") || strings.Contains(text, "used already") != (strings.HasPrefix(c.path, "/?token="))) {
			t.Errorf("%s: the page does not say how to get in: %s", c.path, text)
		}
		if !strings.Contains(header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'; style-src 'self'") {
			t.Error(header)
		}
	}
	g := &gate{}
	for age, isGood := range map[time.Duration]bool{tokenAge - time.Minute: true, tokenAge + time.Minute: false} {
		nonce := fmt.Sprintf("%s%08x", rand.Text(), time.Now().Add(-age).Unix())
		if g.useToken(nonce+g.sign(nonce)) != isGood {
			t.Error("a token of", age)
		}
	}
	for wrong, want := range map[string]int{"wrong": 403, strings.Repeat("x", 5<<20): 400} {
		csrf = wrong
		if code, _, _ := ask("POST", "/do", own, known...); code != want {
			t.Error(code, want)
		}
	}
	if cookie.Name != "atm-"+port[1:] {
		t.Error(cookie)
	}
	_, _, header := ask("GET", strings.TrimPrefix(s.Atm("web", "--token"), v.base), own)
	if got := header.Get("Set-Cookie"); !strings.Contains(got, "HttpOnly") || !strings.Contains(got, "SameSite=Strict") || strings.Contains(got, "Expires") {
		t.Error(got)
	}
}

// Whoever is not let in cannot keep others out: not with connections that have got their refusal, nor with silent or
// half-sent ones, which end.
func TestOthersConnections(t *testing.T) {
	t.Parallel()
	s := newTeam(t, "alice", "me")
	address := s.web()
	at := strings.TrimPrefix(base(address), "http://")
	dial := func(text string) net.Conn {
		conn, err := net.Dial("tcp", at)
		must(t, err)
		t.Cleanup(func() { conn.Close() })
		conn.SetDeadline(time.Now().Add(time.Minute))
		conn.Write([]byte(text)) // fails if it was closed already
		return conn
	}
	for range 187 {
		conn := dial("GET / HTTP/1.1\r\nHost: " + at + "\r\n\r\n")
		answer, err := io.ReadAll(conn)
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 401 ") {
			t.Fatalf("it stays: %s, %v", answer, err)
		}
	}
	var silent net.Conn
	for i := range 512 {
		silent = dial([]string{"", "GET / HTTP/1.1\r\nHost: "}[i%2])
	}
	v := s.visit(address)
	if code, text := v.get("/"); code != http.StatusOK {
		t.Error(code, text)
	}
	silent.SetDeadline(time.Now().Add(time.Minute)) // all this may have taken longer
	if _, err := io.ReadAll(silent); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("a silent one stays:", err)
	}
}

// The stream is sent event by event, also through a proxy that collects what it passes on.
func TestStream(t *testing.T) {
	t.Parallel()
	s := newTeam(t, "alice", "me")
	v := s.visit(s.web())
	_, page := v.get("/")
	r, err := v.Get(v.base + "/stream?csrf=" + csrf.FindStringSubmatch(page)[1])
	must(t, err)
	defer r.Body.Close()
	if r.Header.Get("Content-Type") != "text/event-stream" || r.Header.Get("X-Accel-Buffering") != "no" {
		t.Error(r.Header)
	}
	events := bufio.NewScanner(r.Body)
	for !strings.HasPrefix(events.Text(), `data: {"screens":`) {
		if !events.Scan() {
			t.Fatal(events.Err())
		}
	}
}

// The page of a shared inbox is its board.
func TestQueue(t *testing.T) {
	t.Parallel()
	s := newTeam(t, "alice", "bob", "me", "jobs")
	s.Atm("team", "add", "jobs", "--shared")
	s.Atm("send", "jobs", "<b>first</b>", "--as", "alice")
	s.Atm("send", "jobs", "second", "--as", "alice")
	s.Atm("take", "jobs", "--as", "bob")
	_, text := s.visit(s.web("--as", "me")).get("/agent/jobs")
	for _, want := range []string{"1 taken, 1 waiting; no member serves it by itself: atm take jobs", "taken by bob for", "&lt;b&gt;first", "<b>waiting</b>"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	if strings.Contains(text, "Turns") {
		t.Error("a shared inbox has turns")
	}
}

// My mail has no end, and what is unread of it can be marked as read at once, and back.
func TestOlder(t *testing.T) {
	t.Parallel()
	s := newTeam(t, "alice", "me")
	var lines strings.Builder
	for i := range maxMail + 2 {
		fmt.Fprintf(&lines, `{"to":"me","body":"Message %d."}`+"\n", i)
	}
	cmd := s.Command("atm", "send", "--batch", "--as", "alice")
	cmd.Stdin = strings.NewReader(lines.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatal(string(out))
	}
	v := s.visit(s.web("--as", "me"))
	_, text := v.get("/mail")
	link := regexp.MustCompile(`href="(/mail\?after=[0-9a-f-]+)">2 older`).FindStringSubmatch(text)
	if link == nil {
		t.Fatal(text)
	}
	_, older := v.get(link[1])
	if !strings.Contains(older, "Message 0.") || !strings.Contains(older, "Message 1.") || strings.Contains(older, "Message 2.") {
		t.Error(older)
	}
	form := url.Values{"csrf": csrf.FindStringSubmatch(older)[1:], "back": {link[1]}, "do": {"read"}}
	for _, id := range regexp.MustCompile(`id="row-([0-9a-f-]+)"`).FindAllStringSubmatch(older, -1) {
		form.Add("id", id[1])
	}
	if !strings.Contains(older, "Mark all 2 as read") || len(form["id"]) != 2 {
		t.Error(older)
	}
	code, text := v.read(v.PostForm(v.base+"/do", form))
	if code != http.StatusOK || !strings.Contains(text, "Marked as read: 2 messages") || strings.Count(text, `name="id" value="`) < 2 {
		t.Error(code, text)
	}
	if n := s.Atm("ls", "me", "--unread", "--count"); n != fmt.Sprint(maxMail) {
		t.Error(n)
	}
	form.Set("do", "unread")
	v.read(v.PostForm(v.base+"/do", form))
	if n := s.Atm("ls", "me", "--unread", "--count"); n != fmt.Sprint(maxMail+2) {
		t.Error(n)
	}
}

// sendForm submits a form with files as a browser without a script does: names and contents in turn.
func (v *visitor) sendForm(page string, fields url.Values, files ...string) (code int, text string) {
	v.Helper()
	_, text = v.get(page)
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	w.WriteField("csrf", cmp.Or(fields.Get("csrf"), csrf.FindStringSubmatch(text)[1]))
	for name := range fields {
		w.WriteField(name, fields.Get(name))
	}
	for i := 0; i < len(files); i += 2 {
		part, err := w.CreateFormFile("file", files[i])
		must(v, err)
		part.Write([]byte(files[i+1]))
	}
	must(v, w.Close())
	r, err := v.Post(v.base+"/do", w.FormDataContentType(), &body)
	return v.read(r, err)
}

// Files go with a message or a reply, once, and with no more than its name. A refusal keeps the text and asks for the files again.
func TestAttach(t *testing.T) {
	t.Parallel()
	s := newTeam(t, "alice", "me")
	id := sentID(s.Atm("send", "me", "Your notes?", "--as", "alice"))
	v := s.visit(s.web())
	if _, text := v.get("/"); strings.Count(text, `enctype="multipart/form-data"`) != 1 || !strings.Contains(text, `type="file" id="files" name="file" multiple`) {
		t.Error("no field for files: ", text)
	}
	form := url.Values{"do": {"send"}, "to": {"alice"}, "text": {"Two files"}, "page": {"1"}, "back": {"/"}}
	large := strings.Repeat("x", 6<<20) // more than a form without files may have, and than is kept in memory
	for range 2 {                       // the second one is that of an impatient person
		if code, text := v.sendForm("/", form, "../a.txt", "<b>", "large", large); code != http.StatusOK || !strings.Contains(text, "sent ") {
			t.Fatal(code, text)
		}
	}
	got := s.Atm("read", "--as", "alice", "--limit", "9", "--json")
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(large)))
	if strings.Count(got, "Two files") != 1 || !strings.Contains(got, `"name":"a.txt"`) || !strings.Contains(got, sum) {
		t.Error(got)
	}
	if code, text := v.sendForm("/", form, "a.txt", "another"); code != http.StatusOK {
		t.Error(code, text)
	}
	if got := s.Atm("read", "--as", "alice", "--limit", "9", "--json"); strings.Count(got, "Two files") != 1 {
		t.Error("another file is another message: ", got)
	}
	_, text := v.get("/message/" + id)
	if reply := regexp.MustCompile(`<form[^>]*enctype="multipart/form-data">[^§]*?value="reply"`).FindString(text); reply == "" {
		t.Error(text)
	}
	full := regexp.MustCompile(`id="m-([0-9a-f-]+)"`).FindStringSubmatch(text)[1]
	if code, text := v.sendForm("/mail", url.Values{"do": {"reply"}, "id": {full}, "text": {"Here."}}, "notes", "n"); code != http.StatusOK || !strings.Contains(text, "sent ") {
		t.Error(code, text)
	}
	if got := s.Atm("read", "--as", "alice", "--limit", "9", "--json"); !strings.Contains(got, "Here.") || !strings.Contains(got, `"name":"notes"`) {
		t.Error(got)
	}
	form.Set("to", "alcie")
	code, text := v.sendForm("/", form, "a.txt", "x")
	if code == http.StatusOK || !strings.Contains(text, "Two files</textarea>") || !strings.Contains(text, `enctype="multipart/form-data"`) || !strings.Contains(text, `name="file"`) {
		t.Error(code, text)
	}
	// The same checks hold for such a form.
	if code, text := v.sendForm("/", url.Values{"do": {"send"}, "to": {"alice"}, "text": {"x"}, "csrf": {"wrong"}}); code != http.StatusForbidden {
		t.Error(code, text)
	}
	if got := s.Atm("ls", "--as", "alice", "--unread", "--count"); got != "0" {
		t.Error("a refused form has sent something: ", got)
	}
}

// What I sent and nobody has read can be taken back on its page; mail of others cannot.
func TestWithdraw(t *testing.T) {
	t.Parallel()
	s := newTeam(t, "alice", "me")
	theirs := sentID(s.Atm("send", "me", "Hello", "--as", "alice"))
	mine := sentID(s.Atm("send", "alice", "Lunch?"))
	v := s.visit(s.web())
	if _, text := v.get("/message/" + theirs); strings.Contains(text, `value="withdraw"`) {
		t.Error(text)
	}
	if code, text := v.do("/", "do", "withdraw", "id", theirs); code != http.StatusForbidden {
		t.Error(code, text)
	}
	_, text := v.get("/message/" + mine)
	id := regexp.MustCompile(`<details id="withdraw-([0-9a-f-]+)">`).FindStringSubmatch(text)
	if id == nil {
		t.Fatal(text)
	}
	if code, text := v.do("/mail", "do", "withdraw", "id", id[1]); code != http.StatusOK || !strings.Contains(text, "from alice (it was not read)") {
		t.Error(code, text)
	}
	if _, text := v.get("/message/" + mine); strings.Contains(text, `value="withdraw"`) {
		t.Error(text)
	}
	if n := s.Atm("ls", "--as", "alice", "--unread", "--count"); n != "0" {
		t.Error(n)
	}
}

// An opened message leads to the next one as the list had it, also once it is read and stands elsewhere.
func TestNext(t *testing.T) {
	t.Parallel()
	s := newTeam(t, "alice", "me")
	for _, text := range []string{"third", "<i>second", "first"} {
		s.Atm("send", "me", "--as", "alice", "--", text)
	}
	v := s.visit(s.web())
	link := regexp.MustCompile(`<a id="next" href="([^"#]+)[^"]*">Next: <span dir="auto">([^<]*)<`)
	_, mail := v.get("/mail")
	path := regexp.MustCompile(`href="(/thread/[^"#]+)`).FindStringSubmatch(mail)[1]
	_, text := v.get(path)
	next := link.FindStringSubmatch(text)
	if next == nil || next[2] != "&lt;i&gt;second" {
		t.Fatal(next, text)
	}
	back := regexp.MustCompile(`name="back" value="([^"]+)"`).FindStringSubmatch(text)[1]
	id := path[strings.LastIndex(path, "/")+1:]
	_, text = v.do(html.UnescapeString(back), "do", "read", "id", id)
	if again := link.FindStringSubmatch(text); again == nil || again[1] != next[1] || !strings.Contains(text, "Marked as read: first") {
		t.Error(again, text)
	}
	_, text = v.get(next[1])
	if next = link.FindStringSubmatch(text); next == nil || next[2] != "third" {
		t.Error(next, text)
	}
	for _, wrong := range []string{"x", "../../alice/inbox/new/x", id[:8]} {
		if code, text := v.get(path + "?next=" + url.QueryEscape(wrong)); code != http.StatusOK || link.MatchString(text) {
			t.Error(wrong, code, text)
		}
	}
}

// A text is typed to an agent that runs here, as atm type does it.
func TestType(t *testing.T) {
	t.Parallel()
	s := newTeam(t, "alice", "bob", "me")
	s.Atm("run", "bob", "--detach", "--driver", "claude", "--", "fakeagent", "--log", "fake.log")
	t.Cleanup(func() { s.Command("atm", "stop", "bob").Run() })
	s.Atm("wait", "--idle", "bob")
	v := s.visit(s.web())
	if _, text := v.get("/agent/alice"); strings.Contains(text, `value="type"`) {
		t.Error(text)
	}
	if _, text := v.get("/agent/bob"); !strings.Contains(text, `name="do" value="type"`) {
		t.Error(text)
	}
	if code, text := v.do("/agent/bob", "do", "type", "agent", "bob", "text", "\x1b[A"); code != http.StatusBadRequest || !strings.Contains(text, "control characters") {
		t.Error(code, text)
	}
	if code, text := v.do("/agent/alice", "do", "type", "agent", "alice", "text", "hello"); code == http.StatusOK || !strings.Contains(text, "not running") {
		t.Error(code, text)
	}
	if code, text := v.do("/agent/bob", "do", "type", "agent", "bob", "text", "CONFIRM [touch made.txt]"); code != http.StatusOK || !strings.Contains(text, "bob: typed") {
		t.Error(code, text)
	}
	s.Atm("wait", "--blocked", "bob")
	if code, text := v.do("/agent/bob", "do", "type", "agent", "bob", "text", "yes"); code == http.StatusOK || !strings.Contains(text, "yes</textarea>") {
		t.Error("it asks something: ", code, text)
	}
}
