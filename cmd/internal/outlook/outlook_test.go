package outlook

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/push"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/reducer/history"
	"github.com/agentteammail/atm/wire"
)

// newTeam makes a team of alice and others.
func newTeam(t *testing.T, others ...wire.Name) *teamdir.Team {
	t.Helper()
	return teamtest.NewTeam(t, teamtest.NewRoot(t, notices.Tell), append([]wire.Name{"alice"}, others...)...)
}

// A send and a trace say the same.
func TestOutlook(t *testing.T) {
	t.Parallel()
	now := time.Now()
	since, at := now.Add(-3*time.Minute), history.Event{Seq: 1, At: now.Add(-time.Hour)}
	run := presence.Member{Running: true, Inject: "body"}
	with := func(m presence.Member, state reducer.Word, more ...func(*presence.Member)) *presence.Member {
		m.Name, m.State = "bob", state
		for _, f := range more {
			f(&m)
		}
		return &m
	}
	gate := func(g control.Gate) func(*presence.Member) { return func(m *presence.Member) { m.Runner.Gate = g } }
	busy := func(m *presence.Member) { m.Since = &since }
	hooks := func(m *presence.Member) { m.Transport, m.PresenceAt = "hook", &since }
	pointer := func(m *presence.Member) { m.Inject = "pointer" }
	asking := func(m *presence.Member) { m.Detail = "may it run make?" }
	urgent, old := &wire.Message{Priority: "urgent"}, &wire.Message{ExpiresAt: since}
	tried := func(times int) mail {
		return mail{item: &wire.Item{TimesHandedOut: times}, delivery: &history.Delivery{Failed: at, FailedWhy: "no prompt"}}
	}
	for name, c := range map[string]struct {
		mail
		m    *presence.Member
		when When
		text string // "": not checked
		help string // a part; "": none at all
	}{
		"retired":            {m: with(run, ""), when: Unknown, text: "unknown"},
		"person":             {m: with(presence.Member{}, reducer.WordPerson), when: Read, text: "person", help: "until they read it"},
		"silent":             {m: with(run, reducer.WordIdle, func(m *presence.Member) { m.RunnerErr = control.ErrNotAnswering }), when: Never, text: "idle, but its runner does not answer", help: "`atm doctor`"},
		"off by wish":        {m: with(run, reducer.WordIdle, func(m *presence.Member) { m.Inject = "off" }), when: Read, text: "idle, but inject is off: not typed in", help: "atm read"},
		"shared":             {mail: mail{isShared: true}, m: with(presence.Member{}, reducer.WordUnknown), when: Read, text: "whoever takes it first gets it", help: "`atm take bob`"},
		"kept":               {mail: mail{hold: teamdir.Hold{Why: "sessions are off", Because: "team.toml"}}, m: with(run, reducer.WordIdle), when: Read, text: "kept: sessions are off (team.toml)", help: "atm read"},
		"its session rests":  {mail: mail{hold: teamdir.Hold{Why: "session 9f3a1c is paused", Paused: "9f3a1c00"}}, m: with(run, reducer.WordIdle), when: Read, text: "kept: session 9f3a1c is paused", help: "`atm session resume 3a1c00`"},
		"expired":            {mail: mail{message: old}, m: with(run, reducer.WordIdle), when: Read, text: "it has expired: not typed in", help: "atm read"},
		"blocked":            {m: with(run, reducer.WordBlocked, asking), when: Answer, text: "blocked: may it run make?", help: "`atm pending`"},
		"a shell asks":       {m: with(run, reducer.WordBlocked, func(m *presence.Member) { m.Questions = []ask.Question{{Dialog: "question"}} }), when: Answer, help: "`atm type bob"},
		"a person's dialog":  {m: with(run, reducer.WordBlocked, func(m *presence.Member) { m.WaitingOn = &reducer.Waiting{Dialog: "trust"} }), when: Answer, help: "at its terminal may answer: `atm attach bob`"},
		"a stranger's root":  {m: with(run, reducer.WordLimited, gate(control.GateStranger)), when: Never, text: "limited, but its root is not accepted: not typed in", help: "`atm init`"},
		"a moved root":       {m: with(run, reducer.WordIdle, gate(control.GateMoved)), when: Never, text: "idle, but its root was moved: not typed in", help: "`atm stop bob`"},
		"a strange program":  {m: with(run, reducer.WordUnknown, gate(control.GateUnknown)), when: Never, text: "unknown, but atm does not know its program: not typed in", help: "--driver"},
		"at its limit":       {m: with(run, reducer.WordLimited, gate(control.GateLimit)), when: Limit, text: "at its usage limit, which names no time: typed in after its next turn", help: "`atm type bob \"Go on.\" --enter`"},
		"its limit ends":     {m: with(run, reducer.WordLimited, func(m *presence.Member) { m.Until = &since }), when: Limit, text: "at its usage limit until " + letter.Stamp(since) + ": typed in after that", help: "`atm wait --idle bob`"},
		"a limit elsewhere":  {m: with(presence.Member{}, reducer.WordLimited, hooks), when: Limit, text: "at its usage limit: seen after that", help: "`atm wait --idle bob`"},
		"a draft":            {m: with(run, reducer.WordIdle, gate(control.GateDraft)), when: Prompt, text: "idle, but its prompt has a half-written line: typed in later", help: "`atm attach bob`, and send or clear it"},
		"a draft, busy":      {m: with(run, reducer.WordBusy, busy, gate(control.GateDraft)), when: Prompt, text: "busy 3m, but its prompt has a half-written line: typed in later", help: "`atm attach bob`, and send or clear it"},
		"a dialog":           {m: with(run, reducer.WordIdle, gate(control.GateDialog)), when: Answer, text: "idle, but a dialog is open: typed in later", help: "`atm pending`"},
		"not at its prompt":  {m: with(run, reducer.WordIdle, gate("no prompt")), when: Prompt, text: "idle, but it is not at its prompt: typed in later", help: "`atm screen bob`"},
		"a pointer":          {m: with(run, reducer.WordIdle, pointer), when: Now, text: "idle: told to run atm read now", help: "`atm screen bob`"},
		"idle":               {m: with(run, reducer.WordIdle), when: Now, text: "idle: typed in now", help: "`atm screen bob`"},
		"its screen lags":    {m: with(run, reducer.WordIdle, gate(control.GateBusy)), when: Now, text: "idle: typed in now", help: "`atm screen bob`"},
		"busy":               {m: with(run, reducer.WordBusy, busy), when: Idle, text: "busy 3m: typed in when idle", help: "`atm wait --idle bob`"},
		"urgent":             {mail: mail{message: urgent}, m: with(run, reducer.WordBusy), when: Now, text: "busy: interrupts it", help: "`atm wait --idle bob`"},
		"starting":           {m: with(run, reducer.WordStarting), when: Idle, text: "starting: typed in when idle", help: "`atm wait --idle bob`"},
		"off":                {mail: mail{again: "atm up bob"}, m: with(presence.Member{}, reducer.WordOff, func(m *presence.Member) { m.ReadAt = &since }), when: Run, text: "off; last read 3m ago", help: "`atm up bob`"},
		"unknown":            {m: with(presence.Member{}, reducer.WordUnknown), when: Read, text: "not read yet", help: "it must run atm read"},
		"hooks":              {m: with(presence.Member{}, reducer.WordIdle, hooks), when: Turn, text: "at its next turn; last seen 3m ago", help: "`atm status bob`"},
		"a shell":            {m: with(run, reducer.WordIdle, pointer, func(m *presence.Member) { m.Runner.Driver = "plain" }), when: Read, text: "idle: told to run atm read, and nothing acts on it", help: "`atm take --wait`"},
		"told":               {mail: mail{item: &wire.Item{}, delivery: &history.Delivery{IsOnlyAnnounced: true}}, m: with(run, reducer.WordIdle, pointer), when: Read, text: "told to run atm read, and has not yet", help: "`atm screen bob`"},
		"tried once":         {mail: tried(1), m: with(run, reducer.WordIdle), when: Idle, text: "typing it in failed 1h ago (no prompt)", help: "bob gets it with atm read"},
		"tried too often":    {mail: tried(control.MaxTries), m: with(run, reducer.WordIdle), when: Never, help: "`atm doctor --fix"},
		"given to its hooks": {mail: mail{item: &wire.Item{}, delivery: &history.Delivery{Announced: at}}, m: with(presence.Member{}, reducer.WordIdle, hooks), when: Turn, help: "`atm status bob`"},
		"given in vain":      {mail: mail{item: &wire.Item{TimesHandedOut: 2}, isVain: true, delivery: &history.Delivery{Announced: at}}, m: with(presence.Member{}, reducer.WordIdle, hooks), when: Read, text: "handed over twice, and nothing shows that it arrived", help: "bob gets it with atm read"},
		"taken, busy":        {mail: mail{push: push.Outcome{By: agents.ByPlugin}}, m: with(presence.Member{}, reducer.WordBusy), when: Turn, text: "busy: taken behind what it does"},
		"handed over":        {mail: mail{push: push.Outcome{By: "inbox socket"}}, m: with(presence.Member{}, reducer.WordIdle, hooks), when: Now, text: "idle: taken now"},
		"handed over, busy":  {mail: mail{push: push.Outcome{By: "plugin", IsIn: true, To: *with(presence.Member{}, reducer.WordBusy, busy)}}, m: with(run, reducer.WordIdle), when: Turn, text: "busy 3m: handed over behind what it does"},
		"its sub-agent asks": {mail: mail{push: push.Outcome{By: "inbox socket", IsIn: true, To: *with(presence.Member{}, reducer.WordBlocked, func(m *presence.Member) { m.AtPrompt = reducer.WordIdle })}}, m: with(run, reducer.WordIdle), when: Now, text: "idle: handed over now"},
	} {
		if c.to = c.m; c.message == nil {
			c.message = &wire.Message{}
		}
		got := c.outlook()
		if got.When != c.when || c.text != "" && got.Text != c.text || !strings.Contains(string(got.Help), c.help) || c.help == "" && got.Help != "" {
			t.Errorf("%s: %s %q %q", name, got.When, got.Text, got.Help)
		}
	}
}

// Of a member that is retired meanwhile nothing is known.
func TestOfUnknown(t *testing.T) {
	to := post.Recipient{Receipt: wire.Receipt{Address: wire.Address{Agent: "bob", Team: "main"}}}
	if got := Of(t.Context(), newTeam(t).Root(), to, &wire.Message{}); got.Text != "unknown" {
		t.Errorf("%+v", got)
	}
}

// The gate mentions a restore only for a retired member.
func TestGateOfMissing(t *testing.T) {
	team := newTeam(t, "bob", "carol")
	send := func(to wire.Name) *wire.Message {
		it, err := team.Box(to).Get(teamtest.Post(t, team, "alice", to, "hello"))
		teamtest.Must(t, err)
		return it.Message
	}
	toBob, toCarol := send("bob"), send("carol")
	_, err := team.Retire(t.Context(), "bob")
	teamtest.Must(t, err)
	teamtest.Must(t, os.RemoveAll(team.Box("carol").Path()))
	for m, want := range map[*wire.Message]string{
		toBob:   "bob@main is retired; its mail is kept: atm team restore bob --team main",
		toCarol: "carol@main has no mailbox here: atm team",
	} {
		if got := TraceOf(post.AnswersTo(t.Context(), team.Root(), m), team.Root(), m, m.To[0], nil); got.Gate.String() != want {
			t.Errorf("%+v", got)
		}
	}
}

// A runner may be faster than its sender: what the agent does because of the message is not what the message waits for.
func TestSentIsHandedOver(t *testing.T) {
	t.Parallel()
	team := newTeam(t, "bob")
	box := team.Box("bob")
	m := &wire.Message{ID: wire.NewID(), SentAt: time.Now()}
	sent := func(state reducer.Word) string {
		return Sent(team.Root(), &presence.Member{Name: "bob", Running: true, State: state, Inject: "body"}, post.Recipient{Receipt: wire.Receipt{Address: box.Address()}}, m).Text
	}
	if got := sent(reducer.WordBusy); got != "busy: typed in when idle" {
		t.Error(got)
	}
	if err := box.Log().Append(t.Context(), wire.Event{Kind: wire.EventInjecting, Source: "pty"}.With("id", string(m.ID))); err != nil {
		t.Fatal(err)
	}
	for _, state := range []reducer.Word{reducer.WordIdle, reducer.WordBusy, reducer.WordBlocked} {
		if got := sent(state); got != "idle: typed in now" {
			t.Errorf("%s: %s", state, got)
		}
	}
	to := post.Recipient{Receipt: wire.Receipt{Address: box.Address()}, Push: push.Outcome{By: agents.ByHook}} // which hands it over with the next turn
	busy := &presence.Member{Name: "bob", Running: true, State: reducer.WordBusy, Inject: "body"}
	if got := Sent(team.Root(), busy, to, m).Text; got != "idle: typed in now" {
		t.Error(got)
	}
	if m.Priority = "urgent"; sent(reducer.WordBusy) != "busy: interrupts it" {
		t.Error(sent(reducer.WordBusy))
	}
}

// Who waits for a busy recipient sees its place, and a trace says what comes first.
func TestBefore(t *testing.T) {
	t.Parallel()
	team := newTeam(t, "bob")
	box := team.Box("bob")
	first := teamtest.Post(t, team, "alice", "bob", "first")
	it, err := box.Get(teamtest.Post(t, team, "alice", "bob", "second"))
	teamtest.Must(t, err)
	teamtest.Post(t, team, "alice", "bob", "third")
	sent := func(state reducer.Word) string {
		return Sent(team.Root(), &presence.Member{Name: "bob", Running: true, State: state, Inject: "body"}, post.Recipient{Receipt: wire.Receipt{Address: box.Address()}}, it.Message).Text
	}
	if got := sent(reducer.WordBusy); got != "busy: typed in when idle; 1 before it" {
		t.Error(got)
	}
	if got := sent(reducer.WordIdle); got != "idle: typed in now" {
		t.Error(got)
	}
	teamtest.Must(t, box.Log().Append(t.Context(), wire.Event{Kind: wire.TurnStarted, Source: "hook"}.With("transport", "hook")))
	got := TraceOf(post.AnswersTo(t.Context(), team.Root(), it.Message), team.Root(), it.Message, it.To[0], func(*teamdir.Team, wire.Name) string { return "" })
	if !strings.Contains(got.Gate.String(), "1 before it ("+first.Short(6)+")") || len(got.Before) != 1 {
		t.Errorf("%+v", got)
	}
}
