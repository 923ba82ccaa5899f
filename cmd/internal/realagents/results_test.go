package realagents

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A result is how a test of a real program ended when it was last run.
type result struct {
	Test    string `json:"test"`
	Program string `json:"program"`
	Version string `json:"version"`
	Date    string `json:"date"`
	Pass    bool   `json:"pass"`
}

// resultsFile has the last result of each test with each version, a line each. It is written if ATM_REAL_RESULTS is set, and
// docs/capabilities.md is made of it.
const resultsFile = "testdata/results.json"

var resultsMu sync.Mutex // of the file

// noteResult notes how a test of a program ("claude 2.1.332") has ended, at once: what has passed before a run is ended counts.
func noteResult(t *testing.T, program string) {
	if t.Skipped() || os.Getenv("ATM_REAL_RESULTS") == "" {
		return
	}
	name, version, _ := strings.Cut(program, " ")
	resultsMu.Lock()
	defer resultsMu.Unlock()
	all, err := readResults()
	if err == nil {
		err = writeResults(withResult(all, result{t.Name(), name, version, time.Now().UTC().Format(time.DateOnly), !t.Failed()}))
	}
	if err != nil {
		t.Errorf("the result is not noted: %v", err)
	}
}

func readResults() (all []result, err error) {
	data, err := os.ReadFile(resultsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return all, cmp.Or(err, json.Unmarshal(data, &all))
}

// withResult puts a result in the place of the one before it, of the same test with the same version. All others stay.
func withResult(all []result, r result) []result {
	all = slices.DeleteFunc(all, func(old result) bool {
		return old.Test == r.Test && old.Program == r.Program && old.Version == r.Version
	})
	all = append(all, r)
	slices.SortFunc(all, func(a, b result) int {
		return cmp.Or(cmp.Compare(a.Test, b.Test), cmp.Compare(a.Program, b.Program), cmp.Compare(a.Version, b.Version))
	})
	return all
}

func writeResults(all []result) error {
	var lines []string
	for _, r := range all {
		line, _ := json.Marshal(r) // strings: cannot fail
		lines = append(lines, string(line))
	}
	return os.WriteFile(resultsFile, []byte("[\n"+strings.Join(lines, ",\n")+"\n]\n"), 0o644)
}

// A run of a few tests leaves the results of all others as they are.
func TestResultsStay(t *testing.T) {
	old := result{"TestDay/claude", "claude", "2.1.197", "2026-11-01", false}
	other := result{"TestDay/claude", "claude", "2.1.332", "2026-11-01", true}
	again := result{"TestDay/claude", "claude", "2.1.197", "2026-11-02", true}
	if got := withResult([]result{old, other}, again); !slices.Equal(got, []result{again, other}) {
		t.Errorf("the results are %+v", got)
	}
}
