package appserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/internal/delivery/waytest"
	"github.com/agentteammail/atm/wire"
)

// A pretended thread begins a turn with each text of its queue, unless a turn of a person runs.
type pretended struct {
	mu       sync.Mutex
	next     string // what becomes of the next text: "", "refuse", "hang"
	isBusy   bool
	isHalted bool // its person has ended a turn
	isGone   bool // nobody shows the thread

	queue []Queued
	items []Item
}

// start starts it, and returns the way to its thread.
func (p *pretended) start(t *testing.T) Way {
	return Way{Socket: waytest.Serve(t, waytest.Messages(p.take)), Thread: "T"}
}

func (p *pretended) take(conn *websocket.Conn, data []byte) (goesOn bool) {
	var m struct {
		ID     *int64
		Method string
		Params withThread
	}
	if json.Unmarshal(data, &m) != nil || m.ID == nil {
		return true
	}
	result, problem := p.answer(m.Method, m.Params)
	if errors.Is(problem, errHang) {
		return false
	}
	answer := map[string]any{"id": *m.ID, "result": result}
	if problem != nil {
		answer = map[string]any{"id": *m.ID, "error": map[string]any{"code": -32600, "message": problem.Error()}}
	}
	encoded, _ := json.Marshal(answer)
	conn.Write(context.Background(), websocket.MessageText, encoded)
	return true
}

var errHang = errors.New("the server ends")

func (p *pretended) answer(method string, params withThread) (result any, problem error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	isText := method == "thread/queue/add" || method == "turn/steer"
	if isText && p.isGone {
		return nil, errors.New("thread not found")
	}
	next := p.next
	if isText {
		p.next = ""
	}
	if isText && next == "refuse" {
		return nil, errors.New("not now")
	}
	if isText && next == "hang" {
		defer func() { problem = errHang }()
	}
	switch method {
	case "thread/read":
		status := Status{Type: Idle}
		if p.isBusy {
			status.Type = Active
		}
		if p.isGone {
			status.Type = NotLoaded
		}
		return map[string]any{"thread": Thread{ID: params.Thread, Status: status}}, nil
	case "thread/queue/add":
		q := Queued{ID: fmt.Sprint("q", len(p.queue)+len(p.items)), ClientID: params.ClientID, Input: params.Input}
		p.queue = append(p.queue, q)
		p.begin()
		return map[string]any{"queuedSubmission": q}, nil
	case "thread/queue/start":
		if p.isBusy || len(p.queue) == 0 {
			return nil, errors.New("not now")
		}
		p.isHalted = false
		p.begin()
	case "thread/turns/list":
		status := "completed"
		if p.isBusy {
			status = InProgress
		}
		return map[string]any{"data": []Turn{{ID: "U", Status: status}}}, nil
	case "thread/queue/list":
		return map[string]any{"data": p.queue}, nil
	case "thread/queue/delete":
		before := len(p.queue)
		p.queue = slices.DeleteFunc(p.queue, func(q Queued) bool { return q.ID == params.Submission })
		return map[string]any{"deleted": len(p.queue) < before}, nil
	case "turn/steer":
		p.items = append(p.items, Item{Type: "userMessage", ClientID: params.ClientID, Content: params.Input})
		return map[string]any{"turnId": params.Expected}, nil
	case "thread/items/list":
		all := []any{}
		for _, i := range slices.Backward(p.items) {
			all = append(all, map[string]any{"item": i})
		}
		return map[string]any{"data": all}, nil
	}
	return map[string]any{}, nil
}

// begin begins a turn with each text in the queue.
func (p *pretended) begin() {
	if p.isBusy || p.isHalted {
		return
	}
	for _, q := range p.queue {
		p.items = append(p.items, Item{Type: "userMessage", ClientID: q.ClientID, Content: q.Input})
	}
	p.queue = nil
}

func (p *pretended) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.begin()
}

func (p *pretended) acted() (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range p.items {
		all = append(all, i.Content[0].Text)
	}
	return all
}

func TestWay(t *testing.T) {
	waytest.Test(t, func(t *testing.T) *waytest.Program {
		p := &pretended{}
		program := &waytest.Program{
			Way:    p.start(t),
			Acted:  p.acted,
			Shut:   func() { p.set(func() { p.isGone = true }) },
			Refuse: func() { p.set(func() { p.next = "refuse" }) },
			Hang:   func() { p.set(func() { p.next = "hang" }) },
		}
		program.Hold = func() (goOn func()) {
			p.set(func() { p.isBusy = true })
			return func() { p.set(func() { p.isBusy = false }) }
		}
		return program
	})
}

// What is urgent goes into the running turn, anything else behind it. Without a turn it begins one.
func TestUrgent(t *testing.T) {
	p := &pretended{isBusy: true}
	way := p.start(t)
	put := func(body string, isUrgent bool) {
		t.Helper()
		if err := way.Put(t.Context(), delivery.Text{ID: wire.NewID(), Body: body, IsUrgent: isUrgent}); err != nil {
			t.Error(err)
		}
	}
	put("can wait", false)
	put("now", true)
	if got := p.acted(); !slices.Equal(got, []string{"now"}) {
		t.Errorf("in the turn: %q", got)
	}
	p.set(func() { p.isBusy = false })
	put("later", true)
	if got := p.acted(); !slices.Equal(got, []string{"now", "can wait", "later"}) {
		t.Errorf("at the end: %q", got)
	}
}

// After its person has ended a turn, the queue of an idle thread waits.
func TestQueueThatWaits(t *testing.T) {
	p := &pretended{isHalted: true}
	way := p.start(t)
	if err := way.Put(t.Context(), delivery.Text{ID: wire.NewID(), Body: "go on"}); err != nil {
		t.Error(err)
	}
	if got := p.acted(); !slices.Equal(got, []string{"go on"}) {
		t.Errorf("it has acted on %q", got)
	}
}
