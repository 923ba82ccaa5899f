package wire

import (
	"maps"
	"slices"
	"strings"
)

// Vocabulary is another system whose events we understand.
type Vocabulary string

const (
	Daemon  Vocabulary = "daemon"  // tag "kind", which our own kinds have too
	Session Vocabulary = "session" // tag "event_type"
	ACP     Vocabulary = "acp"     // tags "update_type" and "sessionUpdate"
)

// The types of event in vocabularies.txt, and the type of ACP's calls.
const (
	daemonEvent   = "daemon.DaemonStreamEvent"
	sessionEvent  = "session.SessionEvent"
	olderUpdate   = "acp.SessionUpdate"
	olderNotice   = "acp.SessionUpdateNotification"
	currentUpdate = "acp.CurrentUpdate"
	currentCall   = "acp.Call"
	runnerEvent   = "log.RunnerEvent"
	mailboxEvent  = "log.MailboxEvent"
)

// eventTypes are in the order in which their tags are looked for: a tool call of ACP has a "kind" too.
var eventTypes = []string{sessionEvent, currentUpdate, olderUpdate, daemonEvent, runnerEvent, mailboxEvent}

func hasKind(typeName, kind string) bool { _, ok := schemas()[typeName].kinds[kind]; return ok }

// Kinds lists the kinds of event of all vocabularies.
func Kinds() (kinds []string) {
	for _, name := range eventTypes {
		kinds = slices.AppendSeq(kinds, maps.Keys(schemas()[name].kinds))
	}
	return kinds
}

// typeOf returns the type of event that has a kind. An unknown kind counts as the daemon's, whose tag is ours too.
func typeOf(kind string) string {
	i := slices.IndexFunc(eventTypes, func(name string) bool { return hasKind(name, kind) })
	if i < 0 {
		return daemonEvent
	}
	return eventTypes[i]
}

// isKind reports whether s can be a kind: a word of a-z, 0-9 and _.
func isKind(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}
