package wire

import (
	"encoding/json"

	jsonv2 "github.com/go-json-experiment/json"
)

// The vocabulary of vtcode's ACP client, which is older than the protocol of
// today and has other names: snake_case, tag "update_type". Times are strings
// that nobody looks into; metadata is an object.
type (
	// ACPSessionState is created, active, awaiting_input, completed, cancelled
	// or failed.
	ACPSessionState string

	// TurnStatus is completed, cancelled, failed or awaiting_input.
	TurnStatus string

	// ACPSession is a session with an agent.
	ACPSession struct {
		SessionID      string          `json:"session_id"`
		State          ACPSessionState `json:"state"`
		CreatedAt      string          `json:"created_at"`
		LastActivityAt *string         `json:"last_activity_at,omitzero"`
		Metadata       json.RawMessage `json:"metadata,omitempty"`
		TurnCount      uint32          `json:"turn_count"`
	}

	// SessionNewParams asks for a session, SessionNewResult is the answer.
	SessionNewParams struct {
		Metadata         json.RawMessage   `json:"metadata,omitempty"`
		Workspace        *WorkspaceContext `json:"workspace,omitzero"`
		ModelPreferences *ModelPreferences `json:"model_preferences,omitzero"`
	}
	SessionNewResult struct {
		SessionID string          `json:"session_id"`
		State     ACPSessionState `json:"state"` // missing: created
	}
	// WorkspaceContext is where the agent works.
	WorkspaceContext struct {
		RootPath    string   `json:"root_path"`
		Name        *string  `json:"name,omitzero"`
		ActiveFiles []string `json:"active_files,omitempty"`
	}
	// ModelPreferences is which model is wished for.
	ModelPreferences struct {
		ModelID     *string         `json:"model_id,omitzero"`
		Temperature json.RawMessage `json:"temperature,omitzero"` // a number, as it was written
		MaxTokens   *uint32         `json:"max_tokens,omitzero"`
	}

	// SessionLoadParams asks for a session of before, SessionLoadResult is the
	// answer.
	SessionLoadParams struct {
		SessionID string `json:"session_id"`
	}
	SessionLoadResult struct {
		Session ACPSession         `json:"session"`
		History []ConversationTurn `json:"history,omitempty"`
	}
	// ConversationTurn is one turn of a session's history.
	ConversationTurn struct {
		TurnID    string           `json:"turn_id"`
		Prompt    []PromptContent  `json:"prompt"`
		Response  *string          `json:"response,omitzero"`
		ToolCalls []ToolCallRecord `json:"tool_calls,omitempty"`
		Timestamp string           `json:"timestamp"`
	}

	// SessionPromptParams begins a turn, SessionPromptResult ends it,
	// SessionCancelParams ends it early: the current one when it names none.
	SessionPromptParams struct {
		SessionID string          `json:"session_id"`
		Content   []PromptContent `json:"content"`
		Metadata  json.RawMessage `json:"metadata,omitempty"`
	}
	SessionPromptResult struct {
		TurnID    string           `json:"turn_id"`
		Response  *string          `json:"response,omitzero"`
		ToolCalls []ToolCallRecord `json:"tool_calls,omitempty"`
		Status    TurnStatus       `json:"status"`
	}
	SessionCancelParams struct {
		SessionID string  `json:"session_id"`
		TurnID    *string `json:"turn_id,omitzero"`
	}
	// PromptContent is a part of a prompt. IsURL says that Data is an address
	// and not base64.
	PromptContent struct {
		Kind     string  `json:"type"` // text, image, context
		Text     string  `json:"text"`
		Data     string  `json:"data"`
		MimeType string  `json:"mime_type"`
		IsURL    bool    `json:"is_url"`
		Path     string  `json:"path"`
		Content  string  `json:"content"`
		Language *string `json:"language,omitzero"`
	}

	// RequestPermissionParams asks whether a tool may run, and alone is
	// camelCase; RequestPermissionResult is the answer that was chosen.
	RequestPermissionParams struct {
		SessionID string             `json:"sessionId"`
		ToolCall  ToolCallRecord     `json:"toolCall"`
		Options   []PermissionOption `json:"options"`
	}
	PermissionOption struct {
		ID          string  `json:"id"`
		Label       string  `json:"label"`
		Description *string `json:"description,omitzero"`
	}
	RequestPermissionResult struct {
		Outcome  string `json:"outcome"` // selected, cancelled
		OptionID string `json:"option_id"`
	}

	// SessionUpdate is what the agent tells during a turn.
	SessionUpdate struct {
		Kind       string               `json:"update_type"`
		Delta      string               `json:"delta"`
		ToolCall   ToolCallRecord       `json:"tool_call"`
		ToolCallID string               `json:"tool_call_id"`
		Result     json.RawMessage      `json:"result"`
		Status     TurnStatus           `json:"status"`
		Code       string               `json:"code"`
		Message    string               `json:"message"`
		Request    ToolExecutionRequest `json:"request"`
	}
	// SessionUpdateNotification is an update with the turn that it is of beside
	// it.
	SessionUpdateNotification struct {
		SessionID, TurnID string
		Update            SessionUpdate
	}

	// ToolCallRecord is one call of a tool.
	ToolCallRecord struct {
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Result    json.RawMessage `json:"result,omitzero"` // nil: not there yet
		Timestamp string          `json:"timestamp"`
	}
	// ToolExecutionRequest asks the client to run a tool, ToolExecutionResult is
	// the client's answer.
	ToolExecutionRequest struct {
		RequestID string         `json:"request_id"`
		ToolCall  ToolCallRecord `json:"tool_call"`
	}
	ToolExecutionResult struct {
		RequestID  string          `json:"request_id"`
		ToolCallID string          `json:"tool_call_id"`
		Output     json.RawMessage `json:"output"`
		Success    bool            `json:"success"`
		Error      *string         `json:"error,omitzero"`
	}
	// ServerRequestNotification is such a request as an event of its own.
	ServerRequestNotification struct {
		SessionID string               `json:"session_id"`
		Request   ToolExecutionRequest `json:"request"`
	}
)

func (PromptContent) form() *group           { return &promptKinds }
func (RequestPermissionResult) form() *group { return &outcomeKinds }
func (SessionUpdate) form() *group           { return &acpKinds }
func (ToolCallRecord) form() *group          { return plainly(toolCall.fields...) }

func (RequestPermissionParams) form() *group {
	return plainly(field{"sessionId", must, text}, field{"toolCall", must, toolCall}, field{"options", must, array})
}

// UnmarshalJSON reads an answer.
func (r *SessionNewResult) UnmarshalJSON(data []byte) error {
	type plain SessionNewResult
	r.State = "created"
	return jsonv2.Unmarshal(data, (*plain)(r), lenient)
}

// MarshalJSON writes the notification as the client does.
func (n SessionUpdateNotification) MarshalJSON() ([]byte, error) {
	update, err := Marshal(n.Update)
	if err != nil {
		return nil, err
	}
	turn := Object{{Name: "session_id", Value: Quote(n.SessionID)}, {Name: "turn_id", Value: Quote(n.TurnID)}}
	return append(turn, members(update)...).MarshalJSON()
}

// UnmarshalJSON reads a notification.
func (n *SessionUpdateNotification) UnmarshalJSON(data []byte) error {
	o := members(data)
	if err := o.check(0, field{"session_id", must, text}, field{"turn_id", must, text}); err != nil {
		return err
	}
	n.SessionID, n.TurnID = o.Text("session_id"), o.Text("turn_id")
	return readRecord(data, &n.Update)
}
