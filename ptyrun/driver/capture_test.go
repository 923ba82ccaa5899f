package driver

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agentteammail/atm/internal/testround"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/driver/agents"
	"github.com/agentteammail/atm/ptyrun/screen"
	"github.com/agentteammail/atm/reducer"
)

// captures are recordings of the real programs, from the start to the state in the file's name.
var captures = []struct {
	file     string
	activity reducer.Activity
	detail   string
	why      control.Gate // "": at the prompt
	draft    string
}{
	{"claude-bang-mode", reducer.Idle, "", "bang mode", "sleep 3"},
	{"claude-confirming", reducer.Confirming, "permission", "dialog", ""},
	{"claude-ctrlc-once", reducer.Idle, "", "another Ctrl-C would end it", ""},
	{"claude-done", reducer.Idle, "", "", ""},
	{"claude-draft", reducer.Idle, "", "draft", "hello agent"},
	{"claude-exited", reducer.Starting, "", "no prompt on the screen", ""},
	{"claude-idle", reducer.Idle, "", "", ""},
	{"claude-interrupted", reducer.Idle, "", "draft", "DOSLOW esc"},
	{"claude-pasted", reducer.Idle, "", "draft", "[Pasted text #1 +12 lines]"},
	{"claude-responding", reducer.Responding, "", "busy", ""},
	{"claude-thinking", reducer.Thinking, "", "busy", ""},
	{"claude-tool-running", reducer.ToolRunning, "Bash", "busy", ""},
	{"claude-trust", reducer.Confirming, "trust", "dialog", ""},
	{"claude-2.1.197-answer", reducer.Idle, "", "", ""},
	{"claude-2.1.197-limit", reducer.Limited, "You've hit your session limit · resets 3:42pm (UTC)", "", ""},
	{"claude-2.1.197-config", reducer.Confirming, "unknown", "dialog", ""},
	{"claude-2.1.197-limit-menu", reducer.AwaitingInput, "question", "dialog", ""},
	{"claude-2.1.197-model", reducer.Confirming, "unknown", "dialog", ""},
	{"claude-2.1.197-nocolor-permission", reducer.Confirming, "permission", "dialog", ""},
	{"claude-2.1.197-nocolor-tools", reducer.Idle, "", "", ""},
	{"claude-2.1.197-permissions", reducer.Confirming, "unknown", "dialog", ""},
	{"claude-2.1.197-question", reducer.AwaitingInput, "question", "dialog", ""},
	{"claude-2.1.197-reader-busy", reducer.Responding, "", "busy", ""},
	{"claude-2.1.197-reader-done", reducer.Idle, "", "", ""},
	{"claude-2.1.197-reader-idle", reducer.Idle, "", "", ""},
	{"claude-2.1.197-reader-permission", reducer.Confirming, "permission", "dialog", ""},
	{"claude-2.1.197-resume", reducer.Confirming, "unknown", "dialog", ""},
	{"claude-2.1.197-theme", reducer.Confirming, "unknown", "dialog", ""},
	{"claude-2.1.197-tools", reducer.Idle, "", "", ""},
	{"claude-2.1.332-answer", reducer.Idle, "", "", ""},
	{"claude-2.1.332-auto", reducer.Confirming, "unknown", "dialog", ""},
	{"claude-2.1.332-bypass", reducer.Confirming, "trust", "dialog", ""},
	{"claude-2.1.332-declared-blocked", reducer.Confirming, "permission", "dialog", ""},
	{"claude-2.1.332-declared-working", reducer.Thinking, "", "busy", ""},
	{"claude-2.1.332-config", reducer.Confirming, "unknown", "dialog", ""},
	{"claude-2.1.332-error", reducer.Idle, "", "", ""},
	{"claude-2.1.332-held", reducer.Confirming, "unknown", "dialog", ""},
	{"claude-2.1.332-history", reducer.Confirming, "unknown", "dialog", ""},
	{"claude-2.1.332-light-tools", reducer.Idle, "", "", ""},
	{"claude-2.1.332-limit", reducer.Limited, "Usage limit reached · limit resets 3:33pm", "usage limit", ""},
	{"claude-2.1.332-long-draft", reducer.Idle, "", "draft", "  line 51 of a text with some words to fill it.\n  line 52 of a text with some words to fill it.\n  line 53 of a text with some words to fill it.\n  line 54 of a text with some words to fill it.\n" +
		"  line 55 of a text with some words to fill it.\n  line 56 of a text with some words to fill it.\n  line 57 of a text with some words to fill it.\n  line 58 of a text with some words to fill it.\n  line 59 of a text with some words to fill it.\n[/atm]"},
	{"claude-2.1.332-model", reducer.Confirming, "unknown", "dialog", ""},
	{"claude-2.1.332-nocolor-permission", reducer.Confirming, "permission", "dialog", ""},
	{"claude-2.1.332-nocolor-tools", reducer.Idle, "", "", ""},
	{"claude-2.1.332-permission", reducer.Confirming, "permission", "dialog", ""},
	{"claude-2.1.332-permissions", reducer.Confirming, "unknown", "dialog", ""},
	{"claude-2.1.332-plan-exit", reducer.AwaitingInput, "question", "dialog", ""},
	{"claude-2.1.332-plan-permission", reducer.Confirming, "permission", "dialog", ""},
	{"claude-2.1.332-progress", reducer.Thinking, "", "busy", ""},
	{"claude-2.1.332-question", reducer.AwaitingInput, "question", "dialog", ""},
	{"claude-2.1.332-questions", reducer.AwaitingInput, "question", "dialog", ""},
	{"claude-2.1.332-reader-busy", reducer.Responding, "", "busy", ""},
	{"claude-2.1.332-reader-done", reducer.Idle, "", "", ""},
	{"claude-2.1.332-reader-idle", reducer.Idle, "", "", ""},
	{"claude-2.1.332-reader-permission", reducer.Confirming, "permission", "dialog", ""},
	{"claude-2.1.332-resume", reducer.Confirming, "unknown", "dialog", ""},
	{"claude-2.1.332-search", reducer.Confirming, "permission", "dialog", ""},
	{"claude-2.1.332-sessions", reducer.Starting, "", "no prompt on the screen", ""},
	{"claude-2.1.332-theme", reducer.Confirming, "unknown", "dialog", ""},
	{"claude-2.1.332-tool-running", reducer.ToolRunning, "Bash", "busy", ""},
	{"claude-2.1.332-tools", reducer.Idle, "", "", ""},
	{"claude-2.1.332-trust", reducer.Confirming, "trust", "dialog", ""},
	{"claude-2.1.332-write", reducer.Confirming, "permission", "dialog", ""},
	{"codex-0.169-answer", reducer.Idle, "", "", ""},
	{"codex-0.169-reconnecting", reducer.Idle, "", "it reconnects to its server", ""},
	{"codex-0.171-answer", reducer.Idle, "", "", ""},
	{"codex-0.171-reconnecting", reducer.Idle, "", "it reconnects to its server", ""},
	{"codex-0.171-limit", reducer.Limited, "You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit https:// chatgpt.com/settings/usage to purchase more credits or try again at 6:42 PM.", "", ""},
	{"codex-0.171-nocolor-tools", reducer.Idle, "", "", ""},
	{"codex-0.171-model", reducer.Confirming, "unknown", "dialog", ""},
	{"codex-0.171-theme", reducer.Confirming, "unknown", "dialog", ""},
	{"codex-0.171-resume", reducer.Confirming, "unknown", "dialog", ""},
	{"codex-0.171-still-busy", reducer.Responding, "", "busy", ""},
	{"codex-0.171-still-done", reducer.Idle, "", "", ""},
	{"codex-0.171-tools", reducer.Idle, "", "", ""},
	{"gemini-0.61-answer", reducer.Idle, "", "", ""},
	{"gemini-0.61-loop", reducer.AwaitingInput, "question", "dialog", ""},
	{"gemini-0.61-nocolor-idle", reducer.Idle, "", "", ""},
	{"gemini-0.61-nocolor-permission", reducer.Confirming, "permission", "dialog", ""},
	{"gemini-0.61-plain-done", reducer.Idle, "", "", ""},
	{"gemini-0.61-plain-idle", reducer.Idle, "", "", ""},
	{"gemini-0.61-reader-permission", reducer.Confirming, "permission", "dialog", ""},
	{"gemini-0.61-reader-tools", reducer.Idle, "", "", ""},
	{"opencode-1.18-answer", reducer.Idle, "", "", ""},
	{"continue-answer", reducer.Idle, "", "", ""},
	{"continue-confirming", reducer.Confirming, "permission", "dialog", ""},
	{"continue-done", reducer.Idle, "", "", ""},
	{"continue-draft", reducer.Idle, "", "draft", "hello agent"},
	{"continue-error", reducer.Idle, "", "", ""},
	{"continue-idle", reducer.Idle, "", "", ""},
	{"continue-interrupted", reducer.Idle, "", "", ""},
	{"continue-menu", reducer.Starting, "", "no prompt on the screen", ""},
	{"continue-pasted", reducer.Idle, "", "draft", "[Paste #1, 20 lines]"},
	{"continue-shell", reducer.Idle, "", "bang mode", "!"},
	{"continue-thinking", reducer.Thinking, "", "busy", ""},
	{"continue-tool-running", reducer.ToolRunning, "Bash", "busy", ""},
	{"continue-tools", reducer.Idle, "", "", ""},
	{"cline-answer", reducer.Idle, "", "", ""},
	{"cline-confirming", reducer.Confirming, "permission", "dialog", ""},
	{"cline-done", reducer.Idle, "", "", ""},
	{"cline-draft", reducer.Idle, "", "draft", "hello agent"},
	{"cline-idle", reducer.Idle, "", "", ""},
	{"cline-interrupted", reducer.Idle, "", "", ""},
	{"cline-notice", reducer.Starting, "", "no prompt on the screen", ""},
	{"cline-responding", reducer.Thinking, "", "busy", ""},
	{"cline-thinking", reducer.Thinking, "", "busy", ""},
	{"cline-tool-running", reducer.Thinking, "", "busy", ""},
	{"cline-tools", reducer.Idle, "", "", ""},
	{"codex-confirming", reducer.Confirming, "permission", "dialog", ""},
	{"codex-done", reducer.Idle, "", "", ""},
	{"codex-draft", reducer.Idle, "", "draft", "hello agent"},
	{"codex-exited", reducer.Starting, "", "no prompt on the screen", ""},
	{"codex-idle", reducer.Idle, "", "", ""},
	{"codex-interrupted", reducer.Idle, "", "", ""},
	{"codex-pasted", reducer.Idle, "", "draft", "[Pasted Content 1149 chars]"},
	{"codex-starting", reducer.Starting, "", "starting", ""},
	{"codex-thinking", reducer.Thinking, "", "busy", ""},
	{"codex-tool-running", reducer.ToolRunning, "Bash", "busy", ""},
	{"codex-trust", reducer.Confirming, "trust", "dialog", ""},
	{"droid-login", reducer.Unknown, "", "no prompt on the screen", ""},
	{"gemini-confirming", reducer.Confirming, "permission", "dialog", ""},
	{"gemini-thinking", reducer.Thinking, "", "busy", ""},
	{"gemini-done", reducer.Idle, "", "", ""},
	{"gemini-draft", reducer.Idle, "", "draft", "hello agent"},
	{"gemini-idle", reducer.Idle, "", "", ""},
	{"gemini-trust", reducer.Confirming, "trust", "dialog", ""},
	{"kilo-always", reducer.Confirming, "permission", "dialog", ""},
	{"kilo-answer", reducer.Idle, "", "", ""},
	{"kilo-confirming", reducer.Confirming, "permission", "dialog", ""},
	{"kilo-done", reducer.Idle, "", "", ""},
	{"kilo-draft", reducer.Idle, "", "draft", "hello agent"},
	{"kilo-escape-once", reducer.Responding, "", "busy", ""},
	{"kilo-idle", reducer.Idle, "", "", ""},
	{"kilo-interrupted", reducer.Idle, "", "", ""},
	{"kilo-pasted", reducer.Idle, "", "draft", "[Pasted ~9 lines]"},
	{"kilo-question", reducer.AwaitingInput, "question", "dialog", ""},
	{"kilo-shell", reducer.Idle, "", "bang mode", ""},
	{"kilo-thinking", reducer.Thinking, "", "busy", ""},
	{"kilo-tool-running", reducer.ToolRunning, "sleep 6; echo done", "busy", ""},
	{"kilo-tools", reducer.Idle, "", "", ""},
	{"opencode-confirming", reducer.Confirming, "permission", "dialog", ""},
	{"opencode-done", reducer.Idle, "", "", ""},
	{"opencode-draft", reducer.Idle, "", "draft", "hello agent"},
	{"opencode-idle", reducer.Idle, "", "", ""},
	{"opencode-thinking", reducer.Thinking, "", "busy", ""},
	{"opencode-tool-running", reducer.ToolRunning, "sleep 6; echo done", "busy", ""},
	{"qwen-0.24-confirming", reducer.Confirming, "permission", "dialog", ""},
	{"qwen-0.24-draft", reducer.Idle, "", "draft", "hello agent"},
	{"qwen-0.24-idle", reducer.Idle, "", "", ""},
	{"qwen-0.24-responding", reducer.Responding, "", "busy", ""},
	{"qwen-0.24-scrolled", reducer.Confirming, "permission", "dialog", ""},
	{"qwen-0.24-tool-running", reducer.ToolRunning, "Bash", "busy", ""},
	{"qwen-0.24-tools", reducer.Idle, "", "", ""},
	{"copilot-cancelling", reducer.ToolRunning, "Bash", "busy", ""},
	{"copilot-esc-once", reducer.Idle, "", "it waits for the same key again", ""},
	{"copilot-retry", reducer.Thinking, "", "busy", ""},
	{"copilot-error", reducer.Idle, "", "", ""},
	{"copilot-answer", reducer.Idle, "", "", ""},
	{"copilot-bold", reducer.Idle, "", "", ""},
	{"copilot-nocolor-idle", reducer.Idle, "", "", ""},
	{"copilot-nocolor-thinking", reducer.Thinking, "", "busy", ""},
	{"copilot-path", reducer.Confirming, "permission", "dialog", ""},
	{"copilot-create", reducer.Confirming, "permission", "dialog", ""},
	{"copilot-edit", reducer.Confirming, "permission", "dialog", ""},
	{"copilot-interrupted", reducer.Idle, "", "", ""},
	{"copilot-idle", reducer.Idle, "", "", ""},
	{"copilot-draft", reducer.Idle, "", "draft", "hello agent"},
	{"copilot-done", reducer.Idle, "", "", ""},
	{"copilot-confirming", reducer.Confirming, "permission", "dialog", ""},
	{"copilot-tools", reducer.Idle, "", "", ""},
	{"copilot-thinking", reducer.Thinking, "", "busy", ""},
	{"copilot-responding", reducer.Responding, "", "busy", ""},
	{"copilot-tool-running", reducer.ToolRunning, "Bash", "busy", ""},
	{"copilot-queued", reducer.Idle, "", "", ""},
	{"copilot-shell", reducer.Idle, "", "bang mode", "ls"},
	{"copilot-ctrlc-once", reducer.Idle, "", "another Ctrl-C would end it", ""},
	{"copilot-pasted", reducer.Idle, "", "another Ctrl-C would end it", "[Paste #1 - 40 lines]"},
	{"copilot-help", reducer.Idle, "", "help is open", ""},
	{"copilot-trust", reducer.Confirming, "trust", "dialog", ""},
	{"pi-idle", reducer.Idle, "", "", ""},
	{"pi-draft", reducer.Idle, "", "draft", "hello agent"},
	{"pi-done", reducer.Idle, "", "", ""},
	{"pi-confirming", reducer.Confirming, "permission", "dialog", ""},
	{"pi-tools", reducer.Idle, "", "", ""},
	{"pi-thinking", reducer.Thinking, "", "busy", ""},
	{"pi-responding", reducer.Responding, "", "busy", ""},
	{"pi-interrupted", reducer.Idle, "", "", ""},
	{"pi-shell", reducer.Idle, "", "draft", "!ls"},
	{"pi-model", reducer.Confirming, "unknown", "dialog", ""},
	{"pi-settings", reducer.Confirming, "unknown", "dialog", ""},
	{"pi-tool-running", reducer.ToolRunning, "Bash", "busy", ""},
	{"pi-queued", reducer.ToolRunning, "Bash", "busy", ""},
	{"pi-pasted", reducer.Idle, "", "draft", "[paste #1 +22 lines]"},
	{"pi-answer", reducer.Idle, "", "", ""},
	{"pi-retry", reducer.Thinking, "API retry 2/3", "no prompt on the screen", ""},
	{"pi-error", reducer.Idle, "", "", ""},
	{"pi-menu", reducer.Idle, "", "draft", "/m"},
	{"pi-tree", reducer.Confirming, "unknown", "dialog", ""},
	{"qwen-answer", reducer.Idle, "", "", ""},
	{"qwen-confirming", reducer.Confirming, "permission", "dialog", ""},
	{"qwen-ctrlc-once", reducer.Idle, "", "another Ctrl-C would end it", ""},
	{"qwen-done", reducer.Idle, "", "", ""},
	{"qwen-draft", reducer.Idle, "", "draft", "hello agent"},
	{"qwen-help", reducer.Idle, "", "help is open", ""},
	{"qwen-idle", reducer.Idle, "", "", ""},
	{"qwen-pasted", reducer.Idle, "", "draft", "[Pasted Content 79 chars]"},
	{"qwen-progress", reducer.ToolRunning, "Bash", "busy", ""},
	{"qwen-queued", reducer.Thinking, "", "busy", ""},
	{"qwen-responding", reducer.Responding, "", "busy", ""},
	{"qwen-shell", reducer.Idle, "", "bang mode", ""},
	{"qwen-thinking", reducer.Thinking, "", "busy", ""},
	{"qwen-tool-running", reducer.ToolRunning, "Bash", "busy", ""},
	{"qwen-tools", reducer.Idle, "", "", ""},
	{"qwen-trust", reducer.Confirming, "trust", "dialog", ""},
}

// The built-in drivers.
var claude, codex, opencode = builtIn("claude"), builtIn("codex"), builtIn("opencode")

func builtIn(name string) *Driver {
	d, _ := Named(name)
	return d
}

const recordings = "../../testdata/screens"

func recording(t *testing.T, file string) []byte {
	t.Helper()
	b, err := readRecording(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// readRecording reads a recording from those for all packages, else from those of this package.
func readRecording(file string) ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(recordings, file+".bin"))
	if errors.Is(err, fs.ErrNotExist) {
		return os.ReadFile(filepath.Join("testdata", file+".bin"))
	}
	return b, err
}

func driverOf(t *testing.T, file string) *Driver {
	t.Helper()
	name, _, _ := strings.Cut(file, "-")
	d, ok := Named(name)
	if !ok {
		t.Fatalf("no driver %s", name)
	}
	return d
}

func TestCapturesWhole(t *testing.T) {
	for _, c := range captures {
		s := screen.New(100, 30, 100)
		s.Write(recording(t, c.file))
		r := driverOf(t, c.file).Read(LookAt(s), Reading{})
		if r.Activity != c.activity || r.Detail != c.detail || r.NotPromptReason != c.why || r.Draft != c.draft || r.Prompt != (c.why == "") {
			t.Errorf("%s: %s %q, prompt %v, why %q, draft %q", c.file, r.Activity, r.Detail, r.Prompt, r.NotPromptReason, r.Draft)
		}
	}
}

// Every recording has a test.
func TestEveryCapture(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(recordings, "*.bin"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".bin")
		found := false
		for _, c := range captures {
			found = found || c.file == name
		}
		if !found {
			t.Errorf("%s is not tested", name)
		}
	}
}

// shown are texts of dialogs, of open turns and below an empty box: an oracle that knows nothing of boxes.
var (
	asking = []string{"Do you want to proceed?", "Quick safety check", "Press enter to confirm", "Trust this folder?", "Do you trust the files", "Permission required", "Allow execution of"}
	going  = []string{"esc to interrupt", "esc interrupt", "esc to cancel", "Running…"}
)

// sequence matches an escape sequence or a character.
var sequence = regexp.MustCompile(`(?s)\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\a\x1b]*(?:\a|\x1b\\)|\x1b.|.`)

// stride is the number of bytes between two readings: with 1 it takes two minutes.
func stride() int {
	if testround.IsLong {
		return 1
	}
	return 41
}

// Programs draw without frames, and a pipe cuts anywhere: after no byte may a half-drawn screen, a dialog or a busy
// screen be read as a prompt. In a row of equal characters, mostly rules, the test reads only at the ends.
func TestCapturesByteByByte(t *testing.T) {
	t.Parallel()
	var last []byte
	for _, c := range captures {
		b := recording(t, c.file)
		d := driverOf(t, c.file)
		s := screen.New(100, 30, 100)
		// Recordings of one session begin alike: what they share is read once.
		same := 0
		for same < min(len(b), len(last)) && b[same] == last[same] {
			same++
		}
		last = b
		s.Write(b[:same])
		r := d.Read(LookAt(s), Reading{})
		step := stride()
		if strings.Contains(c.file, ".") { // of one more version or look
			step *= 5
		}
		isEnd := make([]bool, len(b)) // of a character or sequence; before that the screen is unchanged
		for _, at := range sequence.FindAllIndex(b, -1) {
			isEnd[at[1]-1] = true
		}
		for i := same; i < len(b); i++ {
			s.Write(b[i : i+1])
			if i < len(b)-4 && (!isEnd[i] || i%step != 0 || i > 4 && string(b[i-2:i+1]) == string(b[i-5:i-2]) && b[i+3] == b[i]) {
				continue
			}
			if s.Modes().Sync {
				r = d.Read(Look{Modes: s.Modes()}, r)
				if r.Prompt {
					t.Fatalf("%s at %d: a frame is open, and %+v", c.file, i, r)
				}
				continue
			}
			l := LookAt(s)
			r = d.Read(l, r)
			if !r.Prompt {
				continue
			}
			at := l.CursorY
			if d.screen.Box.DrawsCursor {
				at = d.boxRow(&l) + 1
			}
			bottom := ""
			for y := max(0, at-2); y < len(l.Lines); y++ {
				if d.kindOf(&l, y) != agents.WaitsRow {
					bottom += l.line(y) + "\n"
				}
			}
			switch {
			case r.Activity != reducer.Idle && r.Activity != reducer.Limited:
				t.Fatalf("%s at %d: %s and a prompt", c.file, i, r.Activity)
			case hasAny(strings.Join(l.Lines[at:], "\n"), asking), hasAny(bottom, going):
				t.Fatalf("%s at %d: a prompt on\n%s", c.file, i, strings.Join(l.Lines, "\n"))
			case claude.screen.Titles[0].Pattern.MatchString(l.Title), strings.Contains(l.Title, "Action Required"), strings.Contains(l.Title, "Working…"):
				t.Fatalf("%s at %d: a prompt under the title %q", c.file, i, l.Title)
			case blank(l.line(at)) && !fits("", d.screen.Box.Text) && !strings.Contains(c.file, "-reader-"):
				t.Fatalf("%s at %d: a prompt without its glyph", c.file, i)
			}
		}
		if r.Activity != c.activity || r.Detail != c.detail || r.NotPromptReason != c.why || r.Draft != c.draft {
			if c.activity != reducer.Starting { // what has ended is known from its exit
				t.Errorf("%s: %s %q, why %q, draft %q", c.file, r.Activity, r.Detail, r.NotPromptReason, r.Draft)
			}
		}
		if r.Prompt != (c.why == "") {
			t.Errorf("%s: prompt %v at the end", c.file, r.Prompt)
		}
	}
}

// BenchmarkCaptures does what a runner does: it writes output to the screen in the kernel's pieces, and reads after
// each.
func BenchmarkCaptures(b *testing.B) {
	for b.Loop() {
		size := 0
		for _, c := range captures {
			b.StopTimer() // a screen is made once
			data, err := readRecording(c.file)
			if err != nil {
				b.Fatal(err)
			}
			name, _, _ := strings.Cut(c.file, "-")
			d, _ := Named(name)
			s, r := screen.New(100, 30, 500), Reading{}
			b.StartTimer()
			for piece := range slices.Chunk(data, 4095) {
				s.Write(piece)
				r = d.Read(LookAt(s), r)
			}
			size += len(data)
		}
		b.SetBytes(int64(size))
	}
}
