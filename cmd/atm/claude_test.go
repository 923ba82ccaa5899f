package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/agentteammail/atm/internal/process"
)

// beClaude acts like a Claude Code that a person has started: it has a session file and an inbox socket, and calls atm's hooks.
// What it gets becomes a turn, unless its argument is "busy": then a tool runs for ever, "deaf": then it reads nothing, or
// "closed": then nobody listens at its socket. With "writes" it is at an answer, and keeps what it gets until that is at its end,
// which the file "finish" says. It ends when it is told to. A script starts it with ATM_CLAUDE set, to the session's id.
func beClaude(session string, args []string) error {
	dir, err := os.MkdirTemp("", "cc-") // a socket's path is short
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "inbox.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	os.Chmod(socket, 0o600)
	own, _ := process.Find(os.Getpid())
	sessions := filepath.Join(os.Getenv("CLAUDE_CONFIG_DIR"), "sessions")
	file, _ := json.Marshal(map[string]any{
		"pid": own.PID, "sessionId": session, "entrypoint": "cli", "kind": "interactive", "messagingSocketPath": socket,
		"status": "idle", "version": "2.1.332", "procStart": strconv.FormatUint(own.Start, 10),
	})
	if err := os.MkdirAll(sessions, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(sessions, strconv.Itoa(own.PID)+".json"), file, 0o600); err != nil {
		return err
	}
	if len(args) > 0 && args[0] == "closed" {
		listener.(*net.UnixListener).SetUnlinkOnClose(false)
		listener.Close()
	}
	turns := 0
	call := func(event string, fields map[string]any) error {
		fields["session_id"], fields["hook_event_name"] = session, event
		if turns > 0 {
			fields["prompt_id"] = "p" + strconv.Itoa(turns)
		}
		in, _ := json.Marshal(fields)
		cmd := exec.Command("atm", "hook", "claude")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(string(in)), os.Stdout, os.Stderr
		return cmd.Run()
	}
	if err := call("SessionStart", map[string]any{"source": "startup"}); err != nil {
		return err
	}
	isWriting := len(args) > 0 && args[0] == "writes"
	if isBusy := len(args) > 0 && args[0] == "busy"; isBusy || isWriting {
		turns++
		call("UserPromptSubmit", map[string]any{"prompt": "Work."})
	}
	fmt.Println("ready")
	go func() {
		for len(args) == 0 || args[0] != "deaf" {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			line, _ := io.ReadAll(conn)
			conn.Close()
			var m struct{ Message struct{ Content string } }
			json.Unmarshal(line, &m)
			os.WriteFile("got", line, 0o600)
			if len(args) > 0 && !isWriting { // it waits in the session
				continue
			}
			if isWriting {
				for _, err := os.Stat("finish"); err != nil; _, err = os.Stat("finish") {
					time.Sleep(10 * time.Millisecond)
				}
				call("Stop", map[string]any{"stop_hook_active": false, "last_assistant_message": "Other work."})
			}
			text := m.Message.Content
			if _, inner, ok := strings.Cut(text, ">\n"); ok {
				text, _, _ = strings.Cut(inner, "\n</cross-session-message>")
			}
			turns++
			call("UserPromptSubmit", map[string]any{"prompt": text})
			call("Stop", map[string]any{"stop_hook_active": false, "last_assistant_message": "Done."})
		}
	}()
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, os.Interrupt, syscall.SIGTERM)
	<-ended
	return nil
}
