package appserver

import (
	"context"
	"encoding/json"
	"fmt"
)

// An Event is what the server tells or asks.
type Event struct {
	Method  string
	Thread  string // "": it concerns none
	TurnID  string // "": it concerns none
	Request string // of a request: names it, as JSON; else ""

	params json.RawMessage
}

func newEvent(m message) Event {
	e := Event{Method: m.Method, Request: string(m.ID), params: m.Params}
	ids := read[struct {
		Thread string `json:"threadId"`
		Turn   string `json:"turnId"`
	}](e)
	e.Thread, e.TurnID = ids.Thread, ids.Turn
	return e
}

// read reads an event's parameters; a value of the wrong type is left out.
func read[T any](e Event) (params T) {
	if json.Unmarshal(e.params, &params) != nil {
		return *new(T)
	}
	return params
}

// Answer answers an event's Request.
func (c *Client) Answer(ctx context.Context, request string, result json.RawMessage) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := c.Err()
	if err == nil {
		err = c.write(ctx, struct {
			ID     json.RawMessage `json:"id"`
			Result json.RawMessage `json:"result"`
		}{json.RawMessage(request), result})
	}
	if err != nil {
		return fmt.Errorf("answer request %s: %w", request, err)
	}
	return nil
}
