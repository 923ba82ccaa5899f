package foreign

import "slices"

// The older Agent Client Protocol, as vtcode's client has it. Its times are strings that nobody parses.
var (
	acpState   = oneOf("created", "active", "awaiting_input", "completed", "cancelled", "failed")
	acpTurnEnd = oneOf("completed", "cancelled", "failed", "awaiting_input")

	toolCallRecord = object(required("id", text), required("name", text), required("arguments", anything), optional("result", anything),
		required("timestamp", text))
	toolRequest = object(required("request_id", text), required("tool_call", toolCallRecord))

	acpUpdates = func() kinds {
		return kinds{
			"message_delta":   {required("delta", text)},
			"tool_call_start": {required("tool_call", toolCallRecord)},
			"tool_call_end":   {required("tool_call_id", text), required("result", anything)},
			"turn_complete":   {required("status", acpTurnEnd)},
			"error":           {required("code", text), required("message", text)},
			"server_request":  {required("request", toolRequest)},
		}
	}
	sessionUpdate             = tagged("update_type", acpUpdates, optional("session_id", text), optional("turn_id", text))
	sessionUpdateNotification = tagged("update_type", acpUpdates, required("session_id", text), required("turn_id", text))

	// AcpSession is a session as its client has it.
	AcpSession = object(required("session_id", text), required("state", acpState), required("created_at", text),
		optional("last_activity_at", text), unlessEmpty("metadata", anyObject), defaulted("turn_count", uint32s, "0"))
	// SessionNewParams are what a session is made with.
	SessionNewParams = object(unlessEmpty("metadata", anyObject),
		optional("workspace", object(required("root_path", text), optional("name", text), unlessEmpty("active_files", list(text)))),
		optional("model_preferences", object(optional("model_id", text), optional("temperature", number), optional("max_tokens", uint32s))))
	sessionNewResult  = object(required("session_id", text), defaulted("state", acpState, `"created"`))
	sessionLoadParams = object(required("session_id", text))
	sessionLoadResult = object(required("session", AcpSession), unlessEmpty("history", list(conversationTurn)))
	conversationTurn  = object(required("turn_id", text), required("prompt", list(promptContent)), optional("response", text),
		unlessEmpty("tool_calls", list(toolCallRecord)), required("timestamp", text))
	promptContent = tagged("type", func() kinds {
		return kinds{
			"text":    {required("text", text)},
			"image":   {required("data", text), required("mime_type", text), defaulted("is_url", boolean, "false")},
			"context": {required("path", text), required("content", text), optional("language", text)},
		}
	})
	sessionPromptParams = object(required("session_id", text), required("content", list(promptContent)), unlessEmpty("metadata", anyObject))
	sessionPromptResult = object(required("turn_id", text), optional("response", text), unlessEmpty("tool_calls", list(toolCallRecord)),
		required("status", acpTurnEnd))
	sessionCancelParams     = object(required("session_id", text), optional("turn_id", text))
	permissionOption        = object(required("id", text), required("label", text), optional("description", text))
	requestPermissionParams = object(required("sessionId", text), required("toolCall", toolCallRecord), required("options", list(permissionOption)))
	// RequestPermissionResult answers a request for a permission.
	RequestPermissionResult = tagged("outcome", func() kinds { return kinds{"selected": {required("option_id", text)}, "cancelled": {}} })
	// ToolExecutionResult answers a request to run a tool of the client's.
	ToolExecutionResult = object(required("request_id", text), required("tool_call_id", text), required("output", anything),
		required("success", boolean), optional("error", text))
	serverRequestNotification = object(required("session_id", text), required("request", toolRequest))

	// Its calls and responses, in JSON-RPC.
	olderCall = tagged("method", func() kinds {
		return kinds{
			"session/new":     {required("params", SessionNewParams)},
			"session/load":    {required("params", sessionLoadParams)},
			"session/prompt":  {required("params", sessionPromptParams)},
			"session/cancel":  {required("params", sessionCancelParams)},
			"session/update":  {required("params", sessionUpdateNotification)},
			"server/request":  {required("params", serverRequestNotification)},
			"client/response": {required("params", ToolExecutionResult)},
		}
	})
	olderResponse = object(required("result", object(optional("session_id", text), optional("state", acpState), optional("session", AcpSession),
		unlessEmpty("history", list(conversationTurn)), optional("turn_id", text), optional("response", text),
		unlessEmpty("tool_calls", list(toolCallRecord)), optional("status", acpTurnEnd))))
)

// The current Agent Client Protocol grows: a kind may have any member, and only the types of these are checked, in an
// update and in what is around it.
var (
	currentUpdate = tagged("sessionUpdate", func() kinds {
		return kinds{
			"user_message_chunk": {}, "agent_message_chunk": {}, "agent_thought_chunk": {}, "tool_call": {}, "tool_call_update": {}, "plan": {},
			"usage_update": {}, "available_commands_update": {}, "current_mode_update": {}, "config_option_update": {}, "session_info_update": {},
		}
	})
	currentFields = []field{optional("method", text), optional("sessionUpdate", text), optional("sessionId", text),
		optional("toolCallId", text), optional("title", text), optional("status", text), optional("kind", text),
		optional("messageId", text), optional("currentModeId", text), optional("entries", anyArray),
		optional("availableCommands", anyArray), optional("locations", anyArray), optional("toolCall", anyObject),
		optional("options", anyArray)}
	currentParams = object(append(slices.Clone(currentFields), optional("update", object(currentFields...)))...)
	currentCall   = object(append(slices.Clone(currentParams.fields), optional("params", currentParams))...)
)
