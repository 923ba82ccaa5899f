package driver

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agentteammail/atm/internal/screen"
	"github.com/agentteammail/atm/internal/testround"
	"github.com/agentteammail/atm/reducer"
)

var update = flag.Bool("update", false, "write what is read into testdata/readings.txt: read that before you commit it")

// files lists the recordings of the real programs, from the start to the state in the file's name.
func files(t testing.TB) (names []string) {
	t.Helper()
	for _, dir := range []string{recordings, "testdata"} {
		found, _ := filepath.Glob(filepath.Join(dir, "*.bin"))
		for _, f := range found {
			names = append(names, strings.TrimSuffix(filepath.Base(f), ".bin"))
		}
	}
	if len(names) == 0 {
		t.Fatal("no recordings")
	}
	slices.Sort(names)
	return names
}

// testdata/readings.txt has what is read from each recording.
func TestRecordings(t *testing.T) {
	got := ""
	for _, file := range files(t) {
		got += file + ": " + describe(driverOf(t, file).Read(lookAt(recording(t, file)), Reading{})) + "\n"
	}
	const golden = "testdata/readings.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	was := strings.Split(string(want), "\n")
	for i, line := range strings.Split(got, "\n") {
		if i >= len(was) || line != was[i] {
			t.Fatalf("line %d: %s", i+1, line)
		}
	}
}

// asking and going are texts of dialogs and of open turns: an oracle that knows nothing of boxes.
var (
	asking = []string{"Do you want to proceed?", "Quick safety check", "Press enter to confirm", "Trust this folder?", "Do you trust the files", "Permission required", "Allow execution of"}
	going  = []string{"esc to interrupt", "esc interrupt", "esc to cancel", "Running…"}
)

// sequence matches an escape sequence or a character.
var sequence = regexp.MustCompile(`(?s)\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\a\x1b]*(?:\a|\x1b\\)|\x1b.|.`)

// Programs draw without frames, and a pipe cuts anywhere: after no byte may a half-drawn screen, a dialog or a busy
// screen be read as a prompt.
func TestRecordingsByteByByte(t *testing.T) {
	t.Parallel()
	stride := 97
	if testround.IsLong {
		stride = 1 // takes minutes
	}
	for _, file := range files(t) {
		b, d, s, r, n := recording(t, file), driverOf(t, file), screen.New(100, 30, 100), Reading{}, 0
		for _, at := range sequence.FindAllIndex(b, -1) {
			s.Write(b[at[0]:at[1]])
			if n++; n%stride != 0 && at[1] < len(b) {
				continue
			}
			l := LookAt(s)
			if r = d.Read(l, r); !r.Prompt {
				continue
			}
			prompt := d.Explain(l)
			bottom := strings.Join(l.Lines[max(0, prompt[len(prompt)-1].Row-1):], "\n")
			hasAny := func(texts []string) bool {
				return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(bottom, text) })
			}
			if l.Modes.Sync || r.Activity != reducer.Idle || hasAny(asking) || hasAny(going) || strings.Contains(l.Title, "Action Required") || strings.Contains(l.Title, "Working…") {
				t.Fatalf("%s at %d: %s and a prompt, under the title %q, on\n%s", file, at[1], r.Activity, l.Title, strings.Join(l.Lines, "\n"))
			}
		}
	}
}

// BenchmarkRecordings does what a runner does: it writes output to the screen in the kernel's pieces, and reads after each.
func BenchmarkRecordings(b *testing.B) {
	for b.Loop() {
		size := 0
		for _, file := range files(b) {
			b.StopTimer() // a screen is made once
			data, d, s, r := recording(b, file), driverOf(b, file), screen.New(100, 30, 500), Reading{}
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
