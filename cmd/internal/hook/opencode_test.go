package hook

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

type pushAnswer struct {
	Watch     []string
	Waiting   bool
	Arguments []string
	Text      string
}

// asksForMail calls the hook as the plugin does that asks for mail.
func asksForMail(t *testing.T, bob *member, session string, isNew bool, now time.Time) (a pushAnswer) {
	t.Helper()
	out, _ := call1(t, OpenCode, bob, fmt.Sprintf(`{"type":"atm.mail","pushes":true,"isNew":%v,"properties":{"sessionID":%q}}`, isNew, session), now)
	if err := json.Unmarshal([]byte(out), &a); err != nil || strings.Count(out, "\n") != 1 {
		t.Fatalf("%q: %v", out, err)
	}
	return a
}

// shows calls the hook as the plugin does that sees a text go to the model.
func shows(t *testing.T, bob *member, session, text string, now time.Time) {
	t.Helper()
	in, err := json.Marshal(map[string]any{"type": "atm.shown", "pushes": true, "properties": map[string]string{"sessionID": session}, "text": text})
	must(t, err)
	if out, _ := call1(t, OpenCode, bob, string(in), now); out != "{}\n" {
		t.Error(out)
	}
}

// What the plugin pushes is unread until the plugin reports that the model gets it; what the agent does meanwhile proves
// nothing.
func TestPluginPushesMail(t *testing.T) {
	t.Parallel()
	bob, now := team(t), time.Now()
	if a := asksForMail(t, bob, "s1", true, now); a.Text != "" || a.Waiting || len(a.Watch) != 2 || !slices.Contains(a.Watch, bob.Path()+"/inbox/new") {
		t.Errorf("without mail: %+v", a)
	}
	id := mail(t, bob, "rebase, please")
	pushed := asksForMail(t, bob, "s1", false, now)
	if want := "[atm " + id.Short(6) + " from alice, now] answer: atm reply " + id.Short(6) + " \"…\"\n  rebase, please\n" + letter.NotTyped + "\n[/atm]\n"; pushed.Text != want {
		t.Errorf("%+v", pushed)
	}
	busy := `{"type":"session.status","pushes":true,"properties":{"sessionID":"s1","status":{"type":"busy"}}}`
	call1(t, OpenCode, bob, busy, now.Add(time.Minute))
	if again := asksForMail(t, bob, "s1", false, now.Add(2*time.Minute)); again.Text != "" || where(t, bob, id) != wire.Unread {
		t.Errorf("again: %+v, and it is %s", again, where(t, bob, id))
	}
	shows(t, bob, "s2", pushed.Text, now)
	if where(t, bob, id) != wire.Unread {
		t.Error("another session read it")
	}
	shows(t, bob, "s1", pushed.Text, now.Add(3*time.Minute))
	if where(t, bob, id) != wire.Done {
		t.Error("it is still unread")
	}
	if got := state(t, bob).Session().Turn; got.Transport != "hook" {
		t.Errorf("the transport is %q", got.Transport)
	}
}

// A look before there is a session claims nothing.
func TestPluginLooksForMail(t *testing.T) {
	t.Parallel()
	bob, now := team(t), time.Now()
	if a := asksForMail(t, bob, "", true, now); a.Waiting {
		t.Errorf("without mail: %+v", a)
	}
	mail(t, bob, "rebase, please")
	for range 3 {
		if a := asksForMail(t, bob, "", true, now); !a.Waiting || a.Text != "" {
			t.Errorf("with mail: %+v", a)
		}
	}
	if a := asksForMail(t, bob, "s1", true, now); !strings.HasPrefix(a.Text, "[atm ") {
		t.Errorf("with a session: %+v", a)
	}
}

// What a session did not take, and what a program had taken that was killed, is offered once more, marked.
func TestPluginFails(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(t *testing.T, bob *member, now time.Time) (isNew bool){
		"refused": func(t *testing.T, bob *member, now time.Time) bool {
			call1(t, OpenCode, bob, `{"type":"atm.refused","pushes":true,"properties":{"sessionID":"s1"}}`, now)
			return false
		},
		"killed": func(*testing.T, *member, time.Time) bool { return true },
	} {
		t.Run(name, func(t *testing.T) {
			bob, now := team(t), time.Now()
			mail(t, bob, "rebase, please")
			asksForMail(t, bob, "s1", true, now)
			now = now.Add(time.Minute)
			again := asksForMail(t, bob, "s1", fail(t, bob, now), now)
			if !strings.Contains(again.Text, ", may be a repeat] ") || !strings.Contains(again.Text, "\n  rebase, please\n") {
				t.Errorf("%+v", again)
			}
		})
	}
}

// A program that is not the agent has nothing to watch. One whose runner types pointers gets no mail.
func TestPluginThatPushesNothing(t *testing.T) {
	t.Parallel()
	for want, isSecond := range map[string]bool{"{}\n": true, `{"watch":[`: false} {
		bob := team(t)
		underRunner(t, bob)
		mail(t, bob, "rebase, please")
		var out strings.Builder
		c := called(bob, OpenCode, &out, io.Discard)
		c.IsSecond = isSecond
		_, err := c.handle(ctx, []byte(`{"type":"atm.mail","properties":{"sessionID":"s1"}}`))
		must(t, err)
		if got := out.String(); !strings.HasPrefix(got, want) || strings.Contains(got, "rebase") {
			t.Errorf("second %v: %s", isSecond, got)
		}
	}
}

// A turn that the screen has begun because a hook was late does not take the next ones with it.
func TestTurnOfTheScreen(t *testing.T) {
	t.Parallel()
	for tool, in := range map[string][2]string{
		OpenCode: {`{"type":"session.status","properties":{"sessionID":"s1","status":{"type":"busy"}}}`, `{"type":"session.idle","properties":{"sessionID":"s1"}}`},
		Gemini: {
			`{"session_id":"s1","hook_event_name":"BeforeAgent","prompt":"x","timestamp":"TIME"}`,
			`{"session_id":"s1","hook_event_name":"AfterAgent","prompt_response":"done","stop_hook_active":false,"timestamp":"TIME"}`,
		},
	} {
		bob, now := team(t), time.Now()
		call := func(in string) {
			t.Helper()
			now = now.Add(3 * time.Second)
			call1(t, tool, bob, strings.ReplaceAll(in, "TIME", now.Format(time.RFC3339Nano)), now)
		}
		call(in[0])
		call(in[1])
		must(t, bob.Log().Append(ctx, wire.Event{Source: "screen", Kind: "state_change"}.With("previous", "idle").With("new", "thinking")))
		call(in[1])
		for range 3 {
			call(in[0])
			if s := state(t, bob).Session(); !s.Turn.IsOpen() {
				t.Errorf("%s: the turn has not begun: %v", tool, toldAll(events(t, bob)))
			}
			call(in[1])
		}
	}
}

// Beside a session that ends, one of another program goes on.
func TestOtherSessionGoesOn(t *testing.T) {
	t.Parallel()
	bob := team(t)
	for _, c := range []struct {
		pid int
		in  string
	}{
		{os.Getppid(), `{"session_id":"s1","hook_event_name":"SessionStart","source":"startup"}`},
		{os.Getpid(), `{"session_id":"s2","hook_event_name":"SessionStart","source":"startup"}`},
		{os.Getpid(), `{"session_id":"s2","hook_event_name":"SessionEnd","reason":"other"}`},
	} {
		call := called(bob, Claude, io.Discard, io.Discard)
		call.program = func() programs.Program { return running(t, c.pid) }
		_, err := call.handle(ctx, []byte(c.in))
		must(t, errors.Join(err, call.err))
	}
	if s := state(t, bob).Session(); s.ID != "s1" || s.Word() != reducer.WordIdle {
		t.Errorf("%s is %s", s.ID, s.Word())
	}
}
