package foreign

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/agentteammail/atm/wire"
)

// The older Agent Client Protocol, as vtcode's client has it. Its times are strings that nobody parses.
var (
	acpState   = oneOf("created", "active", "awaiting_input", "completed", "cancelled", "failed")
	acpTurnEnd = oneOf("completed", "cancelled", "failed", "awaiting_input")

	toolCallRecord = object(func() members {
		return members{required("id", text), required("name", text), required("arguments", anything), optional("result", anything),
			required("timestamp", text)}
	})
	toolExecutionRequest = object(func() members { return members{required("request_id", text), required("tool_call", toolCallRecord)} })

	bareUpdate                = tagged("update_type", acpUpdates)
	sessionUpdate             = taggedAll("update_type", acpUpdates, func() members { return members{optional("session_id", text), optional("turn_id", text)} })
	sessionUpdateNotification = taggedAll("update_type", acpUpdates, func() members { return members{required("session_id", text), required("turn_id", text)} })

	acpSession = object(func() members {
		return members{required("session_id", text), required("state", acpState), required("created_at", text),
			optional("last_activity_at", text), unlessEmpty("metadata", anyObject), defaulted("turn_count", uint32s, "0")}
	})
	workspaceContext = inner(required("root_path", text), optional("name", text), unlessEmpty("active_files", list(text)))
	modelPreferences = inner(optional("model_id", text), optional("temperature", number), optional("max_tokens", uint32s))
	sessionNewParams = object(func() members {
		return members{unlessEmpty("metadata", anyObject), optional("workspace", workspaceContext), optional("model_preferences", modelPreferences)}
	})
	sessionNewResult = object(func() members {
		return members{required("session_id", text), defaulted("state", acpState, `"created"`)}
	})
	sessionLoadParams = object(func() members { return members{required("session_id", text)} })
	sessionLoadResult = object(func() members {
		return members{required("session", acpSession), unlessEmpty("history", list(conversationTurn))}
	})
	conversationTurn = object(func() members {
		return members{required("turn_id", text), required("prompt", list(promptContent)), optional("response", text),
			unlessEmpty("tool_calls", list(toolCallRecord)), required("timestamp", text)}
	})
	promptContent = tagged("type", func() kinds {
		return kinds{
			"text":    {required("text", text)},
			"image":   {required("data", text), required("mime_type", text), defaulted("is_url", boolean, "false")},
			"context": {required("path", text), required("content", text), optional("language", text)},
		}
	})
	sessionPromptParams = object(func() members {
		return members{required("session_id", text), required("content", list(promptContent)), unlessEmpty("metadata", anyObject)}
	})
	sessionPromptResult = object(func() members {
		return members{required("turn_id", text), optional("response", text), unlessEmpty("tool_calls", list(toolCallRecord)),
			required("status", acpTurnEnd)}
	})
	sessionCancelParams = object(func() members { return members{required("session_id", text), optional("turn_id", text)} })
	permissionOption    = object(func() members {
		return members{required("id", text), required("label", text), optional("description", text)}
	})
	permissionParams = object(func() members {
		return members{required("sessionId", text), required("toolCall", toolCallRecord), required("options", list(permissionOption))}
	})
	permissionResult    = tagged("outcome", func() kinds { return kinds{"selected": {required("option_id", text)}, "cancelled": {}} })
	toolExecutionResult = object(func() members {
		return members{required("request_id", text), required("tool_call_id", text), required("output", anything),
			required("success", boolean), optional("error", text)}
	})
	serverRequest = object(func() members {
		return members{required("session_id", text), required("request", toolExecutionRequest)}
	})

	// Its calls and responses, in JSON-RPC.
	olderCall = tagged("method", func() kinds {
		return kinds{
			"session/new":     {required("params", sessionNewParams)},
			"session/load":    {required("params", sessionLoadParams)},
			"session/prompt":  {required("params", sessionPromptParams)},
			"session/cancel":  {required("params", sessionCancelParams)},
			"session/update":  {required("params", sessionUpdateNotification)},
			"server/request":  {required("params", serverRequest)},
			"client/response": {required("params", toolExecutionResult)},
		}
	})
	olderResponse = object(func() members {
		return members{required("result", inner(optional("session_id", text), optional("state", acpState), optional("session", acpSession),
			unlessEmpty("history", list(conversationTurn)), optional("turn_id", text), optional("response", text),
			unlessEmpty("tool_calls", list(toolCallRecord)), optional("status", acpTurnEnd)))}
	})
)

func acpUpdates() kinds {
	return kinds{
		"message_delta":   {required("delta", text)},
		"tool_call_start": {required("tool_call", toolCallRecord)},
		"tool_call_end":   {required("tool_call_id", text), required("result", anything)},
		"turn_complete":   {required("status", acpTurnEnd)},
		"error":           {required("code", text), required("message", text)},
		"server_request":  {required("request", toolExecutionRequest)},
	}
}

// The current Agent Client Protocol grows: a kind may have any member, and only the types of these are checked, in an
// update and in what is around it.
var (
	currentUpdate = tagged("sessionUpdate", func() kinds {
		return kinds{
			"user_message_chunk": {}, "agent_message_chunk": {}, "agent_thought_chunk": {}, "tool_call": {}, "tool_call_update": {}, "plan": {},
			"usage_update": {}, "available_commands_update": {}, "current_mode_update": {}, "config_option_update": {}, "session_info_update": {},
		}
	})
	currentParams = object(func() members { return append(currentFields(), optional("update", inner(currentFields()...))) })
	currentCall   = object(func() members { return append(currentParams.fields(), optional("params", currentParams)) })
)

func currentFields() members {
	return members{optional("method", text), optional("sessionUpdate", text), optional("sessionId", text),
		optional("toolCallId", text), optional("title", text), optional("status", text), optional("kind", text),
		optional("messageId", text), optional("currentModeId", text), optional("entries", anyArray),
		optional("availableCommands", anyArray), optional("locations", anyArray), optional("toolCall", anyObject),
		optional("options", anyArray)}
}

// The types of vtcode's client (vtcode-acp-client, session.rs), under its names.
type (
	// AcpSessionState is vtcode's SessionState: created, active, awaiting_input, completed, cancelled or failed.
	AcpSessionState string

	// AcpTurnStatus is vtcode's TurnStatus: completed, cancelled, failed or awaiting_input.
	AcpTurnStatus string

	// AcpSession is a session as vtcode's client has it. Begin with NewAcpSession.
	AcpSession struct {
		SessionID      string          `json:"session_id"`
		State          AcpSessionState `json:"state"`
		CreatedAt      string          `json:"created_at"`
		LastActivityAt *string         `json:"last_activity_at"`
		Metadata       json.RawMessage `json:"metadata,omitzero"` // an object
		TurnCount      uint32          `json:"turn_count"`
	}

	// SessionNewParams are what a session is made with.
	SessionNewParams struct {
		Metadata         json.RawMessage   `json:"metadata,omitzero"` // an object
		Workspace        *WorkspaceContext `json:"workspace"`
		ModelPreferences *ModelPreferences `json:"model_preferences"`
	}

	// WorkspaceContext is where a session works.
	WorkspaceContext struct {
		RootPath    string   `json:"root_path"`
		Name        *string  `json:"name,omitempty"`
		ActiveFiles []string `json:"active_files,omitempty"`
	}

	// ModelPreferences say which model a session wants, and how.
	ModelPreferences struct {
		ModelID     *string  `json:"model_id,omitempty"`
		Temperature *float64 `json:"temperature,omitempty"`
		MaxTokens   *uint32  `json:"max_tokens,omitempty"`
	}

	// SessionNewResult is the session that was made. Read without a state, it is created.
	SessionNewResult struct {
		SessionID string          `json:"session_id"`
		State     AcpSessionState `json:"state"`
	}

	// SessionLoadParams name the session to load.
	SessionLoadParams struct {
		SessionID string `json:"session_id"`
	}

	// SessionLoadResult is the session that was loaded, with its turns if they are known.
	SessionLoadResult struct {
		Session AcpSession         `json:"session"`
		History []ConversationTurn `json:"history"`
	}

	// ConversationTurn is a prompt and what the agent did then.
	ConversationTurn struct {
		TurnID    string           `json:"turn_id"`
		Prompt    []PromptContent  `json:"prompt"`
		Response  *string          `json:"response"`
		ToolCalls []ToolCallRecord `json:"tool_calls"`
		Timestamp string           `json:"timestamp"`
	}

	// PromptContent is a part of a prompt, with the members of all kinds: text, image and context.
	PromptContent struct {
		Kind     string  `json:"type"`
		Text     string  `json:"text"`
		Data     string  `json:"data"`
		MimeType string  `json:"mime_type"`
		IsURL    bool    `json:"is_url"`
		Path     string  `json:"path"`
		Content  string  `json:"content"`
		Language *string `json:"language"`
	}

	// SessionPromptParams are a prompt.
	SessionPromptParams struct {
		SessionID string          `json:"session_id"`
		Content   []PromptContent `json:"content"`
		Metadata  json.RawMessage `json:"metadata,omitzero"` // an object
	}

	// SessionPromptResult says how the turn of a prompt ended.
	SessionPromptResult struct {
		TurnID    string           `json:"turn_id"`
		Response  *string          `json:"response"`
		ToolCalls []ToolCallRecord `json:"tool_calls"`
		Status    AcpTurnStatus    `json:"status"`
	}

	// SessionCancelParams name the turn to cancel; nil: the current one.
	SessionCancelParams struct {
		SessionID string  `json:"session_id"`
		TurnID    *string `json:"turn_id"`
	}

	// ToolCallRecord is a call of a tool. Without a Result it goes on.
	ToolCallRecord struct {
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Result    json.RawMessage `json:"result"`
		Timestamp string          `json:"timestamp"`
	}

	// RequestPermissionParams ask for a permission.
	RequestPermissionParams struct {
		SessionID string             `json:"sessionId"`
		ToolCall  ToolCallRecord     `json:"toolCall"`
		Options   []PermissionOption `json:"options"`
	}

	// PermissionOption is one of the answers to choose from.
	PermissionOption struct {
		ID          string  `json:"id"`
		Label       string  `json:"label"`
		Description *string `json:"description,omitempty"`
	}

	// RequestPermissionResult answers a request for a permission: selected, with the option's id, or cancelled.
	RequestPermissionResult struct {
		Outcome  string `json:"outcome"`
		OptionID string `json:"option_id"`
	}

	// SessionUpdate is what an agent tells in a turn, with the members of all kinds: message_delta, tool_call_start,
	// tool_call_end, turn_complete, error and server_request.
	SessionUpdate struct {
		Kind       string               `json:"update_type"`
		Delta      string               `json:"delta"`
		ToolCall   ToolCallRecord       `json:"tool_call"`
		ToolCallID string               `json:"tool_call_id"`
		Result     json.RawMessage      `json:"result"`
		Status     AcpTurnStatus        `json:"status"`
		Code       string               `json:"code"`
		Message    string               `json:"message"`
		Request    ToolExecutionRequest `json:"request"`
	}

	// SessionUpdateNotification is an update, and the turn that it is about. In JSON their members are side by side.
	SessionUpdateNotification struct {
		SessionID string
		TurnID    string
		Update    SessionUpdate
	}

	// ToolExecutionRequest asks the client to run a tool of its own.
	ToolExecutionRequest struct {
		RequestID string         `json:"request_id"`
		ToolCall  ToolCallRecord `json:"tool_call"`
	}

	// ServerRequestNotification is such a request and its session.
	ServerRequestNotification struct {
		SessionID string               `json:"session_id"`
		Request   ToolExecutionRequest `json:"request"`
	}

	// ToolExecutionResult answers such a request.
	ToolExecutionResult struct {
		RequestID  string          `json:"request_id"`
		ToolCallID string          `json:"tool_call_id"`
		Output     json.RawMessage `json:"output"`
		Success    bool            `json:"success"`
		Error      *string         `json:"error"`
	}
)

// NewAcpSession returns a session that was created now.
func NewAcpSession(id string, now time.Time) AcpSession {
	return AcpSession{SessionID: id, State: "created", CreatedAt: acpTime(now)}
}

// SetState moves the session to a state, from any other, as vtcode's client does, and records that as activity.
func (v *AcpSession) SetState(to AcpSessionState, now time.Time) {
	v.State, v.LastActivityAt = to, new(acpTime(now))
}

// IncrementTurn counts a turn, and records that as activity.
func (v *AcpSession) IncrementTurn(now time.Time) {
	v.TurnCount++
	v.SetState(v.State, now)
}

// acpTime writes a time as vtcode's client does.
func acpTime(t time.Time) string {
	raw, _ := wire.Marshal(t)
	return strings.TrimSuffix(wire.Unquote(raw), "Z") + "+00:00"
}

// UnmarshalJSON reads what vtcode's client would read. The error is a *wire.DecodeError or wire.ErrNotObject.
func (v *AcpSessionState) UnmarshalJSON(b []byte) error { return acpState.read(b, v) }

// MarshalJSON writes the state; without one a session is created.
func (v AcpSessionState) MarshalJSON() ([]byte, error) {
	return wire.Quote(string(cmp.Or(v, "created"))), nil
}

func (v *AcpTurnStatus) UnmarshalJSON(b []byte) error { return acpTurnEnd.read(b, v) }

func (v AcpSession) MarshalJSON() ([]byte, error)  { return acpSession.write(v) }
func (v *AcpSession) UnmarshalJSON(b []byte) error { return acpSession.read(b, v) }

func (v SessionNewParams) MarshalJSON() ([]byte, error)  { return sessionNewParams.write(v) }
func (v *SessionNewParams) UnmarshalJSON(b []byte) error { return sessionNewParams.read(b, v) }

func (v WorkspaceContext) MarshalJSON() ([]byte, error)  { return workspaceContext.write(v) }
func (v *WorkspaceContext) UnmarshalJSON(b []byte) error { return workspaceContext.read(b, v) }

func (v ModelPreferences) MarshalJSON() ([]byte, error)  { return modelPreferences.write(v) }
func (v *ModelPreferences) UnmarshalJSON(b []byte) error { return modelPreferences.read(b, v) }

func (v SessionNewResult) MarshalJSON() ([]byte, error)  { return sessionNewResult.write(v) }
func (v *SessionNewResult) UnmarshalJSON(b []byte) error { return sessionNewResult.read(b, v) }

func (v SessionLoadParams) MarshalJSON() ([]byte, error)  { return sessionLoadParams.write(v) }
func (v *SessionLoadParams) UnmarshalJSON(b []byte) error { return sessionLoadParams.read(b, v) }

func (v SessionLoadResult) MarshalJSON() ([]byte, error)  { return sessionLoadResult.write(v) }
func (v *SessionLoadResult) UnmarshalJSON(b []byte) error { return sessionLoadResult.read(b, v) }

func (v ConversationTurn) MarshalJSON() ([]byte, error)  { return conversationTurn.write(v) }
func (v *ConversationTurn) UnmarshalJSON(b []byte) error { return conversationTurn.read(b, v) }

func (v PromptContent) MarshalJSON() ([]byte, error)  { return promptContent.write(v) }
func (v *PromptContent) UnmarshalJSON(b []byte) error { return promptContent.read(b, v) }

func (v SessionPromptParams) MarshalJSON() ([]byte, error)  { return sessionPromptParams.write(v) }
func (v *SessionPromptParams) UnmarshalJSON(b []byte) error { return sessionPromptParams.read(b, v) }

func (v SessionPromptResult) MarshalJSON() ([]byte, error)  { return sessionPromptResult.write(v) }
func (v *SessionPromptResult) UnmarshalJSON(b []byte) error { return sessionPromptResult.read(b, v) }

func (v SessionCancelParams) MarshalJSON() ([]byte, error)  { return sessionCancelParams.write(v) }
func (v *SessionCancelParams) UnmarshalJSON(b []byte) error { return sessionCancelParams.read(b, v) }

func (v ToolCallRecord) MarshalJSON() ([]byte, error)  { return toolCallRecord.write(v) }
func (v *ToolCallRecord) UnmarshalJSON(b []byte) error { return toolCallRecord.read(b, v) }

func (v RequestPermissionParams) MarshalJSON() ([]byte, error)  { return permissionParams.write(v) }
func (v *RequestPermissionParams) UnmarshalJSON(b []byte) error { return permissionParams.read(b, v) }

func (v RequestPermissionResult) MarshalJSON() ([]byte, error)  { return permissionResult.write(v) }
func (v *RequestPermissionResult) UnmarshalJSON(b []byte) error { return permissionResult.read(b, v) }

func (v SessionUpdate) MarshalJSON() ([]byte, error)  { return bareUpdate.write(v) }
func (v *SessionUpdate) UnmarshalJSON(b []byte) error { return bareUpdate.read(b, v) }

func (v PermissionOption) MarshalJSON() ([]byte, error)  { return permissionOption.write(v) }
func (v *PermissionOption) UnmarshalJSON(b []byte) error { return permissionOption.read(b, v) }

func (v ToolExecutionRequest) MarshalJSON() ([]byte, error)  { return toolExecutionRequest.write(v) }
func (v *ToolExecutionRequest) UnmarshalJSON(b []byte) error { return toolExecutionRequest.read(b, v) }

func (v ServerRequestNotification) MarshalJSON() ([]byte, error)  { return serverRequest.write(v) }
func (v *ServerRequestNotification) UnmarshalJSON(b []byte) error { return serverRequest.read(b, v) }

func (v ToolExecutionResult) MarshalJSON() ([]byte, error)  { return toolExecutionResult.write(v) }
func (v *ToolExecutionResult) UnmarshalJSON(b []byte) error { return toolExecutionResult.read(b, v) }

// flatNotification has the members of an update beside the others.
type flatNotification struct {
	SessionID string `json:"session_id"`
	TurnID    string `json:"turn_id"`
	flatUpdate
}

type flatUpdate SessionUpdate // without methods

func (v SessionUpdateNotification) MarshalJSON() ([]byte, error) {
	return sessionUpdateNotification.marshal(flatNotification{v.SessionID, v.TurnID, flatUpdate(v.Update)})
}

func (v *SessionUpdateNotification) UnmarshalJSON(b []byte) error {
	var flat flatNotification
	err := sessionUpdateNotification.unmarshal(b, &flat)
	if err == nil {
		*v = SessionUpdateNotification{flat.SessionID, flat.TurnID, SessionUpdate(flat.flatUpdate)}
	}
	return err
}
