package wire

import "encoding/json"

// The vocabulary of vtcode's ACP client, which is older than the protocol of
// today and has other names: snake_case, tag "update_type". Times are strings
// that nobody looks into.

// ACPSessionState is where such a session is.
type ACPSessionState string

func (ACPSessionState) variants() []string {
	return []string{"created", "active", "awaiting_input", "completed", "cancelled", "failed"}
}

// ACPSession is a session with an agent.
type ACPSession struct {
	SessionID      string          `wire:"session_id"`
	State          ACPSessionState `wire:"state"`
	CreatedAt      string          `wire:"created_at"`
	LastActivityAt *string         `wire:"last_activity_at,omit"`
	Metadata       Members         `wire:"metadata,omit"`
	TurnCount      uint32          `wire:"turn_count,default"`
}

// SessionNewParams asks for a session.
type SessionNewParams struct {
	Metadata         Members           `wire:"metadata,omit"`
	Workspace        *WorkspaceContext `wire:"workspace,omit"`
	ModelPreferences *ModelPreferences `wire:"model_preferences,omit"`
}

// SessionNewResult is the answer.
type SessionNewResult struct {
	SessionID string          `wire:"session_id"`
	State     ACPSessionState `wire:"state,default=created"`
}

// SessionLoadParams asks for a session of before.
type SessionLoadParams struct {
	SessionID string `wire:"session_id"`
}

// SessionLoadResult is the answer.
type SessionLoadResult struct {
	Session ACPSession         `wire:"session"`
	History []ConversationTurn `wire:"history,omit"`
}

// SessionPromptParams begins a turn.
type SessionPromptParams struct {
	SessionID string          `wire:"session_id"`
	Content   []PromptContent `wire:"content"`
	Metadata  Members         `wire:"metadata,omit"`
}

// PromptContent is a part of a prompt. IsURL says that Data is an address and
// not base64.
type PromptContent struct {
	Kind     string  `wire:"type" kinds:"text image context"`
	Text     string  `wire:"text" on:"text"`
	Data     string  `wire:"data" on:"image"`
	MimeType string  `wire:"mime_type" on:"image"`
	IsURL    bool    `wire:"is_url,default" on:"image"`
	Path     string  `wire:"path" on:"context"`
	Content  string  `wire:"content" on:"context"`
	Language *string `wire:"language,omit" on:"context"`
}

// SessionPromptResult ends a turn.
type SessionPromptResult struct {
	TurnID    string           `wire:"turn_id"`
	Response  *string          `wire:"response,omit"`
	ToolCalls []ToolCallRecord `wire:"tool_calls,omit"`
	Status    TurnStatus       `wire:"status"`
}

// TurnStatus says how a turn ended, or that it waits.
type TurnStatus string

func (TurnStatus) variants() []string {
	return []string{"completed", "cancelled", "failed", "awaiting_input"}
}

// RequestPermissionParams asks whether a tool may run. It alone is camelCase.
type RequestPermissionParams struct {
	SessionID string             `wire:"sessionId"`
	ToolCall  ToolCallRecord     `wire:"toolCall"`
	Options   []PermissionOption `wire:"options"`
}

// PermissionOption is one of the answers.
type PermissionOption struct {
	ID          string  `wire:"id"`
	Label       string  `wire:"label"`
	Description *string `wire:"description,omit"`
}

// RequestPermissionResult is the answer that was chosen.
type RequestPermissionResult struct {
	Outcome  string `wire:"outcome" kinds:"selected cancelled"`
	OptionID string `wire:"option_id" on:"selected"`
}

// SessionCancelParams ends a turn: the current one when it names none.
type SessionCancelParams struct {
	SessionID string  `wire:"session_id"`
	TurnID    *string `wire:"turn_id,omit"`
}

// SessionUpdate is what the agent tells during a turn.
type SessionUpdate struct {
	Kind       string               `wire:"update_type" kinds:"message_delta tool_call_start tool_call_end turn_complete error server_request"`
	Delta      string               `wire:"delta" on:"message_delta"`
	ToolCall   ToolCallRecord       `wire:"tool_call" on:"tool_call_start"`
	ToolCallID string               `wire:"tool_call_id" on:"tool_call_end"`
	Result     json.RawMessage      `wire:"result" on:"tool_call_end"`
	Status     TurnStatus           `wire:"status" on:"turn_complete"`
	Code       string               `wire:"code" on:"error"`
	Message    string               `wire:"message" on:"error"`
	Request    ToolExecutionRequest `wire:"request" on:"server_request"`
}

// SessionUpdateNotification is an update with the turn that it is of beside it.
type SessionUpdateNotification struct {
	SessionID string        `wire:"session_id"`
	TurnID    string        `wire:"turn_id"`
	Update    SessionUpdate `wire:",flatten"`
}

// WorkspaceContext is where the agent works.
type WorkspaceContext struct {
	RootPath    string   `wire:"root_path"`
	Name        *string  `wire:"name,omit"`
	ActiveFiles []string `wire:"active_files,omit"`
}

// ModelPreferences is which model is wished for.
type ModelPreferences struct {
	ModelID     *string  `wire:"model_id,omit"`
	Temperature *float32 `wire:"temperature,omit"`
	MaxTokens   *uint32  `wire:"max_tokens,omit"`
}

// ToolCallRecord is one call of a tool. Result nil is not there yet.
type ToolCallRecord struct {
	ID        string          `wire:"id"`
	Name      string          `wire:"name"`
	Arguments json.RawMessage `wire:"arguments"`
	Result    json.RawMessage `wire:"result,omit"`
	Timestamp string          `wire:"timestamp"`
}

// ToolExecutionRequest asks the client to run a tool.
type ToolExecutionRequest struct {
	RequestID string         `wire:"request_id"`
	ToolCall  ToolCallRecord `wire:"tool_call"`
}

// ToolExecutionResult is the client's answer.
type ToolExecutionResult struct {
	RequestID  string          `wire:"request_id"`
	ToolCallID string          `wire:"tool_call_id"`
	Output     json.RawMessage `wire:"output"`
	Success    bool            `wire:"success"`
	Error      *string         `wire:"error,omit"`
}

// ServerRequestNotification is such a request as an event of its own.
type ServerRequestNotification struct {
	SessionID string               `wire:"session_id"`
	Request   ToolExecutionRequest `wire:"request"`
}

// ConversationTurn is one turn of a session's history.
type ConversationTurn struct {
	TurnID    string           `wire:"turn_id"`
	Prompt    []PromptContent  `wire:"prompt"`
	Response  *string          `wire:"response,omit"`
	ToolCalls []ToolCallRecord `wire:"tool_calls,omit"`
	Timestamp string           `wire:"timestamp"`
}
