package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// environment is the agent's: ours, with who it is, and without what would make
// it take itself for part of another agent or terminal.
func (e *env) environment(p *plan, toml map[string]string) []string {
	set := map[string]string{
		"TERM": "xterm-256color", "COLORTERM": "truecolor",
		"ATM_ROOT": e.root.Path, "ATM_TEAM": string(e.team.Name), "ATM_AGENT": string(p.box.Agent()), "ATM_RUN": p.opt.Run,
	}
	for k, v := range toml {
		set[k] = v
	}
	for _, kv := range e.Pairs("env") {
		set[kv[0]] = kv[1]
	}
	var out []string
	for _, kv := range os.Environ() {
		k, _, _ := strings.Cut(kv, "=")
		if _, ours := set[k]; ours || foreign(k) {
			continue
		}
		out = append(out, kv)
	}
	for k, v := range set {
		out = append(out, k+"="+v)
	}
	return out
}

// ofAgent reports whether a process belongs to an agent, where the system shows
// that: by its environment, or by who started it.
func (e *env) ofAgent(pid int) bool {
	if pid <= 0 {
		return false
	}
	if _, ok := marked(pid); ok || e.team.RunBy(lineage(pid)) != "" {
		return true
	}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false
	}
	for _, kv := range bytes.Split(data, []byte{0}) {
		name, value, _ := bytes.Cut(kv, []byte{'='})
		if len(value) > 0 && slices.Contains(agentMarks, string(name)) {
			return true
		}
	}
	return false
}

// foreign reports whether a variable speaks of another agent or terminal.
func foreign(k string) bool {
	switch k {
	case "TMUX", "TMUX_PANE", "STY", "WINDOW", "COLUMNS", "LINES", runnerPipe, startTicket, "TERM_PROGRAM", "TERM_PROGRAM_VERSION":
		return true
	}
	for _, m := range agentMarks {
		if k == m {
			return true
		}
	}
	return false
}

// lookPath finds a command as the agent's environment would.
func lookPath(command, dir string, environ []string) (string, error) {
	if strings.Contains(command, "/") {
		if !filepath.IsAbs(command) {
			command = filepath.Join(dir, command)
		}
		info, err := os.Stat(command)
		if err != nil {
			return "", fmt.Errorf("%s is not there", command)
		}
		if info.IsDir() || info.Mode()&0o111 == 0 {
			return "", fmt.Errorf("%s is no program", command)
		}
		return command, nil
	}
	for _, kv := range environ {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			for _, d := range filepath.SplitList(path) {
				if !filepath.IsAbs(d) {
					d = filepath.Join(dir, d)
				}
				if info, err := os.Stat(filepath.Join(d, command)); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
					return filepath.Join(d, command), nil
				}
			}
		}
	}
	return "", fmt.Errorf("no program %q on the PATH", command)
}
