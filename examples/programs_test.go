//go:build unix

package examples

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/testprogram"
)

func TestMain(m *testing.M) { testprogram.Main(m, testprogram.Beside) }

// A project is a directory with a team, for programs that stand upon atm alone. This directory is on their PATH.
type project struct {
	*testing.T
	dir, here string
}

func newProject(t *testing.T, members ...string) *project {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not there")
	}
	p := &project{T: t, dir: t.TempDir()}
	p.here, _ = filepath.Abs(".")
	p.run("atm", append([]string{"init"}, members...)...)
	return p
}

// command makes a command that knows nothing of whoever runs the tests: that may be an agent.
func (p *project) command(name string, args ...string) *exec.Cmd {
	path := p.here + ":" + os.Getenv("PATH")
	if name == "python3" {
		args[0] = filepath.Join(p.here, args[0])
		if _, err := os.Stat(args[0]); err != nil { // and go test knows that this test depends on it
			p.Fatal(err)
		}
	}
	c := exec.Command(name, args...)
	c.Dir, c.Stderr, c.SysProcAttr = p.dir, p.Output(), &syscall.SysProcAttr{Setsid: true}
	c.Env = []string{"PATH=" + path, "HOME=" + p.dir, "XDG_STATE_HOME=" + p.dir + "/.state", "TERM=xterm", "LANG=C.UTF-8"}
	return c
}

func (p *project) run(name string, args ...string) string {
	p.Helper()
	out, err := p.command(name, args...).Output()
	if err != nil {
		p.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// start starts a program that is ended at the end.
func (p *project) start(c *exec.Cmd) (end func()) {
	p.Helper()
	if err := c.Start(); err != nil {
		p.Fatal(err)
	}
	end = sync.OnceFunc(func() {
		c.Process.Signal(syscall.SIGTERM)
		c.Wait()
	})
	p.Cleanup(end)
	return end
}

func (p *project) eventually(what string, isSo func() bool) {
	p.Helper()
	for end := time.Now().Add(3 * time.Minute); !isSo(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			p.Fatal("it was never so: ", what)
		}
	}
}

func (p *project) has(text string, command ...string) func() bool {
	return func() bool {
		out, _ := p.command(command[0], command[1:]...).Output()
		return strings.Contains(string(out), text)
	}
}

func (p *project) write(file, text string) {
	p.Helper()
	file = filepath.Join(p.dir, file)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		p.Fatal(err)
	}
}

// An extension of atm, which tmux shows.
func TestStatusLine(t *testing.T) {
	p := newProject(t, "alice", "bob", "me")
	if got := p.run("atm", "--as", "me", "statusline"); got != "all quiet" {
		t.Error(got)
	}
	p.run("atm", "send", "me", "Deploy? #[fg=red]", "--as", "alice")
	p.run("atm", "event", "turn_started", "--as", "bob")
	p.run("atm", "event", "waiting_for_input", "prompt=#(touch pwned)", "--as", "alice")
	const want = "1 unread | alice asks | bob busy"
	if got := p.run("atm", "--as", "me", "statusline"); got != want {
		t.Error(got)
	}
	if got := p.run("atm", "help"); !strings.HasSuffix(got, "on PATH: statusline") {
		t.Error(got)
	}
	if got := p.run("atm", "help", "statusline"); !strings.HasPrefix(got, "A status line for tmux") {
		t.Error(got)
	}
	outside := p.command("atm", "statusline")
	outside.Dir, outside.Env = "/", append(outside.Env, "HOME=/nowhere")
	if out, err := outside.Output(); err != nil || len(out) > 0 {
		t.Error(string(out), err)
	}
	if _, err := exec.LookPath("tmux"); err != nil {
		return
	}
	source, _ := os.ReadFile("atm-statusline")
	conf := "set -g status-right-length 80\n"
	for line := range strings.Lines(string(source)) {
		if strings.HasPrefix(line, "    set -g") {
			conf += strings.ReplaceAll(line, "-interval 5", "-interval 1")
		}
	}
	p.write("tmux.conf", conf)
	tmux := func(args ...string) []string { return append([]string{"tmux", "-S", p.dir + "/outer"}, args...) }
	p.run("tmux", append(tmux("-f", "/dev/null")[1:], "new-session", "-d", "-x", "120", "-y", "5", "TMUX= tmux -S "+p.dir+"/inner -f tmux.conf new-session")...)
	t.Cleanup(func() {
		p.command("tmux", "-S", p.dir+"/inner", "kill-server").Run()
		p.command("tmux", "-S", p.dir+"/outer", "kill-server").Run()
	})
	p.eventually("tmux shows it", p.has(want, tmux("capture-pane", "-p")...))
}

// Mail that Python sends and reads is as any other, also while others do.
func TestFilesAlone(t *testing.T) {
	p := newProject(t, "alice", "bob")
	team := filepath.Join(p.dir, ".atm", "main")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() { p.run("python3", "files.py", team, "alice", "send", "bob", fmt.Sprintf("file %d ü", i)) })
		all.Go(func() { p.run("atm", "send", "bob", fmt.Sprintf("sent %d", i), "--as", "alice") })
	}
	all.Wait()
	var shown [2]string
	for i := range shown {
		all.Go(func() { shown[i] = p.run("python3", "files.py", team, "bob", "read") })
	}
	all.Wait()
	for i := range 8 {
		for _, text := range []string{fmt.Sprintf(" from alice@main: file %d ü", i), fmt.Sprintf(" from alice@main: sent %d", i)} {
			if !strings.Contains(shown[0]+shown[1], text) {
				t.Errorf("%q was not read", text)
			}
		}
	}
	if done, _ := filepath.Glob(team + "/bob/inbox/done/*/*.json"); len(done) != 16 {
		t.Errorf("%d of 16 are done", len(done))
	}
	p.write("ask.ndjson", `{"to":"bob","body":"Which port?","requires_ack":true}`)
	p.run("sh", "-c", "atm send --batch --as alice <ask.ndjson")
	id, _, _ := strings.Cut(p.run("python3", "files.py", team, "bob", "read"), " ")
	if got := p.run("atm", "ls", "bob", "--owed"); !strings.Contains(got, "to ack: Which port?") {
		t.Error(got)
	}
	p.run("python3", "files.py", team, "bob", "reply", id, "8080.")
	if got := p.run("atm", "trace", id, "--as", "alice"); !strings.Contains(got, `"8080."`) {
		t.Error(got)
	}
	if got := p.run("atm", "read", "--as", "alice"); !strings.Contains(got, "answers "+id[len(id)-6:]) {
		t.Error(got)
	}
	p.write(".atm/main/bob/inbox/new/01a22e45-5b08-7bc2-b2c6-8411776d3b6d.json", `{"id":`)
	if got := p.run("python3", "files.py", team, "bob", "read"); got != "" {
		t.Error(got)
	}
	os.Remove(team + "/bob/inbox/new/01a22e45-5b08-7bc2-b2c6-8411776d3b6d.json")
	if got := p.run("atm", "doctor"); !strings.Contains(got, "nothing is wrong") {
		t.Error(got)
	}
	p.run("atm", "run", "bob", "--detach", "--", "sh")
	t.Cleanup(func() { p.command("atm", "stop", "bob").Run() })
	if out, err := p.command("python3", "files.py", team, "bob", "read").Output(); err == nil {
		t.Errorf("bob runs, and it reads his mail: %s", out)
	}
}

// Old mail stands in its order and its threads, says who wrote it and when, and comes once.
func TestImport(t *testing.T) {
	p := newProject(t, "alice", "bob", "carol", "lead", "me")
	first := "From: Carol <Carol@example.org>\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\nDate: Mon, 2 Mar 2020 10:00:00 +0100\n" +
		"Message-ID: <a@x>\nContent-Type: text/plain; charset=latin-1\nContent-Transfer-Encoding: 8bit\n\nSch\xf6n.\n"
	second := "From: lead <lead@elsewhere.org>\nSubject: Re: hello\n there\nDate: Mon, 2 Mar 2020 11:00:00 -0000\n" +
		"Message-ID: <b@x>\nReferences: <a@x>\n\nYes.\n"
	p.write("Maildir/cur/1:2,S", first)
	p.write("Maildir/.Old/new/2", second)
	p.run("mkdir", "Maildir/new", "Maildir/.Old/cur")
	p.write("old.mbox", "From MAILER Mon Mar  2 10:00:00 2020\nFrom: x\nDate: Sun, 1 Mar 2020 10:00:00 +0100\n\n>From the start.\n\n")
	p.write(".agent-mail/agents/bob/inbox/new/2025-12-24_x.md", "---json\n{\n  \"schema\": 1,\n  \"id\": \"2025-12-24_x\",\n  \"from\": \"alice\",\n  \"to\": [\"bob\"],\n"+
		"  \"thread\": \"p2p/alice__bob\",\n  \"subject\": \"Review\",\n  \"created\": \"2025-12-24T15:02:33.123Z\"\n}\n---\n# Please\n---\nreview.\n")
	var mails struct {
		Messages []struct {
			ID, From, Thread, Subject, Body string
		}
	}
	for range 2 {
		for _, args := range [][]string{{"old.mbox", "bob"}, {"Maildir", "bob", "carol@example.org=carol"}, {".agent-mail"}} {
			c := p.command("python3", append([]string{"import_mail.py"}, args...)...)
			c.Env = append(c.Env, "ATM_AGENT=me")
			if out, err := c.Output(); err != nil {
				t.Fatalf("%q: %v\n%s", args, err, out)
			}
		}
		if err := json.Unmarshal([]byte(p.run("atm", "read", "--peek", "--as", "bob", "--json")), &mails); err != nil || len(mails.Messages) != 4 {
			t.Fatal(mails, err)
		}
	}
	for i, want := range [][4]string{
		{"me@main", "", "From: x\nDate: 2020-03-01 10:00 +0100\n\n>From the start.", ""},
		{"carol@main", "Grüße", "From: Carol <Carol@example.org>\nDate: 2020-03-02 10:00 +0100\n\nSchön.", ""},
		{"me@main", "Re: hello there", "From: lead <lead@elsewhere.org>\nDate: 2020-03-02 11:00 \n\nYes.", mails.Messages[1].ID},
		{"alice@main", "Review", "From: alice\nDate: 2025-12-24 15:02 +0000\n\n# Please\n---\nreview.", ""},
	} {
		m := mails.Messages[i]
		if got := [4]string{m.From, m.Subject, m.Body, m.Thread}; got != want {
			t.Errorf("%q\nnot %q", got, want)
		}
	}
}

// Each job goes to one worker, its sender hears what came of it, and one that is cut off goes to the next.
func TestWorker(t *testing.T) {
	p := newProject(t, "alice", "one", "two")
	p.run("atm", "team", "add", "jobs", "--shared")
	p.write("job.sh", "read -r job\n[ \"$job\" != slow ] || [ ! -e wait ] || { echo >started; exec sleep 1000; }\necho \"did $job\" | tee -a did\n[ \"$job\" != bad ]\n")
	worker := func(name string) *exec.Cmd {
		c := p.command("python3", "worker.py", "jobs", "sh", "job.sh")
		c.Env = append(c.Env, "ATM_AGENT="+name)
		return c
	}
	p.write("wait", "")
	p.run("atm", "send", "jobs", "slow", "--as", "alice")
	end := p.start(worker("one"))
	p.eventually("the slow job has begun", p.has("started", "ls"))
	os.Remove(filepath.Join(p.dir, "wait"))
	end()
	p.start(worker("two"))
	p.start(worker("one"))
	for _, job := range []string{"good", "bad"} {
		p.run("atm", "send", "jobs", job, "--as", "alice")
	}
	for _, said := range []string{"as done, no answer wanted\n  did slow", "as done, no answer wanted\n  did good", "as blocked, no answer wanted\n  did bad"} {
		p.eventually(said, p.has(said, "atm", "read", "--peek", "--as", "alice"))
	}
	if did, _ := os.ReadFile(filepath.Join(p.dir, "did")); strings.Count(string(did), "\n") != 3 {
		t.Errorf("done: %q", did)
	}
}

// A chat is the Bot API of Telegram, as far as a bot uses it, for one person.
type chat struct {
	said    chan map[string]any // what the bot has sent
	updates chan map[string]any // what people do
}

const person = 4711

func (c *chat) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var fields map[string]any
	body, _ := io.ReadAll(r.Body)
	if json.Unmarshal(body, &fields) != nil || !strings.HasPrefix(r.URL.Path, "/botsecret/") {
		http.Error(w, `{"ok":false}`, http.StatusBadRequest)
		return
	}
	result := any(true)
	switch strings.TrimPrefix(r.URL.Path, "/botsecret/") {
	case "sendMessage":
		c.said <- fields
	case "getUpdates":
		select {
		case update := <-c.updates:
			update["update_id"] = fields["offset"]
			result = []any{update}
		case <-r.Context().Done():
		}
	}
	json.NewEncoder(w).Encode(map[string]any{"ok": true, "result": result})
}

// says returns the next text of the bot, and what its buttons send.
func (c *chat) says(t *testing.T, want string) (text string, buttons map[string]string) {
	t.Helper()
	select {
	case fields := <-c.said:
		text, buttons = fields["text"].(string), map[string]string{}
		if fields["chat_id"] != float64(person) || !strings.Contains(text, want) {
			t.Fatalf("it says %q", fields)
		}
		markup, _ := fields["reply_markup"].(map[string]any)
		rows, _ := markup["inline_keyboard"].([]any)
		for _, row := range rows {
			button := row.([]any)[0].(map[string]any)
			if data := button["callback_data"].(string); len(data) > 64 {
				t.Errorf("Telegram would not take %q", data)
			}
			buttons[button["text"].(string)] = button["callback_data"].(string)
		}
		return text, buttons
	case <-time.After(3 * time.Minute):
		t.Fatalf("it never says %q", want)
		return "", nil
	}
}

func (c *chat) press(by int, data string) {
	c.updates <- map[string]any{"callback_query": map[string]any{"id": "1", "from": map[string]any{"id": by}, "data": data}}
}

func TestTelegram(t *testing.T) {
	p := newProject(t, "bob", "dan", "me")
	c := &chat{make(chan map[string]any, 10), make(chan map[string]any)}
	api := httptest.NewServer(c)
	t.Cleanup(api.Close)
	bot := p.command("python3", "telegram.py")
	bot.Env = append(bot.Env, "ATM_AGENT=me", "TELEGRAM_API="+api.URL, "TELEGRAM_TOKEN=secret", fmt.Sprintf("TELEGRAM_CHAT=%d", person))
	p.start(bot)

	// A question by mail: one button for each choice, of which nobody else's press counts.
	answer := make(chan string, 1)
	go func() {
		answer <- p.run("atm", "ask", "me", "Deploy [now]?", "--choice", "yes", "--choice", "not yet", "--as", "bob")
	}()
	_, buttons := c.says(t, "bob asks (mail): Deploy [now]?")
	c.press(666, buttons["yes"])
	c.press(person, buttons["not yet"])
	c.says(t, "bob: answered")
	if got := <-answer; got != "not yet" {
		t.Errorf("bob hears %q", got)
	}
	c.press(person, buttons["yes"])
	c.says(t, "no open question")

	// A reply is a text of one's own, whatever it says.
	p.run("atm", "send", "me", "Merge?", "--choice", "yes", "--choice", "no", "--as", "bob")
	text, _ := c.says(t, "Merge?")
	reply := map[string]any{"from": map[string]any{"id": person}, "text": "--as dan", "reply_to_message": map[string]any{"text": text}}
	c.updates <- map[string]any{"message": reply}
	c.says(t, "bob: answered")
	if got := p.run("atm", "read", "--as", "bob"); !strings.Contains(got, "from me") || !strings.Contains(got, "\n  --as dan") {
		t.Error(got)
	}

	// A permission.
	p.run("atm", "run", "dan", "--detach", "--driver", "claude", "--", "fakeagent", "--profile", "claude")
	t.Cleanup(func() { p.command("atm", "stop", "dan").Run() })
	for _, button := range []string{"Yes", "No"} {
		p.run("atm", "send", "dan", "CONFIRM [touch "+button+"]", "--as", "me")
		_, buttons = c.says(t, "dan asks (permission): Bash command\ntouch "+button)
		c.press(person, buttons[button])
		c.says(t, "dan: answered ("+button+")")
	}
}
