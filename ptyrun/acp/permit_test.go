//go:build linux || darwin

package acp

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/agentteammail/atm/teams/policy"
)

// asking begins a script that asks for permission, and has its client do something.
const asking = begin + `
asks() { # kind, title, path
	echo '{"jsonrpc":"2.0","id":100,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t'$1$2$3'","kind":"'$1'","title":"'$2'","locations":['${3:+'{"path":"'$3'"}'}']},"options":[{"optionId":"a","name":"Always","kind":"allow_always"},{"optionId":"y","name":"Allow","kind":"allow_once"},{"optionId":"n","name":"No","kind":"reject_once"}]}}'
	read -r answer
}
writes() {
	echo '{"jsonrpc":"2.0","id":101,"method":"fs/write_text_file","params":{"sessionId":"s1","path":"'$1'","content":"new"}}'
	read -r answer
	case $answer in *error*) say refused ;; *) say wrote ;; esac
}
runs() {
	echo '{"jsonrpc":"2.0","id":102,"method":"terminal/create","params":{"sessionId":"s1","command":"'$1'"}}'
	read -r answer
	case $answer in *error*) say refused ;; *) say ran ;; esac
}
read -r prompt
`

// A yes is one to what was asked: to a kind of call and its path or command. A no is one to all that names the same.
func TestAnswerIsToOneQuestion(t *testing.T) {
	ask := policy.Rules{{Tool: "Write", Decision: policy.Ask}, {Tool: "Bash", Decision: policy.Ask}}
	guarded := policy.Rules{{Tool: "read", Decision: policy.Allow}}
	for _, c := range []struct {
		name    string
		rules   policy.Rules
		script  string
		answers []string // the IDs of options, one for each question that is to come
		want    string
	}{
		{"a yes to writing", ask, `asks edit Change $PWD/f; writes $PWD/f`, []string{"2"}, "wrote"},
		{"a yes to a command", ask, `asks execute true; runs true`, []string{"2"}, "ran"},
		{"a yes to reading", ask, `asks read true $PWD/f; writes $PWD/f; runs true`, []string{"2", "2", "2"}, "refused refused"},
		{"always, to reading", ask, `asks read true $PWD/f; writes $PWD/f; runs true`, []string{"1", "2", "2"}, "refused refused"},
		{"a yes to deleting", ask, `asks delete true $PWD/f; writes $PWD/f; runs true`, []string{"2", "2", "2"}, "refused refused"},
		{"a yes to writing is none to running", ask, `asks edit true $PWD/f; runs true; runs $PWD/f`, []string{"2", "2", "2"}, "refused refused"},
		{"a yes to running is none to writing", ask, `asks execute true $PWD/f; writes $PWD/f`, []string{"2", "2"}, "refused"},
		{"a yes to a call of no kind", ask, `asks other true $PWD/f; writes $PWD/f; runs true`, []string{"2", "2", "2"}, "refused refused"},
		{"a yes to another file", ask, `asks edit Change $PWD/f; writes $PWD/g`, []string{"2", "2"}, "refused"},
		{"a yes to a command that names git's directory", guarded, `asks read ls@.git; runs ls@.git`, []string{"2", "2"}, "refused"},
		{"a no to writing", nil, `asks edit Change $PWD/f; writes $PWD/f`, []string{"3"}, "refused"},
		{"a no to reading", nil, `asks read Read $PWD/f; writes $PWD/f`, []string{"3"}, "refused"},
		{"a no, then a yes to something else", nil, `asks edit Change $PWD/f; asks read Read $PWD/f; writes $PWD/f`, []string{"3", "2"}, "refused"},
		{"a no, then a yes to the same", nil, `asks edit Change $PWD/f; asks edit Change $PWD/f; writes $PWD/f`, []string{"3", "2"}, "wrote"},
		{"a no to a command", nil, `asks execute true; runs true`, []string{"3"}, "refused"},
		{"a rule's yes to another tool", append(slices.Clone(ask), policy.Rule{Tool: "Change", Decision: policy.Allow}, policy.Rule{Tool: "edit", Decision: policy.Allow}),
			`asks edit Change $PWD/f; writes $PWD/f`, []string{"2", "2"}, "refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := start(t, Options{Rules: c.rules, Command: []string{"sh", "-c", asking + strings.ReplaceAll(c.script, "@", "' '") + "\nfinish 3\nread -r x\n"}}).ready()
			r.prompts("Go.")
			// What its client is about to do is always refused: the first answers are to the agent's own questions.
			own := strings.Count(c.script, "asks ")
			for i, option := range c.answers {
				q := r.asked(i + 1)
				if i >= own {
					option = q.Options[1].ID // Reject
				}
				if err := r.Answer(q.ID, option); err != nil {
					t.Fatal(err)
				}
			}
			if got := strings.Join(strings.Fields(r.turnEnd().Field("response")), " "); got != c.want {
				t.Errorf("it %s, not %s", got, c.want)
			}
			if n := strings.Count(strings.Join(r.kinds(), "\n")+"\n", "asked "); n != len(c.answers) {
				t.Errorf("%d questions, not %d", n, len(c.answers))
			}
			if _, err := os.Stat(r.Dir + "/f"); (err == nil) != strings.HasPrefix(c.want, "wrote") {
				t.Errorf("the file: %v", err)
			}
		})
	}
}

// Who is asked about an edit sees which files a yes is for, whatever the model calls it.
func TestEditNamesFiles(t *testing.T) {
	r := start(t, Options{Command: []string{"sh", "-c", asking + `asks edit Tidy $PWD/f; finish 3; read -r x`}}).ready()
	r.prompts("Go.")
	q := r.asked(1)
	if want := fmt.Sprintf("Tidy\n%s/f", r.Dir); q.Prompt != want || q.Input != "Tidy" {
		t.Errorf("asked %q about %q, not %q", q.Prompt, q.Input, want)
	}
	r.Answer(q.ID, "3")
	r.turnEnd()
}
