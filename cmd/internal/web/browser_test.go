package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/agentteammail/atm/internal/testround"
)

// A tab is a tab of a real browser.
type tab struct {
	*team
	ctx context.Context
}

// browser starts Chromium, and opens the address in it.
func (s *team) browser(address string) *tab {
	s.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	if path == "" {
		s.Skip("no chromium")
	}
	// What it leaves at home and among temporary files goes with it, once the last of its processes writes nothing more.
	home, err := os.MkdirTemp("", "browser")
	must(s, err)
	s.Cleanup(func() {
		s.Eventually("the browser's files are removed", func() bool { return os.RemoveAll(home) == nil })
	})
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.Env("HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home, "TMPDIR="+home),
		chromedp.Flag("host-resolver-rules", "MAP evil.example 127.0.0.1, MAP phone.example 127.0.0.1"),
		chromedp.Flag("ignore-certificate-errors", true))
	allocated, end := chromedp.NewExecAllocator(s.Context(), options...)
	s.Cleanup(end)
	return (&tab{s, allocated}).open(address)
}

// open opens a new tab.
func (b *tab) open(address string) *tab {
	b.Helper()
	ctx, end := chromedp.NewContext(b.ctx)
	b.Cleanup(end)
	n := &tab{b.team, ctx}
	chromedp.Do(ctx) // the first Do decides how long the browser runs
	n.do(chromedp.EmulateViewport(1200, 900))
	n.load(address)
	return n
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	for _, step := range steps {
		ctx, cancel := context.WithTimeout(b.ctx, 3*time.Minute)
		defer cancel()
		must(b, chromedp.Do(ctx, step))
	}
}

func (b *tab) load(address string) {
	b.Helper()
	b.do(chromedp.Navigate(address))
	b.becomes(`document.fonts.status === 'loaded' && !document.querySelector('meta[http-equiv=refresh]')`) // which leads on
}

// js evaluates an expression, which may be a promise.
func (b *tab) js(expression string) any {
	b.Helper()
	got, err := chromedp.Run(b.ctx, chromedp.Evaluate[any](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatalf("%.200s: %v", expression, err)
	}
	return got
}

// becomes waits until an expression is true on the page, or on the next one, which may have come in part only. If it never
// is, it says what the page shows instead, and what the team does.
func (b *tab) becomes(expression string) {
	b.Helper()
	var last error
	isSo := false
	defer func() {
		if isSo {
			return
		}
		page, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`location.href + ' ' + document.visibilityState + ' ' +
			document.getElementById('live')?.dataset.version + '\n' + document.body.innerText.slice(0, 4000)`))
		team, _ := b.Command("atm", "team").CombinedOutput()
		b.Logf("the last look: %v\nthe page: %s %v\n%s", last, page, err, team)
	}()
	b.Eventually(expression, func() bool {
		got, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](`document.readyState === 'complete' && (`+expression+`)`))
		isSo, last = err == nil && got, err
		return isSo
	})
}

// shows waits until a page shows a text.
func (b *tab) shows(text string) {
	b.Helper()
	b.becomes(fmt.Sprintf(`document.body.innerText.includes(%q)`, text))
}

// A message arrives and a question is answered on open pages.
func TestBrowser(t *testing.T) {
	t.Parallel()
	s := newTeam(t, "alice", "bob", "me")
	log := filepath.Join(s.Dir, "log")
	address := s.web()
	b := s.browser(base(address))
	b.shows("has no access yet")
	b.load(address)
	b.shows("Members")

	// Neither a foreign host name for this server, nor a foreign page, gets anything.
	port := base(address)[strings.LastIndex(base(address), ":"):]
	b.load("http://evil.example" + port)
	b.shows("does not serve that host name")
	theirs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `<p><form method="post" action="%s/do"><input name="do" value="send"><button>win</button></form>`, base(address))
	}))
	t.Cleanup(theirs.Close)
	b.load(theirs.URL) // the cookie is sent to other ports, too
	b.do(chromedp.Click("button"))
	b.shows("This request comes from another site")
	b.load(base(address))

	s.Atm("run", "bob", "--detach", "--driver", "claude", "--", "fakeagent", "--log", log)
	t.Cleanup(func() { s.Command("atm", "stop", "bob").Run() })
	b.shows("idle")

	// More pages than a browser has connections to a server: all get the event.
	tabs := []*tab{b}
	for _, path := range []string{"/", "/mail", "/timeline", "/mail", "/timeline", "/agent/bob", "/agent/me"} {
		tabs = append(tabs, b.open(base(address)+path))
	}
	s.Atm("send", "me", "Good\u200b news: "+hostile[0], "--as", "alice")
	for i, one := range tabs {
		one.becomes(`document.getElementById('unread').textContent.startsWith('1')`)
		if i < 6 {
			one.shows(`Good\u200b news: <script>`)
		}
	}

	b.load(base(address) + "/agent/bob")
	b.js(`new MutationObserver(() => {
		if (document.querySelector('.question')) window.isStill ??= getComputedStyle(document.querySelector('.answers')).pointerEvents === 'none'
	}).observe(document.getElementById('live'), { childList: true, subtree: true }); true`)
	s.Atm("send", "bob", "CONFIRM [git push]")
	b.becomes(`document.querySelector(".question")?.innerText.includes("git push")`)
	if b.js(`window.isStill`) != true {
		t.Error("an answer could be pressed as soon as it was there")
	}
	b.shows("Do you want to proceed?")
	b.becomes(`document.querySelector('.moved') === null`)
	// Buttons under the pointer stay in place once nothing is being loaded.
	b.Eventually("it is pointed at", func() bool {
		at := b.js(`(at => [at.x + at.width / 2, at.y + at.height / 2])(document.querySelector('.question summary').getBoundingClientRect())`).([]any)
		b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at[0].(float64), at[1].(float64)))
		return b.js(`Boolean(document.querySelector('.answers:hover'))`) == true
	})
	b.do(chromedp.Click(`.question summary`), chromedp.SendKeys(`.question textarea`, "Not today"))
	s.Atm("send", "alice", "something that others see")
	s.Atm("read", "--as", "alice", "--limit", "9")
	b.becomes(`!document.getElementById('waits').hidden`)
	b.js(`document.querySelector('#waits a').click()`)
	b.becomes(`document.getElementById('waits').hidden`)                    // whoever wants it sees the new state
	b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, 1, 1)) // or the buttons would stay
	s.Atm("send", "me", "An update does not take away what is being typed.", "--as", "alice")
	b.becomes(`parseInt(document.getElementById('unread').textContent) === 2`)
	if got := b.js(`document.querySelector('.question textarea').value + document.querySelector('.question details').open`); got != "Not todaytrue" {
		t.Error(got)
	}
	b.do(chromedp.Click(`.question .options button.main`))
	b.Eventually("the key was pressed", func() bool {
		data, _ := os.ReadFile(log)
		return strings.Contains(string(data), `"event":"answer","kind":"permission"`)
	})
	b.shows("bob: answered")
	b.becomes(`document.querySelector('.question') === null`)
	b.becomes(`!document.getElementById('screen').innerText.includes('Do you want to proceed?')`)

	// The page of a retired member says so.
	b.load(base(address) + "/agent/alice")
	b.shows("No turns yet")
	s.Atm("team", "retire", "alice")
	b.shows("atm team restore alice")
	s.Atm("team", "restore", "alice")

	// A page that could not be loaded says so, and catches up, also with changes in the meantime.
	b.load(base(address) + "/mail")
	b.js(`window.isBroken = true; window.isSlow = false; const load = window.fetch;
		window.fetch = async (...request) => {
			if (isBroken) throw new TypeError('broken')
			const answer = await load(...request)
			if (isSlow) { window.isSlow = false; await new Promise(done => { window.later = done }) }
			return answer
		}; true`)
	s.Atm("send", "me", "while it is broken", "--as", "alice")
	b.becomes(`!document.getElementById('offline').hidden`)
	if b.js(`[...document.querySelectorAll('form[method=post] button')].every(one => one.disabled)`) != true {
		t.Error("a button can be pressed while nothing can be sent")
	}
	b.js(`window.isBroken = false; window.isSlow = true`)
	b.becomes(`Boolean(window.later)`)
	s.Atm("send", "me", "while it is fetched", "--as", "alice")
	b.js(`new Promise(done => setTimeout(done, 1000)).then(() => { later(); return true })`)
	b.shows("while it is fetched")
	b.becomes(`document.getElementById('offline').hidden && !document.querySelector('button:disabled')`)

	// A text survives other buttons and errors until it is sent.
	b.load(base(address) + "/")
	b.do(chromedp.Click("#write summary"), chromedp.SendKeys("#to", "alcie"), chromedp.SendKeys("#text", "half a thought"))
	b.do(chromedp.Click(`body:not(.moved) button[value=read]`))
	b.shows("Marked as read: ")
	b.do(chromedp.Click("body:not(.moved) #write button"))
	b.shows("did you mean")
	b.load(base(address) + "/")
	b.becomes(`document.getElementById('text').value === 'half a thought' && document.getElementById('to').value === 'alcie'`)
	b.do(chromedp.SetValue("#to", "alice"), chromedp.Click("body:not(.moved) #write button"))
	b.shows("sent ")
	b.becomes(`document.getElementById('text').value + document.getElementById('to').value === ''`)
	if n := s.Atm("ls", "--count"); n != "3" {
		t.Error("unread:", n)
	}

	// After a restart at the same address, an old page is loaded again, and does not keep new ones from connecting.
	s.server.Process.Signal(os.Interrupt)
	s.server.Wait()
	after := b.open(s.web("--listen", "127.0.0.1"+port))
	s.Atm("send", "me", "after the restart", "--as", "alice")
	after.shows("after the restart")
	after.becomes(`document.getElementById('offline').hidden`)
	b.becomes(`!document.body.innerText.includes('is not answering')`)
}

// Twenty pages all get an event, and idle ones need almost no CPU time. Without ATM_STRESS the pages of TestBrowser are enough:
// on a busy machine a new browser is busy for minutes.
func TestTwentyPages(t *testing.T) {
	if !testround.IsLong {
		t.Skip("ATM_STRESS is not set")
	}
	s := newTeam(t, "alice", "bob", "me") // not parallel, since it measures CPU time
	s.Atm("run", "bob", "--detach", "--driver", "claude", "--", "fakeagent")
	t.Cleanup(func() { s.Command("atm", "stop", "bob").Run() })
	s.Atm("wait", "--idle", "bob")
	address := s.web()
	b := s.browser(address)
	b.shows("Members")
	tabs := []*tab{b}
	for i := range 19 {
		tabs = append(tabs, b.open(base(address)+[]string{"/", "/mail", "/timeline", "/agent/bob", "/agent/me"}[i%5]))
	}
	for _, one := range tabs[1:] {
		one.becomes(`document.getElementById('unread') != null`)
	}
	pages := processes(chromedp.FromContext(b.ctx).Browser.Process().Pid)
	const window = 2 * time.Second
	for end := time.Now().Add(10 * time.Minute); ; {
		server, browser := used(t, s.server.Process.Pid), used(t, pages...)
		time.Sleep(window)
		server, browser = used(t, s.server.Process.Pid)-server, used(t, pages...)-browser
		t.Logf("in %v the server used %v, and the browser %v", window, server, browser)
		if server+browser < window/20 {
			break
		} else if time.Now().After(end) {
			t.Fatal("that is more than a twentieth of a core")
		}
	}
	s.Atm("send", "me", "All of you: hello", "--as", "alice")
	for _, one := range tabs {
		one.becomes(`document.getElementById('unread').textContent.startsWith('1')`)
	}
}

// processes returns a process and its descendants.
func processes(pid int) []int {
	all := []int{pid}
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range files {
		data, _ := os.ReadFile(file)
		for _, child := range strings.Fields(string(data)) {
			n, _ := strconv.Atoi(child)
			all = append(all, processes(n)...)
		}
	}
	return all
}

// used returns the CPU time of processes.
func used(t *testing.T, pids ...int) (sum time.Duration) {
	for _, pid := range pids {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			t.Skip(err) // no Linux
		}
		fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+2:]))
		for _, ticks := range fields[11:13] {
			n, _ := strconv.Atoi(ticks)
			sum += time.Duration(n) * time.Second / 100
		}
	}
	return sum
}

// smallTargets lists what can be pressed on a page but is too small for a finger, or is beside another answer.
const smallTargets = `[...document.querySelectorAll('button, summary, nav a, input:not([type=hidden]), .list li, .members tbody tr, .question h3 a')]
	.filter(one => one.checkVisibility() && one.getBoundingClientRect().height < 44)
	.concat([...document.querySelectorAll('.question .answers :is(button, summary)')].filter(one => one.checkVisibility() &&
		one.offsetWidth < one.closest('.answers').offsetWidth))
	.concat([...document.querySelectorAll('.list li > a, .members th a')].filter(one => { // the row is the link
		one.scrollIntoView({ block: 'center', behavior: 'instant' })
		const row = one.closest('li, tr').getBoundingClientRect()
		return document.elementFromPoint(row.left + 4, row.bottom - 4) !== one
	}))
	.map(one => one.outerHTML.slice(0, 200)).join('\n')`

// faintColours lists what carries meaning with a contrast below 3, and placeholders below 4.5.
const faintColours = `(() => {
	const light = colour => {
		const [r, g, b] = colour.match(/[\d.]+/g).map(n => n / 255).map(n => n <= 0.04045 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4)
		return 0.2126 * r + 0.7152 * g + 0.0722 * b
	}
	const contrast = (a, b) => { const [low, high] = [light(a), light(b)].sort((x, y) => x - y); return (high + 0.05) / (low + 0.05) }
	const probe = document.createElement('p')
	document.body.append(probe)
	const named = name => { probe.style.color = 'var(--' + name + ')'; return getComputedStyle(probe).color }
	const faint = []
	const check = (what, colour, least) => {
		const found = contrast(colour, named('paper'))
		if (found < least) faint.push(what + ' ' + found.toFixed(1))
	}
	for (const state of ['busy', 'idle', 'blocked', 'limited', 'error', 'off', 'person']) check(state, named(state), 4.5)
	for (const one of document.querySelectorAll('.bar')) check(one.className.baseVal, getComputedStyle(one).fill, 3)
	for (const one of document.querySelectorAll('button, input:not([type=hidden]), summary')) if (!one.matches('.main, .danger')) check(one.tagName, getComputedStyle(one).borderTopColor, 3)
	for (const one of document.querySelectorAll('[placeholder]')) check('placeholder', getComputedStyle(one, '::placeholder').color, 4.5)
	if (named('limited') === named('blocked')) faint.push('limited is as blocked')
	probe.remove()
	return faint.join(', ')
})()`

// A page stays where one reads: what has not changed is left alone, with its place, its selection and the focus.
func TestPageStays(t *testing.T) {
	t.Parallel()
	s := newTeam(t, "alice", "bob", "carol", "me")
	var long strings.Builder
	for i := range 600 {
		fmt.Fprintf(&long, "This is line %d of a review that takes a while to read.\n", i)
	}
	first := sentID(s.Atm("send", "me", "--as", "alice", "--", long.String()))
	b := s.browser(s.web())
	home := b.js(`location.origin`).(string)
	changes := func(change func()) { // and the page has followed
		t.Helper()
		before := b.js(`Number(document.getElementById('live').dataset.version)`).(float64)
		change()
		b.becomes(fmt.Sprintf(`Number(document.getElementById('live').dataset.version) > %v`, before))
	}
	b.load(home + "/message/" + first)
	b.load(home + b.js(`location.pathname`).(string)) // without a fragment, to which it would go on scrolling smoothly
	b.js(`{ window.kept = document.querySelector('.body'); scrollTo({ top: 1500, behavior: 'instant' }); getSelection().setBaseAndExtent(kept.firstChild, 9000, kept.firstChild, 9100); window.place = kept.getBoundingClientRect().top }`)
	isStill := `Math.abs(kept.getBoundingClientRect().top - place) < 1 && getSelection().toString().length === 100 && kept.isConnected && kept.scrollHeight === kept.clientHeight`
	changes(func() { s.Atm("send", "bob", "between others", "--as", "carol") })
	changes(func() { s.Atm("event", "tool_call_start", "tool=Edit", "--as", "bob") })
	changes(func() { s.Atm("send", "me", "One more thing", "--thread", first, "--as", "alice") })
	b.becomes(`document.querySelectorAll('article').length === 2`)
	if b.js(isStill) != true {
		t.Error("the page has moved: ", b.js(`[scrollY, kept.getBoundingClientRect().top - place, getSelection().toString().length, kept.isConnected]`))
	}

	// What has changed keeps the focus.
	b.load(home)
	b.js(`{ document.getElementById('member-alice').focus(); window.row = document.getElementById('row-alice') }`)
	changes(func() { s.Atm("send", "alice", "this changes your row", "--as", "carol") })
	if b.js(`document.activeElement.id + row.isConnected`) != "member-alicefalse" {
		t.Error("the focus is at ", b.js(`document.activeElement.outerHTML`))
	}

	// After a button one is where one was, and is told what has happened.
	b.do(chromedp.EmulateViewport(1200, 300))
	for i := range 4 {
		s.Atm("send", "me", fmt.Sprint("number ", i), "--as", "carol")
	}
	b.shows("number 3")
	b.js(`{ window.place = scrollY; window.button = [...document.querySelectorAll('button[value=read]')].find(one => one.closest('li').innerText.includes('number 2')); button.focus(); button.scrollIntoView({ block: 'center', behavior: 'instant' }); window.place = scrollY; button.click() }`)
	b.becomes(`document.getElementById('result').innerText === 'Marked as read: number 2'`)
	b.becomes(`document.activeElement.innerText.includes('number 1') && !button.isConnected`)
	if b.js(`place > 0 && scrollY === place && document.getElementById('result').getBoundingClientRect().bottom <= innerHeight`) != true {
		t.Error("the page has moved: ", b.js(`[place, scrollY]`))
	}

	// What was marked as read can be put back, and its row has the focus. A message's own page can do so later, too.
	b.do(chromedp.Click(`#undo`))
	b.becomes(`document.getElementById('result').innerText === 'Unread again: number 2' && !document.getElementById('undo')`)
	b.becomes(`document.activeElement.innerText.includes('number 2')`)
	b.js(`document.querySelector('button[value=read]').click()`)
	b.becomes(`document.getElementById('undo') != null`)
	id := sentID(s.Atm("send", "me", "its own page", "--as", "carol"))
	b.load(home + "/message/" + id)
	b.do(chromedp.Click(`body:not(.moved) button[value=read]`))
	b.becomes(`document.querySelector('article button[value=unread]') != null`)
	b.do(chromedp.Click(`article button[value=unread]`))
	b.becomes(`document.querySelector('button[value=read]') != null`)
	b.load(home)

	// An error is said beside the form, which can be mended and sent again, with its file.
	b.do(chromedp.Click(`#write summary`), chromedp.SendKeys("#to", "bbo"), chromedp.SendKeys("#text", "half a thought"))
	s.Write("notes.txt", "its other half")
	b.do(chromedp.SetUploadFiles(`#write input[type=file]`, []string{filepath.Join(s.Dir, "notes.txt")}), chromedp.Click(`body:not(.moved) #write button`))
	b.becomes(`document.querySelector('#write [role=alert]')?.innerText.includes('bob')`)
	b.do(chromedp.SetValue("#to", "bob"), chromedp.Click(`body:not(.moved) #write button`))
	b.becomes(`document.getElementById('result').innerText.startsWith('sent ')`)
	if got := s.Atm("ls", "bob", "--json"); strings.Count(got, "half a thought") != 1 || strings.Count(got, `"name":"notes.txt"`) != 1 {
		t.Error(got)
	}

	// A session shows what the agent says while it still speaks.
	s.Atm("session", "new", "--agent", "carol")
	b.load(home + "/agent/carol")
	b.shows("Session ")
	s.Atm("event", "turn_started", "turn_id=t1", "--as", "carol")
	s.Atm("event", "message_delta", "turn_id=t1", "delta=Half a <b>", "--as", "carol")
	b.shows("carol: Half a <b> still speaks")
	s.Atm("event", "message_delta", "turn_id=t1", "delta=sentence.", "--as", "carol")
	b.shows("carol: Half a <b>sentence. still speaks")
	s.Atm("event", "turn_completed", "turn_id=t1", "--as", "carol")
	b.becomes(`document.querySelector('.log').innerText.endsWith('carol: Half a <b>sentence.')`)
	b.do(chromedp.Click(`[id^=say-] summary`), chromedp.SendKeys(`[id^=say-] textarea`, "Go on with auth"), chromedp.Click(`[id^=say-] button`))
	b.becomes(`document.querySelector('.log').innerText.includes('human: Go on with auth')`)

	// After a tap the page follows, though a finger leaves :hover behind.
	s.Atm("run", "bob", "--detach", "--driver", "claude", "--", "fakeagent")
	t.Cleanup(func() { s.Command("atm", "stop", "bob").Run() })
	s.Atm("send", "bob", "CONFIRM [git push]")
	b.do(chromedp.EmulateViewport(390, 800, chromedp.EmulateMobile, chromedp.EmulateTouch))
	b.load(home)
	b.becomes(`document.querySelector('.question') && !document.querySelector('.moved')`)
	b.js(`document.querySelector('.question summary').scrollIntoView({ block: 'center', behavior: 'instant' })`)
	at := b.js(`(at => [at.x + at.width / 2, at.y + at.height / 2])(document.querySelector('.question summary').getBoundingClientRect())`).([]any)
	finger := []*input.TouchPoint{{X: at[0].(float64), Y: at[1].(float64)}}
	for _, touch := range []input.DispatchTouchEventParams{{Type: input.DispatchTouchEventTypeTouchStart, TouchPoints: finger}, {Type: input.DispatchTouchEventTypeTouchEnd, TouchPoints: []*input.TouchPoint{}}} {
		if _, err := chromedp.Call(b.ctx, input.DispatchTouchEvent, touch); err != nil {
			t.Fatal(err)
		}
	}
	b.becomes(`document.querySelector('.question details').open`)
	changes(func() { s.Atm("send", "alice", "after the tap", "--as", "carol") })
	if b.js(`document.querySelector('.question details').open && document.getElementById('waits').hidden`) != true {
		t.Error("the open box is closed, or the page does not follow")
	}
}

// Mail that comes while one aims at a row, or reads in a list, moves neither: a click acts on what was aimed at.
func TestAimed(t *testing.T) {
	t.Parallel()
	s := newTeam(t, "alice", "bob", "me")
	b := s.browser(s.web())
	home := b.js(`location.origin`).(string)
	points := func(selector string) (x, y float64) { // to the middle of what a selector finds
		t.Helper()
		at := b.js(fmt.Sprintf(`(at => [at.x + at.width / 2, at.y + at.height / 2])(document.querySelector(%q).getBoundingClientRect())`, selector)).([]any)
		x, y = at[0].(float64), at[1].(float64)
		b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x, y))
		return x, y
	}
	for _, path := range []string{"/", "/mail"} {
		name := "aimed at on " + path
		id := sentID(s.Atm("send", "me", name, "--ack", "--as", "alice"))
		b.load(home + path)
		b.shows(name)
		button := fmt.Sprintf(`[id^=ack-][id$="%s"]`, id)
		var x, y float64
		b.Eventually("it is pointed at", func() bool {
			x, y = points(button)
			return b.js(fmt.Sprintf(`Boolean(document.querySelector('%s:hover'))`, button)) == true
		})
		s.Atm("send", "me", "May I drop the table?", "--ack", "--urgent", "--as", "bob")
		b.becomes(`!document.getElementById('waits').hidden`)
		b.do(chromedp.MouseClickXY(x, y))
		b.becomes(fmt.Sprintf(`document.getElementById('result').innerText === %q`, "Acknowledged: "+name))
		b.shows("May I drop the table?")
	}

	for i := range maxMail + 5 {
		s.Atm("send", "me", fmt.Sprint("message ", i), "--as", "alice")
	}
	for s.Atm("ls", "--count") != "0" { // then all are in one list
		s.Atm("read", "--limit", "200")
	}
	b.load(home + "/mail")
	b.becomes(fmt.Sprintf(`document.querySelectorAll('#list-read li').length === %d && document.getElementById('unread').textContent === ''`, maxMail))
	shows := func(text string) { // as soon as it is there, nothing in the list can be pressed
		t.Helper()
		b.js(`window.isStill = undefined; window.watch?.disconnect(); window.watch = new MutationObserver(() => {
			if (document.body.innerText.includes('` + text + `')) window.isStill ??= getComputedStyle(document.querySelector('.list')).pointerEvents === 'none'
		}); watch.observe(document.getElementById('live'), { childList: true, subtree: true }); true`)
		s.Atm("send", "me", text, "--as", "bob")
		b.shows(text)
		if b.js(`window.isStill`) != true {
			t.Errorf("a row could be pressed as soon as %q was there", text)
		}
		b.becomes(`document.querySelector('.moved') === null`)
	}
	b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, 1, 1))
	b.js(`{
		window.row = [...document.querySelectorAll('.list a')].find(one => one.innerText.includes('message 60'))
		scrollTo({ top: row.getBoundingClientRect().top - 300, behavior: 'instant' })
		getSelection().setBaseAndExtent(row.querySelector('span').firstChild, 0, row.querySelector('span').firstChild, 7)
		window.place = row.getBoundingClientRect().top
	}`)
	shows("while one reads")
	stays := `row.isConnected && Math.abs(row.getBoundingClientRect().top - place) < 1`
	if b.js(stays+` && getSelection().toString() === 'message'`) != true {
		t.Error("the list has moved: ", b.js(`[row.isConnected, row.getBoundingClientRect().top - place, getSelection().toString()]`))
	}
	b.js(`{ scrollTo({ top: 0, behavior: 'instant' }); window.row = document.querySelectorAll('.list a')[3]; window.place = row.getBoundingClientRect().top; row.dataset.aimed = 1 }`)
	points(`[data-aimed]`)
	shows("while one points at a row")
	if b.js(stays) != true {
		t.Error("the row under the pointer has moved: ", b.js(`[row.isConnected, row.getBoundingClientRect().top - place]`))
	}
}

// A burst of changes neither moves a page nor takes what one has typed, selected or focused; a new question is spoken of
// once.
func TestBurst(t *testing.T) {
	t.Parallel()
	s := newTeam(t, "alice", "bob", "carol", "me")
	for i := range 30 {
		s.Atm("send", "me", fmt.Sprint("message ", i), "--as", "carol")
	}
	b := s.browser(s.web())
	home := b.js(`location.origin`).(string)
	b.load(home + "/mail")
	b.js(`{
		window.spoken = []
		new MutationObserver(() => { const text = document.getElementById('news').textContent; if (text) spoken.push(text) }).observe(document.getElementById('news'), { childList: true })
	}`)
	b.js(`{
		window.row = [...document.querySelectorAll('.list a')].find(one => one.innerText.includes('message 5'))
		scrollTo({ top: row.getBoundingClientRect().top - 100, behavior: 'instant' })
		window.place = row.getBoundingClientRect().top
		const text = row.querySelector('span').firstChild
		getSelection().setBaseAndExtent(text, 0, text, 7)
	}`)
	s.Atm("event", "waiting_for_input", "prompt=Which branch?", "--as", "bob")
	for i := range 10 {
		s.Atm("send", "me", fmt.Sprint("later ", i), "--as", "alice")
		s.Atm("event", "tool_call_start", "tool=Edit", "--as", "alice")
	}
	b.becomes(`[...document.querySelectorAll('.list a')].filter(one => one.innerText.includes('later')).length === 10 && document.querySelector('.question') != null`)
	if b.js(`row.isConnected && Math.abs(row.getBoundingClientRect().top - place) < 1 && getSelection().toString() === 'message'`) != true {
		t.Error("the page has moved: ", b.js(`[row.isConnected, row.getBoundingClientRect().top - place, getSelection().toString()]`))
	}
	if got := b.js(`spoken.join('|')`); got != "bob asks" {
		t.Error("spoken: ", got)
	}

	// An answer is being written while more comes: as soon as a new question can be pressed.
	b.do(chromedp.Click(`body:not(.moved) .question summary`), chromedp.SendKeys(`.question textarea`, "the ma"))
	b.js(`document.querySelector('.question textarea').setSelectionRange(4, 4)`)
	for i := range 5 {
		s.Atm("send", "me", fmt.Sprint("even later ", i), "--urgent", "--as", "alice")
	}
	b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, 1, 1)) // not at the answers, which hold all of it
	b.becomes(`[...document.querySelectorAll('.list a')].filter(one => one.innerText.includes('even later')).length === 5`)
	b.do(chromedp.KeyEvent("X"))
	if got := b.js(`document.activeElement.value`); got != "the Xma" {
		t.Error("the draft: ", got)
	}
}

// outline says what is wrong with a page as a screen reader has it: landmarks, headings, names, and what is spoken by itself.
func (b *tab) outline() (faults []string) {
	b.Helper()
	tree, err := chromedp.Call(b.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	must(b, err)
	text := func(v *accessibility.Value) (s string) {
		if v != nil {
			json.Unmarshal(v.Value, &s)
		}
		return s
	}
	count, level := map[string]int{}, 0
	for _, n := range tree.Nodes {
		role, name := text(n.Role), text(n.Name)
		if n.Ignored {
			continue
		}
		count[role]++
		switch role {
		case "link", "button", "textbox", "searchbox", "combobox", "article", "region", "navigation", "DisclosureTriangle", "image":
			if name == "" {
				faults = append(faults, role+" without a name")
			}
		}
		for _, p := range n.Properties {
			if p.Name == "live" && string(p.Value.Value) != `"polite"` && role != "alert" {
				faults = append(faults, role+" is spoken at once")
			}
		}
	}
	for _, h := range b.js(`[...document.querySelectorAll('h1, h2, h3')].map(one => Number(one.tagName[1]))`).([]any) {
		if now := int(h.(float64)); now > level+1 || now == 1 && level > 0 {
			faults = append(faults, fmt.Sprintf("h%d after h%d", now, level))
		} else {
			level = now
		}
	}
	for role, want := range map[string]int{"main": 1, "banner": 1, "navigation": 1, "status": 2} { // a result, a question
		if count[role] != want {
			faults = append(faults, fmt.Sprintf("%d times %s", count[role], role))
		}
	}
	return faults
}

// AXE finds no serious fault on any page, and no text of a message runs as code.
func TestAccessible(t *testing.T) {
	t.Parallel()
	s := newTeam(t, "alice", "bob", "carol", "me")
	if err := os.WriteFile(filepath.Join(s.Dir, "colours"), []byte("printf '\\033[31mred \\033[1;32mgreen \\033[7;33myellow\\033[0m \\033[38;5;45m45 \\033[48;2;90;20;20mdark\\033[0m\\n'; sleep 600"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.Atm("run", "bob", "--detach", "--driver", "plain", "--", "sh", "colours")
	s.Atm("run", "alice", "--detach", "--driver", "claude", "--", "fakeagent")
	t.Cleanup(func() { s.Command("atm", "stop", "alice", "bob").Run() })
	for _, text := range hostile[:7] {
		s.Atm("send", "me", "--ack", "--urgent", "--as", "carol", "--", text)
	}
	s.Atm("send", "alice", "CONFIRM [git push]")
	s.Atm("wait", "--blocked", "alice")
	address := s.web()
	b := s.browser(address)
	b.shows("Do you want to proceed?")
	axe, err := os.ReadFile("testdata/axe.min.js")
	must(t, err)
	thread := b.js(`document.querySelector('.list a').getAttribute('href')`).(string)
	for i, path := range []string{"/", "/mail", thread, "/agent/alice", "/agent/bob", "/search?q=script", "/timeline", "/agent/nobody"} {
		b.load(base(address) + path)
		b.js(string(axe))
		for _, scheme := range []string{"light", "dark"} {
			media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
			if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media); err != nil {
				t.Fatal(err)
			}
			faults := b.js(`axe.run({resultTypes: ['violations']}).then(found => found.violations
				.filter(v => v.impact === 'serious' || v.impact === 'critical')
				.map(v => v.id + ': ' + v.nodes.map(n => n.html + ' ' + n.failureSummary).join('\n')).join('\n'))`)
			if faults != "" {
				t.Errorf("%s, %s: %v", path, scheme, faults)
			}
			if faint := b.js(faintColours); faint != "" {
				t.Errorf("%s, %s: too faint: %v", path, scheme, faint)
			}
		}
		if faults := b.outline(); len(faults) > 0 {
			t.Errorf("%s for a screen reader: %v", path, faults)
		}
		if b.js(`window.pwned`) != nil {
			t.Error(path, "runs what a message says")
		}
		b.do(chromedp.EmulateViewport(390, 800))
		if b.js(`document.documentElement.scrollWidth`).(float64) > 390 {
			t.Error(path, "is wider than a phone")
		}
		if small := b.js(smallTargets); small != "" {
			t.Errorf("%s has targets that are too small for a finger: %v", path, small)
		}
		b.do(chromedp.EmulateViewport(1200, 900))
		if dir := os.Getenv("ATM_SCREENSHOTS"); dir != "" {
			png, _ := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
			os.WriteFile(filepath.Join(dir, fmt.Sprint(i, ".png")), png, 0o600)
		}
	}
	// The keyboard is enough for everything.
	b.load(base(address))
	b.js(`document.querySelector('.question summary').focus()`)
	b.do(chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent("Not on a Friday."), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter))
	b.shows("alice: answered")
	if got := s.Atm("search", "Friday"); !strings.Contains(got, "me to alice") {
		t.Error(got)
	}
}

// Any screen becomes nothing but text in known classes.
func FuzzSpans(f *testing.F) {
	f.Add("\x1b[1;31mred\x1b[0m\n\x1b[38;2;1;2;3m世界\x1b[7mx\x1b]8;;javascript:x\x07link")
	f.Fuzz(func(t *testing.T, screen string) {
		for _, s := range spans(screen) {
			if strings.ContainsFunc(s.Class, func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789 ", r) }) || strings.Contains(s.Text, "\x1b") {
				t.Errorf("%+q", s)
			}
		}
	})
}
