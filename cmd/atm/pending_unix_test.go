//go:build linux || darwin || freebsd

package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/agentteammail/atm/wire"
)

// happens appends an event to a member's log.
func (j *judged) happens(agent wire.Name, source, kind string, fields ...string) {
	j.t.Helper()
	e := wire.Event{Kind: kind, Source: source}
	for _, f := range fields {
		k, v, _ := strings.Cut(f, "=")
		if strings.HasPrefix(v, "[") || k == "artifact_count" {
			e = e.With(k, json.RawMessage(v))
		} else {
			e = e.With(k, v)
		}
	}
	if err := j.store.Box(agent).Log().Append(j.t.Context(), e); err != nil {
		j.t.Fatal(err)
	}
}

// Several members ask several things at once: each is listed with what it is
// about, and answered apart from the others, as far as it can be from here.
func TestPendingOfSeveral(t *testing.T) {
	t.Parallel()
	j := newJudged(t)
	j.atm(0, "team", "add", "carol", "dave")
	const draft, other = "6f1c2d3e-0000-4000-8000-00000000d001", "6f1c2d3e-0000-4000-8000-00000000d002"
	id := wire.NewID()
	j.happens("bob", "pty", "confirm_required", "id="+string(id), "tool=Bash", "input=rm -rf build", "prompt=Go on?", "dialog=permission",
		`options=[{"id":"1","label":"Yes"},{"id":"2","label":"Yes, and do not ask again"},{"id":"3","label":"No"}]`)
	j.happens("carol", "hook", "confirm_required", "tool=Edit", "prompt=main.go")
	j.happens("dave", "hook", "waiting_for_input", "prompt=Which branch?")
	j.happens("dave", "cli", "draft_ready", "draft_id="+draft, "summary=the parser", "artifact_count=2")

	var list struct {
		Pending []struct {
			ID, Agent, Kind, Prompt, Tool, Input, Dialog string
			Options                                      []struct{ ID, Label string }
			Running                                      bool
		}
	}
	if err := json.Unmarshal([]byte(j.atm(0, "pending", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, q := range list.Pending {
		got = append(got, strings.Join([]string{q.Agent, q.Kind, q.Tool, q.Input, q.Prompt, q.Dialog}, "|"))
		if q.Running != (q.Agent == "bob") || (q.Agent == "bob") != (len(q.Options) == 3) {
			t.Errorf("%+v", q)
		}
	}
	want := []string{"bob|permission|Bash|rm -rf build|Go on?|permission", "carol|permission|Edit||main.go|", "dave|prompt|||Which branch?|", "dave|draft|||the parser (2 artifacts)|"}
	if !slices.Equal(got, want) {
		t.Errorf("pending\n%q, want\n%q", got, want)
	}

	short := id.Short(6)
	for _, c := range []struct {
		exit       int
		args       string
		asks, says string
	}{
		{0, "approve bob", "answer " + short + ` option="" deny=false reason="" by=me`, "bob: answered"},
		{0, "approve " + short + " yes,_and", "answer " + short + ` option="2" deny=false reason="" by=me`, "bob: answered"},
		{0, "approve bob YES", "answer " + short + ` option="1" deny=false reason="" by=me`, "bob: answered"},
		{0, "reject bob no", "answer " + short + ` option="3" deny=true reason="" by=me`, "bob: answered"},
		{2, "approve bob y", "", `"y" is not one option; there are: 1 Yes, 2 Yes, and do not ask again, 3 No`},
		{2, "approve bob 4", "", `"4" is not one option; there are: 1 Yes`},
		{5, "approve carol", "", "carol runs under no runner, only its own terminal can answer"},
		{5, "reject carol --reason later", "", "carol runs under no runner, only its own terminal can answer"},
		{2, "approve dave", "", `"dave" means 2 open questions`},
		{3, "approve alice", "", "alice: no open question"},
		{0, "approve " + draft, "", "dave: approved draft"},
		{5, "approve " + draft, "", ""},
		{5, "approve dave", "", "dave runs under no runner"},
	} {
		var words []string
		for _, w := range strings.Fields(c.args) {
			words = append(words, strings.ReplaceAll(w, "_", " "))
		}
		exit := c.exit
		if strings.Contains(c.args, draft) && exit == 5 {
			exit = 3 // it has its answer, and asks nothing any more
		}
		if got := j.atm(exit, append(words, "--as", "me")...); !strings.Contains(got, c.says) {
			t.Errorf("%s says %q, not %q", c.args, got, c.says)
		}
		if got := j.heard(); got != c.asks {
			t.Errorf("%s asks for %q, not %q", c.args, got, c.asks)
		}
	}

	// A draft beside a permission: the name alone means two things, an id one.
	j.happens("bob", "pty", "draft_ready", "draft_id="+other, "summary=the tests", "artifact_count=1")
	if got := j.atm(2, "approve", "bob", "--as", "me"); !strings.Contains(got, `"bob" means 2 open questions`) || !strings.Contains(got, short) {
		t.Error(got)
	}
	j.atm(0, "reject", other, "--reason", "too few", "--as", "me")
	j.atm(0, "approve", "bob", "--as", "me")
	j.heard()

	// Whether a directory is trusted is nobody's to answer from here.
	j.happens("bob", "pty", "confirm_required", "id="+string(wire.NewID()), "prompt=Do you trust the files in this folder?", "input=/srv/repo", "dialog=trust")
	text := j.atm(0, "pending")
	if !strings.Contains(text, "  bob  prompt  ") || !strings.Contains(text, "/srv/repo: Do you trust") || !strings.Contains(text, "only a person at its terminal can answer: atm attach bob") {
		t.Error(text)
	}
	if got := j.atm(0, "pending", "--json"); !strings.Contains(got, `"kind":"prompt","prompt":"Do you trust the files in this folder?","tool":"","input":"/srv/repo","dialog":"trust"`) {
		t.Error(got)
	}
	if got := j.atm(5, "approve", "bob", "--as", "me"); !strings.Contains(got, "hint: atm attach bob") {
		t.Error(got)
	}
	if got := j.heard(); got != "" {
		t.Error(got)
	}
}
