package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentteammail/atm/cmd/internal/output"
	"github.com/agentteammail/atm/cmd/internal/testteam"
)

func TestMain(m *testing.M) {
	testteam.Main(m)
}

// A mailTeam has the members alice and bob.
type mailTeam struct {
	*testteam.Team
	version string // of the protocol
}

// eachVersion runs a test with protocol versions with and without initialize.
func eachVersion(t *testing.T, test func(*mailTeam)) {
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			s := newTeam(t)
			s.version = version
			test(s)
		})
	}
}

func newTeam(t *testing.T) *mailTeam {
	t.Parallel()
	s := testteam.New(t, "alice", "bob")
	s.Env = append(s.Env, "HOME="+t.TempDir()) // else the team's directory would be no project
	return &mailTeam{s, "2025-11-25"}
}

// send sends a message from alice to bob and returns its ID.
func (s *mailTeam) send(text string, flags ...string) string {
	s.Helper()
	return strings.Fields(s.Atm(append([]string{"send", "bob", text, "--as", "alice"}, flags...)...))[1]
}

// unread counts bob's unread mail.
func (s *mailTeam) unread() string { return s.Atm("ls", "--count", "--as", "bob") }

// A client is the SDK's client with its own server process.
type client struct {
	*mailTeam
	*sdk.ClientSession
	updated, progress, subscribed chan string
}

func (s *mailTeam) connect(args ...string) *client {
	s.Helper()
	c := &client{mailTeam: s, updated: make(chan string, 100), progress: make(chan string, 100), subscribed: make(chan string, 100)}
	peer := sdk.NewClient(&sdk.Implementation{Name: "test"}, &sdk.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) { c.updated <- r.Params.URI },
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			c.progress <- fmt.Sprint(r.Params.ProgressToken, " ", r.Params.Progress, " ", r.Params.Message)
		},
	})
	peer.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			if method == "notifications/subscriptions/acknowledged" {
				c.subscribed <- method
			}
			return next(ctx, method, req)
		}
	})
	cmd := s.Command("atm-more", append([]string{"mcp"}, args...)...)
	cmd.Stderr = os.Stderr
	var err error
	if c.ClientSession, err = peer.Connect(s.Context(), &sdk.CommandTransport{Command: cmd}, &sdk.ClientSessionOptions{ProtocolVersion: s.version}); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { c.Close() })
	return c
}

type args = map[string]any

// call calls a tool and returns the text and the structured content of its result.
func (c *client) call(name string, with args) (text string, document map[string]any) {
	c.Helper()
	r, err := c.CallTool(c.Context(), &sdk.CallToolParams{Name: name, Arguments: with})
	if err != nil {
		c.Fatalf("%s %v: %v", name, with, err)
	}
	for _, one := range r.Content {
		text += one.(*sdk.TextContent).Text
	}
	document, _ = r.StructuredContent.(map[string]any)
	if r.IsError != (document["error"] != nil || document == nil) {
		c.Errorf("%s %v: error %v, document %v", name, with, r.IsError, document)
	}
	return text, document
}

// says calls a tool and checks that the result contains text and document.
func (c *client) says(name string, with args, text, document string) {
	c.Helper()
	got, doc := c.call(name, with)
	data, _ := json.Marshal(doc)
	if !strings.Contains(got, text) || !strings.Contains(string(data), document) {
		c.Errorf("%s %v:\n%s\n%s\nwant %q and %q", name, with, got, data, text, document)
	}
}

// TestTools uses every tool in a conversation.
func TestTools(t *testing.T) { eachVersion(t, testTools) }

func testTools(t *mailTeam) {
	c := t.connect("--as", "bob")
	if say := c.InitializeResult().Instructions; !strings.HasPrefix(say, "You are bob, in team main.") {
		t.Error(say)
	}
	tools, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, tool := range tools.Tools {
		schema := tool.InputSchema.(map[string]any)
		got += fmt.Sprintln(tool.Name, schema["required"], tool.Annotations.ReadOnlyHint)
	}
	want := "ack [id] false\npending <nil> true\nread <nil> false\nreply [id text] false\nsearch [words] true\nsend [to text] false\nteam <nil> true\nthread [id] true\nwait <nil> true\n"
	if got != want {
		t.Errorf("tools\n%s, want\n%s", got, want)
	}

	old := c.send("first")
	c.send("second", "--supersedes", old)
	c.says("read", nil, "replaces "+old, `"supersedes":"`)
	c.Eventually("it is read", func() bool { return c.unread() == "0" })

	id := c.send("Which branch?", "--ack")
	c.says("team", nil, "1 unread", `"unread":1`)
	c.says("wait", nil, "mail: "+id+" from alice", `"matched":"mail"`)
	c.says("read", args{"peek": true}, "Which branch?", `"state":"unread"`)
	c.says("read", args{"from": "alice", "limit": 3}, id+" from alice, ", `"state":"owed"`)
	c.Eventually("it is read", func() bool { return c.unread() == "0" })
	c.says("read", nil, "no new messages\n1 awaits your ack: "+id, `"messages":[]`)
	c.says("read", args{"last": true}, "Which branch?", id)
	c.says("ack", args{"id": id, "outcome": "done", "text": "a moment"}, "acked "+id+" as done", `"delivered":[{`)
	c.says("reply", args{"id": id, "text": "-", "subject": "--x"}, "sent ", `"to":"alice@main"`)
	c.says("thread", args{"id": id}, "  Which branch?\n", `"body":"-"`)
	c.says("thread", args{"id": id, "limit": 1}, "2 earlier: ", `"more":2`)
	c.says("pending", nil, "nothing is waiting for you", `"pending":[]`)
	c.says("search", args{"words": "which branch", "in": "cur"}, "no match", `"messages":[]`)
	c.says("search", args{"words": "which branch", "in": "done", "from": "alice", "limit": 1}, id, `"more":0`)
	long := strings.Repeat("all of it\n", 30_000)
	os.WriteFile(filepath.Join(c.Dir, "f"), []byte("x"), 0o600)
	c.says("send", args{"to": "alice,carol", "text": long, "attach": []string{"f"}, "urgent": true, "once": "long"}, "to alice (not read yet)\nnot sent to carol@main: no agent \"carol\" in team \"main\"\nhint: members: alice, bob", `"failed":[{`)
	c.says("wait", args{"reply": id[:4], "timeout": "50ms"}, "no such message", `"code":"not_found"`)
	c.says("wait", args{"exit": "alice"}, "exit: the state of alice is unknown", `"message":null`)
	c.says("wait", args{"timeout": "50ms"}, "no mail within 50ms\nhint: ", `"timeout":true`)

	sent := c.Atm("read", "--as", "alice", "--json", "--limit", "0")
	for _, want := range []string{`"via":"mcp"`, `"subject":"--x"`, `"body":"` + strings.ReplaceAll(long, "\n", `\n`) + `"`, `"name":"f"`, `"priority":"urgent"`} {
		if !strings.Contains(sent, want) {
			t.Errorf("%.80s is not in what alice got", want)
		}
	}
}

// An error has the command's hint and document; what the schema forbids never reaches the command.
func TestErrors(t *testing.T) {
	s := newTeam(t)
	c := s.connect("--as", "bob")
	for _, e := range []struct {
		tool, want string
		with       args
	}{
		{"send", "no agent \"alcie\" in team \"main\"\nhint: did you mean \"alice\"?", args{"to": "alcie", "text": "x"}},
		{"send", "the text is empty\nhint: a blank text is never sent", args{"to": "alice", "text": " "}},
		{"send", "due: \"soon\" is not a duration such as 30s, 2h, 7d or 1d12h", args{"to": "alice", "text": "x", "due": "soon"}},
		{"send", "the text has a NUL byte\nhint: send it as a file: --attach FILE", args{"to": "alice", "text": "x\x00"}},
		{"send", "fyi wants no answer", args{"to": "alice", "text": "x", "ack": true, "fyi": true}},
		{"send", "fyi wants no answer", args{"to": "alice", "text": "x", "due": "2h", "fyi": true}},
		{"send", "at and in contradict each other", args{"to": "alice", "text": "x", "at": "14:00", "in": "2h"}},
		{"send", "--in 0s is no time to come", args{"to": "alice", "text": "x", "in": "0"}},
		{"send", "--at: \"noonish\" is not a time", args{"to": "alice", "text": "x", "at": "noonish"}},
		{"send", "a question needs two", args{"to": "alice", "text": "x", "choice": []string{"yes"}}},
		{"send", "a name must be one line of 1 to 200 bytes\nhint: --once parser/1", args{"to": "alice", "text": "x", "once": "a\n"}},
		{"search", "in:old: must be new, cur or done", args{"words": "x", "in": "old"}},
		{"search", "since: \"once\" is not a time", args{"words": "x", "since": "once"}},
		{"search", "in:\\x1b[2J: must be new", args{"words": "x", "in": "\x1b[2J"}},
		{"ack", "hint: atm ls --all --as bob lists your messages", args{"id": "abcdef"}},
		{"ack", "outcome must be one of done, blocked, declined, not \"failed\"", args{"id": "abcdef", "outcome": "failed"}},
		{"reply", "is a member, not the id of a message\nhint: atm read --from alice --as bob, atm ls alice --as bob", args{"id": "alice", "text": "x"}},
		{"wait", "no agent \"carol\"", args{"idle": "carol"}},
		{"wait", "timeout: \"soon\" is not a duration", args{"timeout": "soon"}},
		{"wait", "--any does nothing without conditions", args{"any": true}},
		{"read", "is not an id: 4 to 32 hex digits\nhint: atm read --last --as bob and atm ls --all --as bob show the ids", args{"id": "zz"}},
		{"read", "chosen by flags, not both", args{"id": c.send("one"), "from": "alice"}},
		{"thread", "not an id", args{"id": "--as=alice"}},
	} {
		c.says(e.tool, e.with, e.want, `"error":{"candidates":`)
	}
	for _, e := range []struct {
		tool, want string
		with       args
	}{
		{"send", `missing properties: ["text"]`, args{"to": "alice"}},
		{"send", `unexpected additional properties ["body"]`, args{"to": "alice", "text": "x", "body": "y"}},
		{"send", `unexpected additional properties ["root"]`, args{"to": "alice", "text": "x", "root": "/"}},
		{"send", `want "boolean"`, args{"to": "alice", "text": "x", "urgent": "maybe"}},
		{"read", `want "integer"`, args{"limit": "few"}},
		{"team", `unexpected additional properties ["limit"]`, args{"limit": 5}},
	} {
		c.says(e.tool, e.with, e.want, "null")
	}
	if n := strings.Fields(s.Atm("ls", "--count", "--as", "alice"))[0]; n != "0" {
		t.Error("alice got", n)
	}
	if _, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "run"}); err == nil || !strings.Contains(err.Error(), "unknown tool") {
		t.Error(err)
	}

	// Without an identity and outside a team the server starts all the same.
	c = s.connect()
	c.says("read", nil, "who are you? members: alice, bob\nhint: start it with a name: atm mcp --as NAME; do not take a name that is not yours", `"code":"usage"`)
	c.says("team", nil, "alice", `"name":"bob"`)
	c = s.connect("--root", filepath.Join(s.Dir, "nowhere"), "--as", "bob")
	c.says("team", nil, "nowhere", `"code":"not_found"`)
	for uri, want := range map[string]string{inboxURI: "hint: ", "atm://else": "not found"} {
		if err := c.Subscribe(t.Context(), &sdk.SubscribeParams{URI: uri}); err == nil || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
	}
}

// What is told with a flag's value is a filter, also if it has a blank.
func TestFilters(t *testing.T) {
	c := newTeam(t).connect("--as", "bob")
	id := c.send("flaky test")
	c.send("another")
	c.says("search", args{"words": "test", "since": "2h ago", "from": "@alice", "to": "bob", "in": "new"}, id, `"more":0`)
	c.says("search", args{"words": "", "from": "alice", "limit": 1}, "1 more: ", `"more":1`)
	c.says("send", args{"to": "alice", "text": "later", "in": "2h"}, " to alice (later: ", `"when":"later"`)
	c.says("read", args{"thread": id, "peek": true}, "flaky", `"more":0`)
	c.says("read", args{"urgent": true}, "no new messages", `"messages":[]`)
	c.says("read", args{"id": id}, "flaky", `"more":`)
}

// A wait reports progress every five seconds and ends when it is cancelled, without marking anything. Other calls are
// answered meanwhile.
func TestWait(t *testing.T) {
	c := newTeam(t).connect("--as", "bob")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		p := &sdk.CallToolParams{Name: "wait", Arguments: args{"timeout": "0"}}
		p.SetProgressToken("p1")
		_, err := c.CallTool(ctx, p)
		ended <- err
	}()
	if got := <-c.progress; got != "p1 5 waited 5s" {
		t.Error(got)
	}
	c.says("team", nil, "alice", "bob")
	cancel()
	if err := <-ended; err == nil {
		t.Error("a cancelled wait returned")
	}
	go func() { c.send("at last") }()
	c.says("wait", args{"timeout": "2m"}, "mail: ", `"body":"at last"`)
	if n := c.unread(); n != "1" {
		t.Error(n, "unread")
	}
}

// A new message and its reading notify subscribers only.
func TestSubscription(t *testing.T) { eachVersion(t, testSubscription) }

func testSubscription(t *mailTeam) {
	c, other := t.connect("--as", "bob"), t.connect("--as", "bob")
	for _, uri := range []string{inboxURI, teamURI} {
		if err := c.Subscribe(t.Context(), &sdk.SubscribeParams{URI: uri}); err != nil {
			t.Fatal(err)
		}
		if t.version >= "2026-07-28" { // there Subscribe does not wait for the answer
			<-c.subscribed
		}
	}
	c.send("news")
	got := []string{<-c.updated, <-c.updated}
	slices.Sort(got)
	if !slices.Equal(got, []string{inboxURI, teamURI}) {
		t.Error(got)
	}
	r, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: inboxURI})
	if err != nil || !strings.Contains(r.Contents[0].Text, "\n  news") || t.unread() != "1" {
		t.Error(r, err)
	}
	t.Atm("read", "--as", "bob")
	for got := range c.updated {
		if got == inboxURI {
			break
		}
	}
	if err := c.Unsubscribe(t.Context(), &sdk.UnsubscribeParams{URI: inboxURI}); err != nil {
		t.Error(err)
	}
	t.Atm("send", "alice", "not bob's", "--as", "bob")
	for got := range c.updated { // perhaps of the read above, then of the team
		if got == teamURI {
			break
		}
		t.Error(got)
	}
	if len(other.updated) > 0 {
		t.Error(<-other.updated)
	}
}

// Concurrent reads return each message once.
func TestReadsAtOnce(t *testing.T) {
	c := newTeam(t).connect("--as", "bob")
	var sent, got []string
	for i := range 12 {
		sent = append(sent, fmt.Sprintf("number %02d", i))
		c.send(sent[i])
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			for range 2 {
				_, document := c.call("read", args{"limit": 1})
				for _, m := range document["messages"].([]any) {
					mu.Lock()
					got = append(got, m.(map[string]any)["body"].(string))
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	slices.Sort(got)
	if !slices.Equal(got, sent) {
		t.Error(got)
	}
}

// A raw session is a server whose output the test reads itself.
type raw struct {
	*mailTeam
	*exec.Cmd
	in, out *os.File
}

func (s *mailTeam) raw(program string) *raw {
	s.Helper()
	r := &raw{mailTeam: s, Cmd: s.Command(program, "mcp", "--as", "bob")}
	stdin, in, err := os.Pipe()
	if err != nil {
		s.Fatal(err)
	}
	out, stdout, err := os.Pipe()
	if err != nil {
		s.Fatal(err)
	}
	r.in, r.out, r.Stdin, r.Stdout, r.Stderr = in, out, stdin, stdout, os.Stderr
	if err := r.Start(); err != nil {
		s.Fatal(err)
	}
	stdin.Close()
	stdout.Close()
	r.say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2099-01-01","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`)
	if line := r.hear(); !strings.Contains(line, `"protocolVersion":"2025-11-25"`) {
		s.Error(line)
	}
	r.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return r
}

func (r *raw) say(line string) { r.in.WriteString(line + "\n") }

// hear reads one line from the pipe, byte by byte.
func (r *raw) hear() string {
	var line []byte
	for one := make([]byte, 1); len(line) == 0 || one[0] != '\n'; line = append(line, one[0]) {
		if _, err := r.out.Read(one); err != nil {
			break
		}
	}
	return string(line)
}

const readCall = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read","arguments":{}}}`

// A message stays unread if the server is killed or the client leaves before the response was received completely.
func TestUnreadUntilReceived(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what has been received is known on Linux only")
	}
	for _, body := range []string{"short", strings.Repeat("longer than a pipe\n", 20_000)} {
		for name, end := range map[string]func(*raw){
			"server killed": func(r *raw) { r.Process.Signal(syscall.SIGKILL) },
			"client gone":   func(r *raw) { r.out.Close(); r.in.Close() },
		} {
			t.Run(fmt.Sprint(name, len(body)), func(t *testing.T) {
				s := newTeam(t)
				cmd := s.Command("atm", "send", "bob", "-", "--as", "alice")
				cmd.Stdin = strings.NewReader(body)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%s", out)
				}
				r := s.raw("atm-more")
				r.say(readCall)
				s.Eventually("the response is in the pipe", func() bool { n, _ := output.Unread(r.out); return n > 0 })
				end(r)
				r.Wait()
				if n := s.unread(); n != "1" {
					t.Errorf("%s unread after the end", n)
				}
				r = s.raw("atm-more")
				r.say(readCall)
				if line := r.hear(); !strings.Contains(line, body[:5]) || !strings.HasSuffix(line, "}\n") {
					t.Errorf("it does not come again: %.200s", line)
				}
				s.Eventually("it is read", func() bool { return s.unread() == "0" })
				r.in.Close()
				if err := r.Wait(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// A cancelled read marks nothing, because the client drops its response.
func TestCancelledReadMarksNothing(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what has been received is known on Linux only")
	}
	s := newTeam(t)
	s.send("one")
	s.send("two")
	r := s.raw("atm-more")
	inPipe := func() int { n, _ := output.Unread(r.out); return n }
	call := `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"read","arguments":{"limit":1}}}`
	r.say(fmt.Sprintf(call, 2))
	s.Eventually("the first one waits to be received", func() bool { return inPipe() > 0 })
	first := inPipe()
	r.say(fmt.Sprintf(call, 3)) // waits for the first
	r.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
	s.Eventually("the second one has ended", func() bool { return inPipe() > first })
	if got := r.hear() + r.hear(); !strings.Contains(got, "\\n  one") || strings.Contains(got, "\\n  two") {
		t.Error(got)
	}
	r.in.Close()
	r.Wait()
	if n := s.unread(); n != "1" {
		t.Errorf("%s unread", n)
	}
}

// The version with batches is not agreed to.
func TestVersions(t *testing.T) {
	s := newTeam(t)
	for asked, want := range map[string]string{"2024-11-05": "2024-11-05", "2025-03-26": "2025-11-25", "2025-06-18": "2025-06-18", "1999-01-01": "2025-11-25"} {
		cmd := s.Command("atm-more", "mcp", "--as", "bob")
		cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + asked + `","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}` + "\n")
		out, err := cmd.Output()
		if err != nil || !strings.Contains(string(out), `"protocolVersion":"`+want+`"`) {
			t.Errorf("%s: %s %v", asked, out, err)
		}
	}
}

// Calls that came before stdin was closed are answered; a wait ends then.
func TestClientCloses(t *testing.T) {
	s := newTeam(t)
	s.send("one")
	r := s.raw("atm-more")
	r.say(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"wait","arguments":{}}}`)
	if line := r.hear(); !strings.Contains(line, `mail: `) {
		t.Error(line)
	}
	r.say(readCall)
	r.say(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"wait","arguments":{"idle":"alice","timeout":"0"}}}`)
	r.in.Close()
	got := r.hear() + r.hear()
	if !strings.Contains(got, "\\n  one") || !strings.Contains(got, `"id":3`) {
		t.Error(got)
	}
	if err := r.Wait(); err != nil {
		t.Error(err)
	}
	if n := s.unread(); n != "0" {
		t.Error(n, "unread")
	}
}

// A client that is gone ends the server, also while calls wait.
func TestClientDies(t *testing.T) {
	r := newTeam(t).raw("atm-more")
	r.say(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"wait","arguments":{"timeout":"0"}}}`)
	r.say(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"wait","arguments":{"idle":"alice","timeout":"0"}}}`)
	r.out.Close()
	r.in.Close()
	r.Wait()
}
