package wire

import (
	"bytes"
	"encoding/json"
	"fmt"

	jsonv2 "github.com/go-json-experiment/json"
)

// Schemas that are part of several others.
var (
	turnEnd    = oneOf("completed", "interrupted", "failed")
	activities = oneOf("unknown", "starting", "idle", "thinking", "responding", "tool_running", "awaiting_input", "confirming", "exited", "error")
	slotStates = oneOf("starting", "idle", "thinking", "responding", "tool_running", "confirming", "error", "exited")
	streams    = oneOf("std_out", "std_err")

	sessionStates  = oneOf("active", "paused", "completed", "aborted")
	sessionMessage = object(field{"sender", required, text}, field{"content", required, text}, field{"timestamp", required, moment})

	acpStates = oneOf("created", "active", "awaiting_input", "completed", "cancelled", "failed")
	acpEnd    = oneOf("completed", "cancelled", "failed", "awaiting_input")
	toolCall  = object(field{"id", required, text}, field{"name", required, text}, field{"arguments", required, anything},
		field{"result", optional, anything}, field{"timestamp", required, text})
	toolRequest = object(field{"request_id", required, text}, field{"tool_call", required, toolCall})
	acpSession  = object(field{"session_id", required, text}, field{"state", required, acpStates}, field{"created_at", required, text},
		field{"last_activity_at", optional, text}, field{"metadata", listed, mapping}, field{"turn_count", listed, count32.or("0")})
	acpTurn = object(field{"turn_id", required, text}, field{"prompt", required, listOf(kindsOf(&promptKinds))}, field{"response", optional, text},
		field{"tool_calls", listed, listOf(toolCall)}, field{"timestamp", required, text})
	acpOption = object(field{"id", required, text}, field{"label", required, text}, field{"description", optional, text})
)

// The vocabularies' values, by the vocabulary and the owner's name for the type:
// Trusted Autonomy's session channel, missiond's PTY manager, vtcode's ACP client
// (whose times are strings that nobody looks into) and agent-team-mail's daemon.
var records = map[string]schema{
	"session.SessionEvent":            kindsOf(&sessionKinds),
	"session.HumanInput":              kindsOf(&inputKinds),
	"session.OutputStream":            streams,
	"session.InteractiveSessionState": sessionStates,
	"session.SessionMessage":          sessionMessage,
	"session.InteractiveSession": object(field{"session_id", required, uuidText}, field{"goal_id", required, uuidText},
		field{"channel_id", required, text}, field{"agent_id", required, text}, field{"state", required, sessionStates},
		field{"created_at", required, moment}, field{"updated_at", required, moment},
		field{"messages", listed, listOf(sessionMessage)}, field{"draft_ids", listed, listOf(uuidText)}),
	"session.InteractiveConfig": object(field{"enabled", listed, boolean.or("false")}, field{"output_capture", listed, text.or(`"pipe"`)},
		field{"allow_human_input", listed, boolean.or("true")}, field{"auto_exit_on", optional, text.or("null")},
		field{"resume_cmd", optional, text.or("null")}),

	"missiond.SessionState": slotStates,
	"missiond.PTYAgentInfo": object(field{"slotId", required, text}, field{"role", required, text}, field{"pid", optional, count32},
		field{"state", required, slotStates}, field{"startedAt", optional, whole}, field{"currentTaskId", optional, text},
		field{"logFile", required, text}),
	"missiond.PTYExecuteResult": object(field{"response", required, text}, field{"duration_ms", required, count}),
	"missiond.ManagerStats": object(field{"total", required, count}, field{"running", required, count}, field{"idle", required, count},
		field{"busy", required, count}, field{"stopped", required, count}),
	// Theirs has no JSON; this one is a convention of this project.
	"missiond.ManagerEvent": kindsOf(&slotKinds),

	"acp.SessionState": acpStates,
	"acp.TurnStatus":   acpEnd,
	"acp.AcpSession":   acpSession,
	"acp.SessionNewParams": object(field{"metadata", listed, mapping},
		field{"workspace", optional, object(field{"root_path", required, text}, field{"name", optional, text}, field{"active_files", listed, listOf(text)})},
		field{"model_preferences", optional, object(field{"model_id", optional, text}, field{"temperature", optional, number}, field{"max_tokens", optional, count32})}),
	"acp.SessionNewResult":    object(field{"session_id", required, text}, field{"state", listed, acpStates.or(`"created"`)}),
	"acp.SessionLoadParams":   object(field{"session_id", required, text}),
	"acp.SessionLoadResult":   object(field{"session", required, acpSession}, field{"history", listed, listOf(acpTurn)}),
	"acp.ConversationTurn":    acpTurn,
	"acp.PromptContent":       kindsOf(&promptKinds),
	"acp.SessionPromptParams": object(field{"session_id", required, text}, field{"content", required, listOf(kindsOf(&promptKinds))}, field{"metadata", listed, mapping}),
	"acp.SessionPromptResult": object(field{"turn_id", required, text}, field{"response", optional, text},
		field{"tool_calls", listed, listOf(toolCall)}, field{"status", required, acpEnd}),
	"acp.SessionCancelParams": object(field{"session_id", required, text}, field{"turn_id", optional, text}),
	"acp.RequestPermissionParams": object(field{"sessionId", required, text}, field{"toolCall", required, toolCall},
		field{"options", required, listOf(acpOption)}),
	"acp.RequestPermissionResult": kindsOf(&outcomeKinds),
	"acp.SessionUpdate":           kindsOf(&acpKinds),
	"acp.SessionUpdateNotification": {words: "an object", kind: '{', group: &acpKinds,
		fields: []field{{"session_id", required, text}, {"turn_id", required, text}}},
	"acp.ToolCallRecord": toolCall,
	"acp.ToolExecutionResult": object(field{"request_id", required, text}, field{"tool_call_id", required, text}, field{"output", required, anything},
		field{"success", required, boolean}, field{"error", optional, text}),
	"acp.ServerRequestNotification": object(field{"session_id", required, text}, field{"request", required, toolRequest}),

	"daemon.DaemonStreamEvent": kindsOf(&daemonKinds),
	"daemon.TurnStatusWire":    turnEnd,
	"daemon.StreamTurnStatus":  oneOf("idle", "busy", "terminal"),
	"daemon.AgentStreamState": object(field{"turn_id", optional, text.or("null")}, field{"thread_id", optional, text.or("null")},
		field{"transport", optional, text.or("null")}, field{"turn_status", required, oneOf("idle", "busy", "terminal")}),
}

// Canonical reads a value of another vocabulary and returns it as its owner writes
// it: in one line, the members in their order, without those that the owner does not
// know. The type is the vocabulary and the owner's name: "session.HumanInput". The
// error is a *DecodeError, or ErrNotObject.
func Canonical(typeName string, data []byte) (json.RawMessage, error) {
	s, ok := records[typeName]
	if !ok {
		return nil, fmt.Errorf("%q is no type of a vocabulary", typeName)
	}
	if err := syntax(data); err != nil {
		return nil, err
	}
	out, err := s.read(start(data), data)
	return out, placed(data, err)
}

// read is canonical for a whole text.
func (s schema) read(at int, raw json.RawMessage) (json.RawMessage, error) {
	if raw = raw[at:]; s.kind == '{' && !bytes.HasPrefix(raw, []byte("{")) {
		return nil, ErrNotObject
	}
	out, fault := s.canonical(at, raw)
	if fault != nil {
		return nil, fault
	}
	return out, nil
}

// A record is a Go type of another vocabulary. It has the members of all its kinds;
// those of the one that it is are read and written.
type record interface{ schema() schema }

func (SessionEvent) schema() schema       { return records["session.SessionEvent"] }
func (HumanInput) schema() schema         { return records["session.HumanInput"] }
func (SessionMessage) schema() schema     { return records["session.SessionMessage"] }
func (InteractiveSession) schema() schema { return records["session.InteractiveSession"] }

var (
	recordReader = jsonv2.UnmarshalFunc(func(raw []byte, r record) error {
		known, err := r.schema().read(0, raw)
		if err != nil {
			return err
		}
		return jsonv2.Unmarshal(known, r, lenient, jsonv2.WithUnmarshalers(readers))
	})
	recordWriter = jsonv2.MarshalFunc(func(r record) ([]byte, error) {
		raw, err := jsonv2.Marshal(r, lenient, jsonv2.WithMarshalers(chronoWriter))
		if err != nil {
			return nil, err
		}
		return r.schema().read(0, raw)
	})
)
