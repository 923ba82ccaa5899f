package ptyrun

import (
	"slices"
	"strings"
	"testing"

	"github.com/agentteammail/atm/reducer/ask"
)

// An agent that asks about several calls at once has them answered one after the other: in the log, in what people are told,
// and in the transcript. An interrupt withdraws those that are open, and nobody is asked what is withdrawn with them.
func TestSeveralQuestions(t *testing.T) {
	t.Parallel()
	r := newRig(t).program("plain", "sh", "-c", `
ask() { echo '{"jsonrpc":"2.0","id":'$1',"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"c'$1'","kind":"execute","title":"make '$1'"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]}}'; }
read -r x; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{}}}'
read -r x; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s1"}}'
read -r x; ask 11; ask 12; ask 13; ask 14; while read -r x; do case $x in *session/cancel*) echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"cancelled"}}' ;; esac; done`)
	r.opt.Driver, r.opt.ACP = nil, &ACP{}
	r.run()
	r.Send("Go.")
	for i, prompt := range []string{"make 11", "make 12"} {
		r.Wait(prompt, func() bool { return len(r.questions()) == i+1 })
		q := r.questions()[i]
		if q.Prompt != prompt || !q.Running || q.Agent != "bob" {
			t.Errorf("asked %+v", q)
		}
		if s := strings.Join(r.Screen(), "\n"); !strings.Contains(s, prompt) || strings.Contains(s, "make 13") {
			t.Errorf("the transcript of %s:\n%s", prompt, s)
		}
		if _, err := r.Client().Answer(t.Context(), ask.Answer{ID: q.ID, By: "alice"}); err != nil {
			t.Fatal(err)
		}
	}
	r.Wait("the third", func() bool { return len(r.questions()) == 3 })
	if _, err := r.Client().Answer(t.Context(), ask.Answer{ID: r.questions()[1].ID, By: "carol"}); err == nil || err.Error() != "already answered by alice: Yes" {
		t.Errorf("answered again: %v", err)
	}
	if _, err := r.Client().Interrupt(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.Wait("the end", r.Has("turn_completed"))
	var told []string
	for _, e := range r.Events() {
		for _, kind := range []string{"confirm_required", `state_change new="thinking"`, "turn_completed"} {
			if strings.HasPrefix(e, kind) {
				told = append(told, e)
			}
		}
	}
	isThen := func(want ...string) bool {
		return slices.EqualFunc(told, want, strings.HasPrefix)
	}
	const asks, works = "confirm_required", "state_change"
	if !isThen(works, asks, works, asks, works, asks, works, "turn_completed") || len(r.questions()) != 3 {
		t.Errorf("%d asked; the log has\n%s", len(r.questions()), strings.Join(r.Events(), "\n"))
	}
}
