package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
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

// A team has the members alice and bob.
type team struct {
	*testteam.Team
	version string // of the protocol
}

// eachVersion runs a test with protocol versions with and without initialize.
func eachVersion(t *testing.T, test func(*team)) {
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			s := newTeam(t)
			s.version = version
			test(s)
		})
	}
}

func newTeam(t *testing.T) *team {
	t.Parallel()
	s := testteam.New(t, "alice", "bob")
	s.Env = append(s.Env, "HOME="+t.TempDir()) // else the team's directory would be no project
	return &team{s, "2025-11-25"}
}

// send sends a message from alice to bob and returns its ID.
func (s *team) send(text string, flags ...string) string {
	s.Helper()
	return strings.Fields(s.Atm(append([]string{"send", "bob", text, "--as", "alice"}, flags...)...))[1]
}

// unread counts bob's unread mail.
func (s *team) unread() string { return s.Atm("ls", "--count", "--as", "bob") }

// A client is the SDK's client with its own server process.
type client struct {
	*team
	*sdk.ClientSession
	updated, progress, subscribed chan string
}

func (s *team) connect(args ...string) *client {
	s.Helper()
	c := &client{team: s, updated: make(chan string, 100), progress: make(chan string, 100), subscribed: make(chan string, 100)}
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
	if r.IsError != (document == nil) {
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

func testTools(t *team) {
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
		if schema["type"] != "object" || tool.OutputSchema.(map[string]any)["type"] != "object" {
			t.Errorf("%s: %v %v", tool.Name, schema, tool.OutputSchema)
		}
	}
	want := "ack [id] false\nread <nil> false\nreply [id text] false\nsearch [words] true\nsend [to text] false\nteam <nil> true\nthread [id] true\nwait <nil> true\n"
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
	c.says("search", args{"words": "which branch", "in": "cur"}, "no match", `"messages":[]`)
	c.says("search", args{"words": "which branch", "in": "done", "from": "alice", "limit": 1}, id, `"more":0`)
	long := strings.Repeat("all of it\n", 30_000)
	os.WriteFile(filepath.Join(c.Dir, "f"), []byte("x"), 0o600)
	c.says("send", args{"to": "alice,carol", "text": long, "attach": []string{"f"}, "urgent": true, "once": "long"}, `no agent "carol"`, `"failed":[{`)
	c.says("wait", args{"reply": id[:4], "timeout": "50ms"}, "no such message", "null")
	c.says("wait", args{"exit": "alice"}, "exit: the state of alice is unknown", `"message":null`)
	c.says("wait", args{"timeout": "50ms"}, "no mail within 50ms\nhint: ", `"timeout":true`)

	sent := c.Atm("read", "--as", "alice", "--json", "--limit", "0")
	for _, want := range []string{`"via":"mcp"`, `"subject":"--x"`, `"body":"` + strings.ReplaceAll(long[:len(long)-1], "\n", `\n`) + `"`, `"name":"f"`, `"priority":"urgent"`} {
		if !strings.Contains(sent, want) {
			t.Errorf("%.80s is not in what alice got", want)
		}
	}
}

// An error has the command's hint; what the schema forbids never reaches the command, and is said in a sentence.
func TestErrors(t *testing.T) {
	s := newTeam(t)
	c := s.connect("--as", "bob")
	for _, e := range []struct {
		tool, want string
		with       args
	}{
		{"send", "no agent \"alcie\" in team \"main\"\nhint: did you mean \"alice\"?", args{"to": "alcie", "text": "x"}},
		{"send", `send needs "text"`, args{"to": "alice", "text": ""}},
		{"send", "the text is empty\nhint: a blank text is never sent", args{"to": "alice", "text": " "}},
		{"send", "to whom? members: alice, bob\nhint: send NAME \"text\"", args{"to": "alice and bob", "text": "x"}},
		{"send", "for \"due\": not a duration such as 30s, 2h, 7d or 1d12h\nhint: \"due\": answer due in D", args{"to": "alice", "text": "x", "due": "soon"}},
		{"send", `send needs "to"`, args{"text": "x"}},
		{"send", `send needs "to"`, args{"text": "x", "to": nil}},
		{"send", `send has no argument "body"; it has: ack, after, at, attach, choice, due,`, args{"to": "alice", "text": "x", "body": "y"}},
		{"send", `send has no argument "root"`, args{"to": "alice", "text": "x", "root": "/"}},
		{"send", "hint: did you mean \"urgent\"?", args{"to": "alice", "text": "x", "urgnet": true}},
		{"send", "hint: \"urgent\": true", args{"to": "alice", "text": "x", "priority": "high"}},
		{"send", "hint: name them all in \"to\"", args{"to": "alice", "text": "x", "cc": []string{"bob"}}},
		{"send", `send needs "to"`, args{"to": []string{}, "text": "x"}},
		{"send", `"to" is a text, not {"name":"alice"}`, args{"to": args{"name": "alice"}, "text": "x"}},
		{"send", `"attach" is a text, not {}`, args{"to": "alice", "text": "x", "attach": args{}}},
		{"read", "hint: \"peek\": true", args{"mark_read": false}},
		{"wait", "hint: did you mean \"timeout\"? such as \"30s\"", args{"timeout_s": 30}},
		{"send", `"subject" takes one value, not 2`, args{"to": "alice", "text": "x", "subject": []string{"a", "b"}}},
		{"send", `"urgent" is true or false, not maybe`, args{"to": "alice", "text": "x", "urgent": "maybe"}},
		{"team", `team takes no arguments, and "limit" is one`, args{"limit": 5}},
		{"send", "the text has a NUL byte\nhint: send it as a file: \"attach\"", args{"to": "alice", "text": "x\x00"}},
		{"send", "\"fyi\" and \"ack\" contradict each other\nhint: leave one out", args{"to": "alice", "text": "x", "ack": true, "fyi": true}},
		{"search", `"in" is one of new, cur, done, not old`, args{"words": "x", "in": "old"}},
		{"read", `"limit" is a whole number from 1 up, not 0`, args{"limit": 0}},
		{"read", `"limit" is a whole number from 1 up, not 1.5`, args{"limit": 1.5}},
		{"read", `"limit" is a whole number from 1 up, not few`, args{"limit": "few"}},
		{"ack", "hint: atm ls --all --as bob lists your messages", args{"id": "abcdef"}},
		{"ack", `"outcome" is one of done, blocked, declined, not failed`, args{"id": "abcdef", "outcome": "failed"}},
		{"reply", "is a member, not the id of a message\nhint: read with \"from\": \"alice\", atm ls alice --as bob", args{"id": "alice", "text": "x"}},
		{"wait", "no agent \"carol\"", args{"idle": "carol"}},
		{"send", "\"once\": a name must be one line of 1 to 200 bytes\nhint: \"once\": \"parser/1\"", args{"to": "alice", "text": "x", "once": "a\n"}},
		{"send", "\"fyi\" and \"due\" contradict each other", args{"to": "alice", "text": "x", "due": "2h", "fyi": true}},
		{"read", "is not an id: 4 to 32 hex digits\nhint: read with \"last\": true and atm ls --all --as bob show the ids", args{"id": "zz"}},
		{"wait", "hint: \"timeout\": wait D ", args{"timeout": "soon"}},
		{"thread", "not an id", args{"id": "--as=alice"}},
	} {
		c.says(e.tool, e.with, e.want, "null")
	}
	if _, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "run"}); err == nil || !strings.Contains(err.Error(), "unknown tool") {
		t.Error(err)
	}

	// Without an identity and outside a team the server starts all the same.
	c = s.connect()
	c.says("read", nil, "who are you? members: alice, bob\nhint: start it with a name: atm mcp --as NAME; do not take a name that is not yours", "null")
	c.says("team", nil, "alice", `"name":"bob"`)
	c = s.connect("--root", filepath.Join(s.Dir, "nowhere"), "--as", "bob")
	c.says("team", nil, "nowhere", "null")
	for uri, want := range map[string]string{inboxURI: "hint: ", "atm://else": "not found"} {
		if err := c.Subscribe(t.Context(), &sdk.SubscribeParams{URI: uri}); err == nil || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
	}
}

// What models write instead of a schema's form has the meaning that it must have.
func TestLooseArguments(t *testing.T) {
	s := newTeam(t)
	s.Atm("team", "add", "carol")
	c := s.connect("--as", "bob")
	c.says("send", args{"to": []string{"alice", "carol"}, "body": "both", "fyi": nil, "due": "", "attach": []string{}, "ack": "true"}, "to alice, carol", `"failed":[]`)
	c.says("send", args{"to": "alice", "text": "later", "in": "2h"}, " to alice (later: ", `"when":"later"`)
	c.says("send", args{"to": []string{"alice"}, "message": "one", "subject": nil}, "sent ", `"failed":[]`)
	c.says("send", args{"recipients": "alice , carol,", "content": "both"}, "to alice, carol", `"failed":[]`)
	c.says("send", args{"to": `["alice", "carol"]`, "text": "both", "attachments": "[]", "requires_ack": "false"}, "to alice, carol", `"failed":[]`)
	first, second := c.send("one"), c.send("two")
	c.says("read", args{"limit": "1", "from": "", "peek": "true"}, "one", `"more":1`)
	c.says("read", args{"limit": 2.0, "thread": nil}, "two", `"more":0`)
	c.says("ack", args{"id": []string{first, second}}, "acked "+second, `"delivered":[{`)
	c.says("thread", args{"thread_id": "#" + first}, "one", `"more":0`)
	_, document := c.call("search", args{"query": "two"})
	whole := document["messages"].([]any)[0].(map[string]any)["id"].(string)
	c.says("ack", args{"message_id": first + ", " + whole, "note": "soon"}, "acked "+second, `"delivered":[{`)
	c.says("reply", args{"message_id": whole, "body": "yes"}, "sent ", `"failed":[]`)
	r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "read", Arguments: json.RawMessage(`"{\"last\": true}"`)})
	if err != nil || r.IsError {
		t.Error(r, err)
	}
}

// Every argument in a schema is known to the command.
func TestArguments(t *testing.T) {
	c := newTeam(t).connect("--as", "bob")
	tools, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{"boolean": true, "integer": 1_000_000, "array": []string{"x"}, "string": "1ms"}
	for _, tool := range tools.Tools {
		properties, _ := tool.InputSchema.(map[string]any)["properties"].(map[string]any)
		for name, property := range properties {
			with := args{"to": "alice", "text": "x", "id": "abcd", "words": "x", "timeout": "1ms"}
			maps.DeleteFunc(with, func(known string, _ any) bool { return properties[known] == nil })
			with[name] = values[property.(map[string]any)["type"].(string)]
			if name == "in" {
				with[name] = "cur"
			}
			if text, _ := c.call(tool.Name, with); strings.Contains(text, "unknown flag") || strings.Contains(text, "validating") || strings.Contains(text, "1e+06") {
				t.Errorf("%s %v: %s", tool.Name, with, text)
			}
		}
	}
}

// A message that another program wrote fits the schema as well.
func TestForeignMessage(t *testing.T) {
	c := newTeam(t).connect("--as", "bob")
	c.send("x")
	files, _ := filepath.Glob(filepath.Join(c.Dir, ".atm/main/bob/inbox/new/*"))
	data, _ := os.ReadFile(files[0])
	os.WriteFile(files[0], bytes.Replace(data, []byte(`"to":["bob@main"]`), []byte(`"superseded_by":null`), 1), 0o600)
	c.says("read", nil, "from alice", `"superseded_by":null`)
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
	c.Eventually("atm wait has ended", func() bool { return c.children() == 0 })
	go func() { c.send("at last") }()
	c.says("wait", args{"timeout": "2m"}, "mail: ", `"body":"at last"`)
	if n := c.unread(); n != "1" {
		t.Error(n, "unread")
	}
}

// children counts the running commands of this team's servers.
func (s *team) children() (n int) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range all {
		dir, _ := os.Readlink(process + "/cwd")
		if line, _ := os.ReadFile(process + "/cmdline"); dir == s.Dir && bytes.Contains(line, []byte("/atm\x00")) {
			n++
		}
	}
	return n
}

// A new message and its reading notify subscribers only.
func TestSubscription(t *testing.T) { eachVersion(t, testSubscription) }

func testSubscription(t *team) {
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
	*team
	*exec.Cmd
	in, out *os.File
}

func (s *team) raw(program string) *raw {
	s.Helper()
	r := &raw{team: s, Cmd: s.Command(program, "mcp", "--as", "bob")}
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
				s.Eventually("atm read has ended", func() bool { return s.children() == 0 })
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
	s := newTeam(t)
	s.send("one")
	program, _ := exec.LookPath("atm-more")
	beside := filepath.Join(s.Dir, "atm-more") // it runs the atm there
	if out, err := s.Command("cp", program, beside).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.Write("atm", "#!/bin/sh\ncase $* in *--confirm*) : >begun; until [ -e go ]; do :; done; esac\nexec atm \"$@\"\n")
	r := s.raw(beside)
	r.say(readCall)
	s.Eventually("it reads", func() bool { _, err := os.Stat(filepath.Join(s.Dir, "begun")); return err == nil })
	r.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	r.say(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	r.hear()
	s.Write("go", "")
	r.in.Close()
	r.Wait()
	if n := s.unread(); n != "1" {
		t.Errorf("%s unread", n)
	}
}

// Ids come back as they came.
func TestIDs(t *testing.T) {
	r := newTeam(t).raw("atm-more")
	for _, id := range []string{
		"0", "-7", "9007199254740991", "9007199254740993", "1764150000123456789", "12345678901234567890", "-12345678901234567890",
		"1.5", "1.0", "1e3", "-0", `"x"`, `""`, `"1.5"`, `"12345678901234567890"`, `"é\"\\"`,
	} {
		r.say(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`)
		if got := r.hear(); !strings.Contains(got, `"id":`+id+`,"result":{}`) {
			t.Errorf("%s: %s", id, got)
		}
	}
	for _, id := range []string{"true", "[1]", "{}"} {
		r.say(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`)
		if got := r.hear(); !strings.Contains(got, `"id":null,"error":{"code":-32600`) {
			t.Errorf("%s: %s", id, got)
		}
	}
	r.say(`{"jsonrpc":"2.0","id":1764150000123456789,"method":"tools/call","params":{"name":"wait","arguments":{"timeout":"0"}}}`)
	r.Eventually("it waits", func() bool { return r.children() > 0 })
	r.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1764150000123456789}}`)
	r.Eventually("the wait has ended", func() bool { return r.children() == 0 })
}

// The version with batches is not agreed to, but the one before it, which the client has as well.
func TestVersions(t *testing.T) {
	s := newTeam(t)
	for asked, want := range map[string]string{"2024-11-05": "2024-11-05", "2025-03-26": "2024-11-05", "2025-06-18": "2025-06-18", "1999-01-01": "2025-11-25"} {
		cmd := s.Command("atm-more", "mcp", "--as", "bob")
		cmd.Stdin = strings.NewReader("\ufeff" + `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + asked + `","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}` + "\n")
		out, err := cmd.Output()
		if err != nil || !strings.Contains(string(out), `"protocolVersion":"`+want+`"`) {
			t.Errorf("%s: %s %v", asked, out, err)
		}
	}
}

// A line that is no message gets an error response, and the session continues.
func TestStrayLine(t *testing.T) {
	s := newTeam(t)
	r := s.raw("atm-more")
	for line, want := range map[string]string{
		"Picked up _JAVA_OPTIONS":   `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`,
		`{"jsonrpc":"2.0","id":2,`:  `"code":-32700`,
		`{"jsonrpc":"2.0"} trailer`: `"code":-32700`,
		`{"id":2}`:                  `"code":-32600`,
		`[]`:                        `"code":-32600`,
		"\r\n" + `{"jsonrpc":"2.0","id":3,"method":"ping"}` + " \r":                        `"id":3,"result":{}`,
		`{"jsonrpc":"2.0","id":5,"method":"ping"}{"jsonrpc":"2.0","id":6,"method":"ping"}`: `"code":-32700`,
	} {
		r.say(line)
		if got := r.hear(); !strings.Contains(got, want) {
			t.Errorf("%q: %s", line, got)
		}
	}
	r.say(`{"jsonrpc":"2.0","id":4,"method":"ping"` + strings.Repeat(" ", 17<<20) + "}") // the SDK's default is 16 MiB
	if got := r.hear(); !strings.Contains(got, `"id":4,"result":{}`) {
		t.Error(got)
	}
	r.say(`{"jsonrpc":"2.0","id":7,"method":"ping"` + strings.Repeat(" ", 40<<20) + "}")
	if got := r.hear(); !strings.Contains(got, `"code":-32600,"message":"a message has at most 32 MiB"`) {
		t.Error(got)
	}
	r.say(`{"jsonrpc":"2.0","id":8,"method":"ping"}`)
	if got := r.hear(); !strings.Contains(got, `"id":8,"result":{}`) {
		t.Error(got)
	}
	r.in.WriteString("torn")
	r.in.Close()
	if got := r.hear(); !strings.Contains(got, "-32700") {
		t.Error(got)
	}
	if err := r.Wait(); err != nil {
		t.Error(err)
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
	got := r.hear() + r.hear() + r.hear()
	if !strings.Contains(got, "\\n  one") || !strings.Contains(got, `"id":3`) {
		t.Error(got)
	}
	if err := r.Wait(); err != nil {
		t.Error(err)
	}
	if n := s.unread(); n != "0" || s.children() != 0 {
		t.Error(n, "unread;", s.children(), "children")
	}
}
