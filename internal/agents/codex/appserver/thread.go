package appserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// States of a thread.
const (
	NotLoaded = "notLoaded"
	Idle      = "idle"
	Active    = "active" // a turn runs
	Failed    = "systemError"
)

// ErrNotLoaded says that the server does not have a thread in memory: no program shows it any more, or its program has a
// server of its own.
var ErrNotLoaded = errors.New("codex's server does not have its conversation")

// A Status says what a thread does.
type Status struct {
	Type  string   `json:"type"`
	Flags []string `json:"activeFlags"` // of Active: see Asks
}

// Asks reports whether the thread waits for an answer: to a request for an approval, or to a question.
func (s Status) Asks() (approval, question bool) {
	return slices.Contains(s.Flags, "waitingOnApproval"), slices.Contains(s.Flags, "waitingOnUserInput")
}

// A Thread is a conversation.
type Thread struct {
	ID        string `json:"id"`
	Dir       string `json:"cwd"`
	Version   string `json:"cliVersion"`
	Parent    string `json:"parentThreadId"` // it is a sub-agent of that thread
	Ephemeral bool   `json:"ephemeral"`      // it is the server's own, such as one that thinks of a title
	Status    Status `json:"status"`
}

// A Turn is what an agent does upon one message.
type Turn struct {
	ID     string     `json:"id"`
	Status string     `json:"status"` // InProgress, "completed", "interrupted", TurnFailed
	Error  *TurnError `json:"error"`
}

// States of a turn.
const (
	InProgress = "inProgress"
	TurnFailed = "failed"
)

// A TurnError is why a turn failed.
type TurnError struct {
	Message string `json:"message"`
}

// An Item is a part of a turn: a message, a command and the like.
type Item struct {
	ID       string  `json:"id"`
	Type     string  `json:"type"`     // "userMessage", "agentMessage", "commandExecution", …
	ClientID string  `json:"clientId"` // of a user's message: what QueueAdd and the like were given
	Text     string  `json:"text"`     // of an agent's message
	Command  string  `json:"command"`  // of a command
	Content  []Input `json:"content"`  // of a user's message
}

// An Input is a part of a message.
type Input struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func (in *Input) UnmarshalJSON(data []byte) error {
	// The content of other items is of another kind.
	type input Input
	if json.Unmarshal(data, (*input)(in)) != nil {
		*in = Input{}
	}
	return nil
}

func text(s string) []Input { return []Input{{Type: "text", Text: s}} }

// Queued is a message that waits for the end of a turn.
type Queued struct {
	ID       string  `json:"id"`
	ClientID string  `json:"clientUserMessageId"`
	Input    []Input `json:"input"`
}

// withThread are the parameters of most requests; empty ones are left out.
type withThread struct {
	Thread     string  `json:"threadId,omitempty"`
	Expected   string  `json:"expectedTurnId,omitempty"`
	Submission string  `json:"queuedSubmissionId,omitempty"`
	ClientID   string  `json:"clientUserMessageId,omitempty"`
	Input      []Input `json:"input,omitempty"`
	NoTurns    bool    `json:"excludeTurns,omitempty"`
	Cursor     string  `json:"cursor,omitempty"`
	Limit      int     `json:"limit,omitempty"`
	Direction  string  `json:"sortDirection,omitempty"`
	ItemsView  string  `json:"itemsView,omitempty"`
}

// QueueAdd has a message begin a turn: at once, or when the running one is over. id names it in QueueList, and is the
// ClientID of its Item when the agent gets it. The server takes the same id twice.
func (c *Client) QueueAdd(ctx context.Context, thread, id, message string) (Queued, error) {
	result, err := get[struct {
		Submission Queued `json:"queuedSubmission"`
	}](ctx, c, "thread/queue/add", thread, withThread{Thread: thread, ClientID: id, Input: text(message)})
	if err == nil && result.Submission.ID == "" { // it could not be taken back
		err = fmt.Errorf("thread/queue/add: %w", errOther)
	}
	return result.Submission, err
}

// QueueList returns what waits.
func (c *Client) QueueList(ctx context.Context, thread string) (all []Queued, err error) {
	return list[Queued](ctx, c, "thread/queue/list", maxPages, withThread{Thread: thread})
}

// QueueDelete takes a message back that waits. It reports false if it waits no more. submission is its Queued.ID.
func (c *Client) QueueDelete(ctx context.Context, thread, submission string) (deleted bool, err error) {
	result, err := get[struct {
		Deleted bool `json:"deleted"`
	}](ctx, c, "thread/queue/delete", thread, withThread{Thread: thread, Submission: submission})
	return result.Deleted, err
}

// Steer puts a message into a running turn, behind the running tool's result. It is refused if another turn runs, or none.
func (c *Client) Steer(ctx context.Context, thread, turn, id, message string) error {
	_, err := get[struct{}](ctx, c, "turn/steer", thread, withThread{Thread: thread, Expected: turn, ClientID: id, Input: text(message)})
	return err
}

// QueueStart has the first message of the queue begin a turn. It is refused while a turn runs, and without a message. A queue
// goes on by itself, but not after its person has ended a turn.
func (c *Client) QueueStart(ctx context.Context, thread string) error {
	_, err := get[struct{}](ctx, c, "thread/queue/start", thread, withThread{Thread: thread})
	return err
}

// Loaded returns the ids of the threads that the server has in memory. The terminal of one may be gone for a minute.
func (c *Client) Loaded(ctx context.Context) ([]string, error) {
	return list[string](ctx, c, "thread/loaded/list", maxPages, withThread{})
}

// Read returns a thread, loaded or not.
func (c *Client) Read(ctx context.Context, thread string) (Thread, error) {
	result, err := get[struct {
		Thread Thread `json:"thread"`
	}](ctx, c, "thread/read", thread, withThread{Thread: thread})
	return result.Thread, err
}

// Resume has Events tell what happens in a thread, and of what it asks already, until the connection ends. It loads a thread
// that is not loaded, and is refused before the thread's first message.
func (c *Client) Resume(ctx context.Context, thread string) (Thread, error) {
	result, err := get[struct {
		Thread Thread `json:"thread"`
	}](ctx, c, "thread/resume", thread, withThread{Thread: thread, NoTurns: true})
	return result.Thread, err
}

// Turns returns a thread's last turns, the newest first.
func (c *Client) Turns(ctx context.Context, thread string, limit int) ([]Turn, error) {
	return list[Turn](ctx, c, "thread/turns/list", 1, withThread{Thread: thread, Limit: limit, Direction: "desc", ItemsView: "notLoaded"})
}

// Items returns a thread's last items, the newest first.
func (c *Client) Items(ctx context.Context, thread string, limit int) (items []Item, err error) {
	entries, err := list[struct {
		Item Item `json:"item"`
	}](ctx, c, "thread/items/list", 1, withThread{Thread: thread, Limit: limit, Direction: "desc"})
	for _, e := range entries {
		items = append(items, e.Item)
	}
	return items, err
}

// maxPages is how many pages of a list are read.
const maxPages = 20

func list[T any](ctx context.Context, c *Client, method string, pages int, params withThread) (all []T, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for range pages {
		page, err := get[struct {
			Data []T    `json:"data"`
			Next string `json:"nextCursor"`
		}](ctx, c, method, params.Thread, params)
		if err != nil {
			return nil, err
		}
		if all = append(all, page.Data...); page.Next == "" {
			break
		}
		params.Cursor = page.Next
	}
	return all, nil
}
