package appserver

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

const asksToTouch = `{"id":7,"method":"item/commandExecution/requestApproval","params":{"threadId":"T","turnId":"U","itemId":"call","command":"/bin/bash -lc 'touch a'",` +
	`"availableDecisions":["accept",{"acceptWithExecpolicyAmendment":{"execpolicy_amendment":["touch","a"]}},"somethingNew","cancel"]}}`

const asksForFiles = `{"id":7,"method":"item/fileChange/requestApproval","params":{"threadId":"T","turnId":"U","itemId":"f"}}`

const asksPerson = `{"id":8,"method":"item/tool/requestUserInput","params":{"threadId":"T","turnId":"U","itemId":"ask","questions":[{"id":"db","question":"Which?",` +
	`"options":[{"label":"SQLite","description":"a file"},{"label":"Postgres","description":""}]}]}}`

// What a thread asks is asked of a client that comes later, with the answers that it takes, of which atm offers those that it
// knows.
func TestQuestions(t *testing.T) {
	for about, c := range map[string]struct{ request, line, options string }{
		"a command": {asksToTouch, "Bash: touch a",
			"accept Yes, proceed, always Yes, and don't ask again for commands that start with: touch a, decline No, and go on without it, cancel No, and end the turn"},
		"more than a command": {strings.Replace(asksToTouch, `"itemId"`, `"networkApprovalContext":{"host":"h"},"itemId"`, 1), "Bash: touch a (and asks for more: see its terminal)",
			"accept Yes, proceed, always Yes, and don't ask again for commands that start with: touch a, decline No, and go on without it, cancel No, and end the turn"},
		"an older server": {`{"id":7,"method":"item/commandExecution/requestApproval","params":{"threadId":"T","itemId":"c","command":"ls"}}`, "Bash: ls",
			"accept Yes, proceed, decline No, and go on without it"},
		"files": {`{"id":7,"method":"item/fileChange/requestApproval","params":{"threadId":"T","itemId":"f","grantRoot":"/x"}}`, "apply_patch: change files /x",
			"accept Yes, proceed, acceptForSession Yes, and don't ask again for this in this session, decline No, and go on without it, cancel No, and end the turn"},
		"its person":               {asksPerson, "Which?", "1 SQLite, 2 Postgres"},
		"its person, for a secret": {strings.Replace(asksPerson, `"id":"db"`, `"isSecret":true,"id":"db"`, 1), "Which?", ""},
		"its person, twice":        {strings.Replace(asksPerson, `"questions":[`, `"questions":[{"id":"a","question":"First?"},`, 1), "First? Which?", ""},
		"what atm does not know":   {`{"id":7,"method":"mcpServer/elicitation/request","params":{"threadId":"T"}}`, "", ""},
	} {
		t.Run(about, func(t *testing.T) {
			s := newServer(t)
			s.results.Store("thread/resume", `{"thread":{"id":"T"}}`)
			c2, conn := s.dial()
			s.send(conn, strings.ReplaceAll(c.request, `"T"`, `"other"`)) // is no question of this thread
			s.send(conn, c.request)
			all, err := c2.Questions(t.Context(), "T", func(*Question) bool { return true })
			if c.line == "" {
				if len(all) > 0 || err != nil {
					t.Errorf("%+v, %v", all, err)
				}
				return
			}
			if err != nil || len(all) != 1 {
				t.Fatal(all, err)
			}
			if q := all[0]; q.Line() != c.line || q.ListOptions() != c.options {
				t.Errorf("%q with %q", q.Line(), q.ListOptions())
			}
		})
	}
}

// A question is answered on the connection on which it was heard, if it is still the one that was shown.
func TestAnswer(t *testing.T) {
	touch := ask.Question{ID: "call", Tool: "Bash", Prompt: "touch a"}
	accept, decline := ask.Option{ID: "accept", Label: "Yes, proceed", Kind: "allow_once"}, ask.Option{ID: "decline", Label: "No, and go on without it", Kind: "reject_once"}
	id := string(wire.NewID())
	other := touch
	other.Prompt = "ls"
	for about, c := range map[string]struct {
		request string
		q       ask.Question
		option  ask.Option
		why     string
		want    string // what the server gets; "": nothing
	}{
		"yes":               {asksToTouch, touch, accept, "", `{"id":7,"result":{"decision":"accept"}}`},
		"no, with a reason": {asksToTouch, touch, decline, "not now", `{"id":7,"result":{"decision":"decline"}}`},
		"its person": {asksPerson, ask.Question{ID: "ask", Prompt: "Which?"}, ask.Option{ID: "1", Label: "SQLite", About: "a file"}, "",
			`{"id":8,"result":{"answers":{"db":{"answers":["SQLite"]}}}}`},
		"for longer": {asksToTouch, touch, ask.Option{ID: "always", Label: "Yes, and don't ask again for commands that start with: touch a", Kind: "allow_always"}, "",
			`{"id":7,"result":{"decision":{"acceptWithExecpolicyAmendment":{"execpolicy_amendment":["touch","a"]}}}}`},
		"of which a hook has told":     {asksToTouch, ask.Question{ID: id, Tool: "Bash", Prompt: "touch a"}, accept, "", `{"id":7,"result":{"decision":"accept"}}`},
		"a patch that a hook has told": {asksForFiles, ask.Question{ID: id, Tool: "apply_patch", Prompt: "*** Begin Patch"}, accept, "", `{"id":7,"result":{"decision":"accept"}}`},
		"a patch, and it asks other":   {asksToTouch, ask.Question{ID: id, Tool: "apply_patch", Prompt: "touch a"}, accept, "", ""},
		"another command was shown":    {asksToTouch, other, accept, "", ""},
		"another option was shown":     {asksToTouch, touch, ask.Option{ID: "always", Label: "Yes, and don't ask again for commands that start with: ls", Kind: "allow_always"}, "", ""},
		"it is asked in vain":          {"", touch, accept, "", ""},
		"with another id: a new one":   {strings.Replace(asksToTouch, `"call"`, `"later"`, 1), touch, accept, "", ""},
	} {
		t.Run(about, func(t *testing.T) {
			before := toldWithin
			toldWithin = 200 * time.Millisecond
			defer func() { toldWithin = before }()
			s := newServer(t)
			s.results.Store("thread/resume", `{"thread":{"id":"T"}}`)
			s.results.Store("turn/steer", `{"turnId":"U"}`)
			go func() {
				conn := <-s.conns
				for asked := range s.asked {
					if strings.Contains(asked, "thread/resume") && c.request != "" {
						s.send(conn, c.request)
					}
					if strings.Contains(asked, `"result"`) {
						s.answers <- asked
						s.send(conn, `{"method":"serverRequest/resolved","params":{"threadId":"T","requestId":7}}`)
					}
					if strings.Contains(asked, "turn/steer") {
						s.answers <- asked
					}
				}
			}()
			isGiven, err := Answer(context.WithoutCancel(t.Context()), s.socket, "T", c.q, c.option, c.why)
			if c.want == "" {
				if !errors.Is(err, ask.ErrNoQuestion) || len(s.answers) > 0 {
					t.Errorf("%v; %d answers", err, len(s.answers))
				}
				return
			}
			if err != nil || isGiven != (c.why != "") {
				t.Fatal(isGiven, err)
			}
			if c.why != "" {
				if got := <-s.answers; !strings.Contains(got, `"expectedTurnId":"U"`) || !strings.Contains(got, c.why) {
					t.Errorf("the reason is %s", got)
				}
			}
			if got := <-s.answers; got != c.want {
				t.Errorf("it got %s", got)
			}
		})
	}
}
