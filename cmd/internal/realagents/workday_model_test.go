//go:build linux

package realagents

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"
)

// token is what names a copy of a message in all texts: a letter, a number and a letter.
var token = regexp.MustCompile(`\b[TPR]\d{5}z\b`)

// A listener knows what the model of one agent was told, and when the agent was at work.
type listener struct {
	mu      sync.Mutex
	heard   map[string]map[string]sight // by conversation, by token
	open    int                         // requests that are being answered
	changes []change
	sent    map[string]bool // short ids that atm send and reply printed to it
}

// A sight is how often a conversation holds a token, and how often under a line that says that it may be a repeat.
type sight struct{ times, marked int }

// A change is a moment from which on an agent does something else, as its model or the test knows it. what is a state, or
// "": nobody knows.
type change struct {
	at   time.Time
	what string
}

// printed finds the ids in what atm send prints to a program.
var printed = regexp.MustCompile(`\bsent ([0-9a-f]{6,}) to drv\b`)

// hear takes what one request says. The whole conversation is in each.
func (l *listener) hear(r *http.Request, said any) func(code int, answer string) {
	body, _ := said.(map[string]any)
	tools, _ := body["tools"].([]any)
	if len(tools) == 0 || !strings.HasSuffix(r.URL.Path, "/messages") && !strings.HasSuffix(r.URL.Path, "/completions") {
		return nil // what the program asks on its own account
	}
	var b strings.Builder
	messages, _ := body["messages"].([]any)
	for _, m := range messages {
		if m, _ := m.(map[string]any); m["role"] != "assistant" { // which may quote
			writeStrings(&b, m)
		}
	}
	text := b.String()
	at := token.FindAllStringIndex(text, -1)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range printed.FindAllStringSubmatch(text, -1) {
		l.sent[m[1]] = true
	}
	seen, last := map[string]sight{}, 0
	for _, p := range at {
		word := text[p[0]:p[1]]
		head := text[last:p[0]]
		s := seen[word]
		s.times++
		if strings.Contains(head[max(0, strings.LastIndex(head, "[atm ")):], "repeat") {
			s.marked++
		}
		seen[word], last = s, p[1]
	}
	if len(at) > 0 {
		key := conversation(r, body) + text[at[0][0]:at[0][1]]
		known := l.heard[key]
		if known == nil {
			known = map[string]sight{}
			l.heard[key] = known
		}
		for word, s := range seen {
			if s.times > known[word].times {
				known[word] = s
			}
		}
	}
	l.open++
	l.changed("busy")
	return l.answered
}

// conversation is what a program says itself of which conversation a request is.
func conversation(r *http.Request, body map[string]any) string {
	id := r.Header.Get("X-Session-Affinity") + r.Header.Get("X-Claude-Code-Session-Id")
	if meta, ok := body["metadata"].(map[string]any); ok {
		text, _ := json.Marshal(meta)
		id += string(text)
	}
	return id + " "
}

// answered takes what the model has said: text ends the turn, and a command that needs nobody's leave goes on with it.
func (l *listener) answered(code int, answer string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	isTool := strings.Contains(answer, "tool_use\"") || strings.Contains(answer, `"finish_reason":"tool_calls"`) || strings.Contains(answer, `"finish_reason": "tool_calls"`)
	isWhole := strings.Contains(answer, "message_stop") || strings.Contains(answer, "[DONE]")
	if l.open--; l.open > 0 {
		return
	}
	switch {
	case code == http.StatusTooManyRequests:
		l.changed("limited")
	case !isWhole: // hung up on
		l.changed("")
	case !isTool:
		l.changed("idle")
	case strings.Contains(answer, "touch ask"):
		l.changed("blocked")
	case strings.Contains(answer, "sleep "):
		l.changed("busy")
	default:
		l.changed("")
	}
}

// changed notes what the agent does now. The caller has the lock.
func (l *listener) changed(what string) {
	if n := len(l.changes); n == 0 || l.changes[n-1].what != what {
		l.changes = append(l.changes, change{time.Now(), what})
	}
}

// is says what the test has done to the agent.
func (l *listener) is(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changed(what)
}

// was is what the agent did at a time, if nothing changed for a while before and after it; "": that is not known.
func (l *listener) was(at time.Time, margin time.Duration) (what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.changes {
		switch {
		case c.at.Before(at.Add(-margin)):
			what = c.what
		case c.at.Before(at.Add(margin)):
			return ""
		}
	}
	return what
}

// got is how often the model was told a token.
func (l *listener) got(word string) (all sight) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, seen := range l.heard {
		all.times += seen[word].times
		all.marked += seen[word].marked
	}
	return all
}

// printedIDs are the messages that the agent was told it had sent.
func (l *listener) printedIDs() (ids []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.sent {
		ids = append(ids, id)
	}
	return ids
}
