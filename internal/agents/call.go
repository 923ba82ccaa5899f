package agents

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// A Call is one call of a program's hook: what it says, and what follows from it. A vendor's parser fills it in.
type Call struct {
	Vendor *Vendor
	In     wire.Object // null counts as absent, and a value that should be a string and is not as ""
	Raw    []byte      // the input's bytes

	Box       *maildir.Box
	State     func() (*reducer.State, error) // folds the agent's events, called at most once
	Dir       string                         // where a program that does not say is
	Arguments func() []string                // what the program was started with
	IsSecond  bool                           // another program is the agent: this one only begins and ends
	MayAsk    bool                           // a question may wait for an answer from elsewhere

	// TakesContextAtStop reports whether the program goes on with context where another one must be kept from stopping.
	TakesContextAtStop func() bool

	// What follows.
	Session       string // the program's; calls of other sessions prove nothing about this one
	Name          string // identifies the call in its session; a hook that is installed twice makes two calls of one name
	IsAmbiguous   bool   // a later call may have the same Name, so only calls at the same moment count as one
	ProvesReceipt bool   // the call comes only after the session has received the earlier answers, unless those were lost
	Record        string // a file in which the program keeps what its model has had, answers to hooks as well; "": there is none
	IsNewProgram  bool   // the program has restarted: earlier answers may be lost
	KeepsPushed   bool   // but not what was pushed, since a server has it
	EndsSession   bool   // the session ends, which proves nothing
	Forgets       string // what earlier calls whose Name starts so have answered may be lost; "": none
	Now           time.Time

	// IsPush says that the mail is not an answer to a hook, but is given to the program beside them. It may wait in the
	// program, so no other call proves that it was received than one that has it in its Shown.
	IsPush bool
	Shown  []string // short ids (wire.ID.Short) of messages that the program shows its model with this call

	Kind      string // the program's name of its event
	Turn      string // "": the program did not say
	Thread    string
	Mode      string // of its permissions, in the program's words; "": it does not say
	Subagent  string // the sub-agent that it comes from; "": the agent itself
	Transport string // how mail goes out: "hook", "notify" if it does not

	Events    []wire.Event // to append
	EndEvents []wire.Event // to append then, unless mail keeps the turn going

	Permission          *Permission // to wait for, when everything else is done; nil: none
	WillEdit, HasEdited []string    // the files that the tool is about to edit, and that it has edited

	BeginsSession bool
	BeginsTurn    bool // expired mail goes out too
	HasPlugin     bool // its plugin takes mail from the inbox
	ReplyAs       ReplyWay
	IsPeek        bool // whether there is mail is all that the answer says
	WantsPrimer   bool
	Refusal       string          // why the tool must not run; "": it may
	Warning       string          // of the answer, for the person too
	Text          strings.Builder // of the answer
	AnswersAlways bool            // also if there is no text

	last      *reducer.Session // see LastSession
	flushedBy time.Time        // until when records waits
}

// Limits of what is kept of a tool's texts, in bytes.
const MaxID, maxText, MaxPrompt, maxAnswer = 256, 512, 200, 64 << 10

// Identify sets the session, the event's kind and turn, and the call's name: kind and turn, and more words that tell it
// from the turn's other calls of that kind, where the tool gives any.
func (c *Call) Identify(session, kind, turn string, more ...string) {
	c.Session, c.Kind, c.Turn = wire.Clip(session, MaxID), wire.Clip(kind, MaxID), wire.Clip(turn, MaxID)
	words := append([]string{c.Kind, c.Turn}, more...)
	if c.IsAmbiguous = c.Turn == ""; c.IsAmbiguous {
		words = append(words, c.Hash(string(c.Raw)))
	}
	c.Name = wire.Clip(strings.Join(words, " "), 3*MaxID)
}

// Hash is the same for all hooks of a vendor.
func (c *Call) Hash(parts ...string) string {
	sum := sha256.Sum256([]byte(c.Vendor.Name + "\x00" + strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:12])
}

// LastSession returns the session as the log has it, or the agent's current one if the tool names none.
func (c *Call) LastSession() *reducer.Session {
	if c.last != nil {
		return c.last
	}
	c.last = &reducer.Session{Activity: reducer.Unknown}
	if s, err := c.State(); err == nil {
		c.last = cmp.Or(s.SessionOf(c.Session), c.last)
	}
	return c.last
}

// HasRunner reports whether atm runs the program, and so sees its screen.
func (c *Call) HasRunner() bool {
	runs, _ := c.Box.Store().Running(c.Box.Agent())
	return runs
}

// NewEvent makes an event of this call. The pairs are fields and their texts; empty ones are left out. key identifies
// the event together with session and kind: told once more it is the same event. "": each is an event of its own.
func (c *Call) NewEvent(kind, key string, pairs ...string) wire.Event {
	e := wire.Event{Source: wire.SourceHook, Kind: kind, Session: c.Session, TurnID: c.Turn}
	if key != "" {
		e.EventID = "hook/" + c.Hash(c.Session, kind, key)
	}
	// A sender of mail learns from the transport whether mail goes out with an answer.
	e = e.With("transport", cmp.Or(c.Transport, "hook"))
	for pair := range slices.Chunk(append([]string{"thread_id", c.Thread}, pairs...), 2) {
		if pair[1] != "" {
			e = e.With(pair[0], wire.Clip(pair[1], maxText))
		}
	}
	return e
}

func (c *Call) AddEvent(kind, key string, pairs ...string) {
	c.Events = append(c.Events, c.NewEvent(kind, key, pairs...))
}

func (c *Call) StartTurn(prompt string) {
	joins := ""
	if c.joins() {
		joins = c.LastSession().Turn.ID
	} else {
		c.InterruptOpen(c.Turn)
	}
	c.AddEvent(wire.TurnStarted, c.Turn, "prompt", wire.Clip(prompt, MaxPrompt), "joins", joins)
}

// joins reports whether the prompt is mail that the program has taken together with what has just begun the open turn: its
// model gets both at once.
func (c *Call) joins() bool {
	open := c.LastSession().Turn
	return len(c.Shown) > 0 && open.IsOpen() && open.ID != c.Turn && c.Now.Sub(open.Began).Abs() <= 2*time.Second
}

// InterruptOpen reports the open turn as interrupted, which no tool does itself at that time. It does not if the open
// turn is current, or if current is over. A turn that was not named yet is taken for current.
func (c *Call) InterruptOpen(current string) {
	last := c.LastSession()
	t := &last.Turn
	isCurrent := current != "" && (t.ID == current || t.IsGenerated)
	if t.IsOpen() && !isCurrent && !slices.Contains(last.EndedTurns, current) {
		c.Events = append(c.Events, c.TurnCompleted("interrupted", t.ID, ""))
	}
}

func (c *Call) TurnCompleted(status, turn, answer string) wire.Event {
	key := ""
	if turn != "" {
		key = c.endKey(turn) + " " + status
	}
	e := c.NewEvent(wire.TurnCompleted, key, "status", status)
	e.TurnID = turn
	if answer != "" {
		e = e.With("response", wire.Clip(answer, maxAnswer))
	}
	return e
}

func (c *Call) TurnIdle(turn string) wire.Event {
	e := c.NewEvent(wire.TurnIdle, c.endKey(turn))
	e.TurnID = turn
	return e
}

// EndTurn reports that a turn is over and the agent idle.
func (c *Call) EndTurn(status, turn, answer string) {
	c.Events = append(c.Events, c.TurnCompleted(status, turn, answer), c.TurnIdle(turn))
}

// endKey identifies the end of a turn: the turn, and how often it has been reopened.
func (c *Call) endKey(turn string) string {
	if t := c.LastSession().Turn; turn != "" && t.ID == turn && t.Reopened > 0 {
		return turn + " " + strconv.Itoa(t.Reopened)
	}
	return turn
}

func (c *Call) StartTool(tool, id string) {
	c.AddEvent(wire.ToolCallStart, id, "tool", tool, "tool_call_id", wire.Clip(id, MaxID))
}

func (c *Call) EndTool(tool, id, problem string) {
	c.AddEvent(wire.ToolCallEnd, id, "tool", tool, "tool_call_id", wire.Clip(id, MaxID), "error", problem)
}

func (c *Call) AskPermission(tool, prompt string, more ...string) {
	c.AddEvent(wire.ConfirmRequired, "", append([]string{"tool", tool, "prompt", prompt, "detail", c.Subagent}, more...)...)
}

func (c *Call) ChangeState(activity, detail string, more ...string) {
	c.AddEvent(wire.StateChange, "", append([]string{"previous", string(c.LastSession().Activity), "new", activity, "detail", detail}, more...)...)
}

// StartSession adds a session_start; its source is the session's, as "resume", and not the event's.
func (c *Call) StartSession(source string) {
	c.BeginsSession = true
	e := c.NewEvent(wire.SessionStart, "").With("source", wire.Clip(source, MaxID))
	c.Events = append(c.Events, e)
}

func (c *Call) EndSession(reason string) {
	c.EndsSession = true
	c.InterruptOpen("")
	c.AddEvent(wire.SessionEnd, "", "reason", reason) // Gemini CLI tells it three times
}

func (c *Call) IsFirstStop() bool {
	return string(c.In.Get("stop_hook_active")) == "false"
}

// Describe says in short what a tool call does, by its arguments: the command, the file or the like, else "".
func Describe(arguments json.RawMessage) string {
	var in map[string]any
	json.Unmarshal(arguments, &in)
	for _, key := range []string{"command", "file_path", "path", "notebook_path", "url", "query", "pattern", "prompt", "description"} {
		if words, ok := in[key].([]any); ok { // Codex may give a command as words
			return strings.TrimSpace(fmt.Sprintln(words...))
		}
		if text, ok := in[key].(string); ok && text != "" {
			return text
		}
	}
	return ""
}

// Again stands in a turn's id between what the program calls it and its number, where the program calls several turns so.
const Again = "#"

// NextTurnID returns the id for a turn that begins: the session and a number, which follows that of the session's last turn.
// If that was begun without a hook, it is that of the session's newest event, which is higher.
func (c *Call) NextTurnID() string {
	ses := c.LastSession()
	n := 0
	if number, isOurs := strings.CutPrefix(ses.Turn.ID, c.Session+Again); isOurs {
		n, _ = strconv.Atoi(number)
	} else if len(ses.EndedTurns) > 0 {
		n = int(ses.LastSeq)
	}
	return c.Session + Again + strconv.Itoa(n+1)
}

// OpenTurnID returns the id of the turn that is open; "": none is.
func (c *Call) OpenTurnID() string {
	if t := c.LastSession().Turn; t.IsOpen() {
		return t.ID
	}
	return ""
}

// ResumeThinking reports that the open turn goes on.
func (c *Call) ResumeThinking(more ...string) {
	if c.LastSession().Turn.IsOpen() {
		c.ChangeState("thinking", "", more...)
	}
}

// HandleSessionStart handles the beginning of a session, as all programs with such a hook tell it.
func (c *Call) HandleSessionStart() {
	source := c.In.Text("source")
	c.ReplyAs, c.WantsPrimer, c.IsNewProgram, c.BeginsTurn = AsContext, true, source != "compact", true
	if c.IsNewProgram {
		c.Turn = "" // the prompt may be /clear, to which the model says nothing
	}
	if source == "resume" { // a new program; after any other source the report may be a repeat, or late
		c.InterruptOpen("")
	}
	c.StartSession(source)
}

// frame is the beginning of a message in mail that a model gets.
var frame = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^\[atm ([0-9a-f]{6,32}) from `) })

// Shown returns the short ids of the messages in a prompt that has what these return.
func Shown(prompt string) (ids []string) {
	for _, match := range frame().FindAllStringSubmatch(prompt, -1) {
		ids = append(ids, match[1])
	}
	return ids
}

// IsMail reports whether a prompt is mail that a hook handed over.
func IsMail(prompt string) bool {
	return strings.HasPrefix(strings.TrimSpace(prompt), Prefix+" ")
}
