package codex

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/wire"
)

// Lines as Codex 0.169 writes them: the first of a conversation has no figures yet.
const (
	meta  = `{"timestamp":"2026-11-20T11:52:31.101Z","type":"session_meta","payload":{"id":"th1","cwd":"/repo","cli_version":"0.169.0"}}` + "\n"
	empty = `{"timestamp":"2026-11-20T11:52:33.120Z","type":"event_msg","payload":{"type":"token_count","info":null,"rate_limits":{"primary":{"used_percent":7.0,"window_minutes":300}}}}` + "\n"
	first = `{"timestamp":"2026-11-20T11:52:36.553Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":14475,"cached_input_tokens":2432,"output_tokens":216,"reasoning_output_tokens":64,"total_tokens":14691},"last_token_usage":{"input_tokens":14475,"cached_input_tokens":2432,"output_tokens":216,"reasoning_output_tokens":64,"total_tokens":14691},"model_context_window":258400},"rate_limits":null}}` + "\n"
	last  = `{"timestamp":"2026-11-20T11:52:41.101Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":29800,"cached_input_tokens":16512,"output_tokens":430,"reasoning_output_tokens":64,"total_tokens":30230},"last_token_usage":{"input_tokens":15325,"cached_input_tokens":14080,"output_tokens":214,"reasoning_output_tokens":0,"total_tokens":15539},"model_context_window":258400}}}` + "\n"
	said  = `{"timestamp":"2026-11-20T11:52:41.200Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"It says \"token_count\"."}]}}` + "\n"
)

func TestUsage(t *testing.T) {
	t.Parallel()
	const ofFirst = `{"transport":"hook","input_tokens":14475,"output_tokens":216,"cached_tokens":2432,"total_tokens":14691,"context_used":14691,"context_size":258400}`
	for about, c := range map[string]struct{ transcript, want string }{
		"none":              {"", ""},
		"nothing yet":       {meta + empty, ""},
		"one":               {meta + empty + first + said, ofFirst},
		"the newest":        {meta + first + last + said, `{"transport":"hook","input_tokens":29800,"output_tokens":430,"cached_tokens":16512,"total_tokens":30230,"context_used":15539,"context_size":258400}`},
		"one being written": {meta + first + last[:200], ofFirst},
		"bad lines":         {first + "\x00\xff\n" + `{"type":"event_msg","payload":"token_count"}` + "\n" + `["token_count"]` + "\n" + strings.Replace(last, "event_msg", "other", 1) + strings.Replace(last, `total_token_usage":{`, `total_token_usage":5,"x":{`, 1), ofFirst},
		"behind much":       {first + strings.Repeat(said, maxTail/len(said)+1), ""},
		"before little":     {strings.Repeat(said, maxTail/len(said)+1) + first, ofFirst},
		"a long number":     {strings.Replace(first, "216", strings.Repeat("9", 50), 1), `{"transport":"hook","input_tokens":14475,"cached_tokens":2432,"total_tokens":14691,"context_used":14691,"context_size":258400}`},
	} {
		file := filepath.Join(t.TempDir(), "rollout.jsonl")
		if err := os.WriteFile(file, []byte(c.transcript), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := usage(file); got != c.want {
			t.Errorf("%s: %s, not %s", about, got, c.want)
		}
	}
}

// What is no regular file is not waited for, and a path from nowhere is none.
func TestUsageOfNoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	paths := []string{dir, filepath.Join(dir, "absent"), "rollout.jsonl", ""}
	if runtime.GOOS != "windows" {
		link := filepath.Join(dir, "link")
		if err := os.Symlink("/dev/zero", link); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, "/dev/zero", link)
	}
	for _, path := range paths {
		if got := usage(path); got != "" {
			t.Errorf("%s: %s", path, got)
		}
	}
}

// usage is what the hook reports of a transcript.
func usage(path string) string {
	c := &agents.Call{Vendor: Vendor, Now: time.Now(), In: wire.Object{{Name: "transcript_path", Value: wire.Quote(path)}}}
	addUsage(c)
	if len(c.Events) == 0 {
		return ""
	}
	return string(c.Events[0].Extra)
}
