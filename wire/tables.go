package wire

// tables are the values that this package reads, a table for each vocabulary: Trusted
// Autonomy's session channel, missiond's PTY manager, vtcode's ACP client,
// agent-team-mail's daemon, today's Agent Client Protocol and Codex's app-server, the
// event log, and messages. A line has a type and its members, in the order in which its
// owner writes them:
//
//	Type  name type, …       an object; every member is there
//	type?                    the member may be absent or null, and is then left out,
//	type?=JSON               or written so
//	type*, type*=JSON        it may be absent, but not null; an empty one is left out
//	type[]                   an array
//	one|other                a string that is one of these
//	Type by tag              an object of several kinds
//	  kind|kind  name type   and what these have
//	Type of Other  …         an object with the kinds of another type, and these members
//
// The names of simple types are in schema.go.
var tables = map[string]string{"daemon": `
DaemonStreamEvent by kind
  turn_started      agent text?="", thread_id text?="", turn_id text?="", transport text?=""
  turn_completed    agent text?="", thread_id text?="", turn_id text?="", status TurnStatusWire, transport text?=""
  turn_idle         agent text?="", turn_id text?="", transport text?=""
  stream_error      agent_id text, session_id text, error_summary text
  dropped_counters  agent_id text, dropped u64, unknown u64
TurnStatusWire      completed|interrupted|failed
StreamTurnStatus    idle|busy|terminal
AgentStreamState    turn_id text?=null, thread_id text?=null, transport text?=null, turn_status StreamTurnStatus
`, "session": `
SessionEvent by event_type
  agent_output       stream OutputStream, content text
  draft_ready        draft_id uuid, summary text, artifact_count u64
  goal_complete      goal_id uuid
  waiting_for_input  prompt text
  status_update      message text
OutputStream         std_out|std_err
HumanInput by input_type
  message            text text
  approve            draft_id uuid, artifact_uri text?=null
  reject             draft_id uuid, artifact_uri text?=null, reason text
  abort
InteractiveSessionState  active|paused|completed|aborted
InteractiveSession   session_id uuid, goal_id uuid, channel_id text, agent_id text, state InteractiveSessionState, ` +
	`created_at time, updated_at time, messages SessionMessage[]*, draft_ids uuid[]*
SessionMessage       sender text, content text, timestamp time
InteractiveConfig    enabled bool*=false, output_capture text*="pipe", allow_human_input bool*=true, ` +
	`auto_exit_on text?=null, resume_cmd text?=null
`, "missiond": `
SessionState      starting|idle|thinking|responding|tool_running|confirming|error|exited
PTYAgentInfo      slotId text, role text, pid u32?, state SessionState, startedAt int?, currentTaskId text?, logFile text
PTYExecuteResult  response text, duration_ms u64
ManagerStats      total u64, running u64, idle u64, busy u64, stopped u64
ManagerEvent by kind
  spawned           slot_id text
  exited            slot_id text, exit_code int
  state_change      slot_id text, new_state SessionState, prev_state SessionState
  confirm_required  slot_id text, prompt text, tool_info any?=null
`, "acp": `
SessionUpdate by update_type
  message_delta    delta text
  tool_call_start  tool_call ToolCallRecord
  tool_call_end    tool_call_id text, result any
  turn_complete    status TurnStatus
  error            code text, message text
  server_request   request ToolRequest
SessionUpdateNotification of SessionUpdate  session_id text, turn_id text
SessionState         created|active|awaiting_input|completed|cancelled|failed
TurnStatus           completed|cancelled|failed|awaiting_input
AcpSession           session_id text, state SessionState, created_at text, last_activity_at text?, metadata map*, turn_count u32*=0
SessionNewParams     metadata map*, workspace WorkspaceContext?, model_preferences ModelPreferences?
WorkspaceContext     root_path text, name text?, active_files text[]*
ModelPreferences     model_id text?, temperature number?, max_tokens u32?
SessionNewResult     session_id text, state SessionState*="created"
SessionLoadParams    session_id text
SessionLoadResult    session AcpSession, history ConversationTurn[]*
ConversationTurn     turn_id text, prompt PromptContent[], response text?, tool_calls ToolCallRecord[]*, timestamp text
PromptContent by type
  text     text text
  image    data text, mime_type text, is_url bool*=false
  context  path text, content text, language text?
SessionPromptParams  session_id text, content PromptContent[], metadata map*
SessionPromptResult  turn_id text, response text?, tool_calls ToolCallRecord[]*, status TurnStatus
SessionCancelParams  session_id text, turn_id text?
RequestPermissionParams  sessionId text, toolCall ToolCallRecord, options PermissionOption[]
PermissionOption     id text, label text, description text?
RequestPermissionResult by outcome
  selected   option_id text
  cancelled
ToolCallRecord       id text, name text, arguments any, result any?, timestamp text
ToolRequest          request_id text, tool_call ToolCallRecord
ToolExecutionResult  request_id text, tool_call_id text, output any, success bool, error text?
ServerRequestNotification  session_id text, request ToolRequest
`, "current": `
Update by sessionUpdate
  user_message_chunk|agent_message_chunk|agent_thought_chunk|tool_call|tool_call_update|plan|usage_update
  available_commands_update|current_mode_update|config_option_update|session_info_update
Call      method string?, params Call?, update Call?, sessionUpdate string?, sessionId text?, toolCallId string?, ` +
	`title string?, status string?, kind string?, messageId string?, currentModeId string?, entries array?, ` +
	`availableCommands array?, locations array?, toolCall map?, options array?
Codex     method string, params map
CodexTurn method string, params TurnParams
TurnParams  threadId string?, thread_id string?, turnId text?, turn_id text?, status TurnStatus?, turn Turn?
Turn        id text?, status TurnStatus?
TurnStatus  completed|interrupted|failed|inProgress
`, "log": `
Event  seq u64, at time?, team name?, agent name?, source string?, kind word, session string?, turn_id string?, ` +
	`event_id string?, wire map?
Names  session text?, session_id text?, sessionId text?, turn_id text?, event_id text?
Activity  unknown|starting|idle|thinking|responding|tool_running|awaiting_input|confirming|exited|error
RunnerEvent by kind
  session_start     source string?
  session_end       reason string?
  spawned           pid int?
  state_change      new string?, previous string?, detail string?
  confirm_required  tool string?, prompt string?, id string?, options array?, input string?, dialog string?
  exited            code int?, signal string?
  restarting        attempt int?, pause_ms int?
MailboxEvent by kind
  message_announced|message_acked|message_withdrawn|injecting|injected  id string?
  message_taken|message_returned|message_aside|message_again            id string?
  message_read       id string?, batch string?
  injection_failed   id string?, outcome string?, reason string?
`, "message": `
Message     id id?, type string?, from address?, to addresses?, thread id?, in_reply_to id?, subject string?, body body?, ` +
	`priority normal|urgent?, requires_ack bool?, reply_wanted yes|no?, sent_at time?, expires_at time?, due_at time?, ` +
	`supersedes id?, hop u32?, origin Origin?, attachments Attachment[]?, payload map?, meta map?
Outgoing    to names?
Origin      via string?, uid int?, run string?
Attachment  name string?, sha256 sha256, size u63?, media_type string?
`}
