package hook

import (
	"bytes"
	"os"

	"github.com/agentteammail/atm/mailbox"
)

// The sessions of the agent's program that are its sub-agents', a line each: some
// programs say so only once.
const subagentsFile = "/run/children"

// addSubagent notes that a session is a sub-agent's.
func addSubagent(box *mailbox.Box, session string) error {
	if isSubagent(box, session) {
		return nil
	}
	root, agent := box.Store().Dir(), string(box.Agent())
	if err := root.Mkdir(agent + "/run"); err != nil {
		return err
	}
	f, err := root.OpenFile(agent+subagentsFile, os.O_WRONLY|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return err
	}
	defer f.Close()
	return root.Write(f, []byte(session+"\n"))
}

// isSubagent reports whether a session is known as a sub-agent's.
func isSubagent(box *mailbox.Box, session string) bool {
	data, err := box.Store().Dir().ReadFile(string(box.Agent())+subagentsFile, 16<<20)
	return err == nil && bytes.Contains(append([]byte("\n"), data...), []byte("\n"+session+"\n"))
}
