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

// resultsFile has the last result of each test, a line each. It is written if ATM_REAL_RESULTS is set, and docs/capabilities.md
// is made of it.
const resultsFile = "testdata/results.json"

var (
	resultsMu sync.Mutex
	results   []result // of this run
)

// noteResult notes how a test of a program ("claude 2.1.332") has ended.
func noteResult(t *testing.T, program string) {
	if t.Skipped() {
		return
	}
	name, version, _ := strings.Cut(program, " ")
	resultsMu.Lock()
	defer resultsMu.Unlock()
	results = append(results, result{t.Name(), name, version, time.Now().UTC().Format(time.DateOnly), !t.Failed()})
}

func readResults() (all []result, err error) {
	data, err := os.ReadFile(resultsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return all, cmp.Or(err, json.Unmarshal(data, &all))
}

// writeResults puts the results of this run in the place of older ones.
func writeResults() error {
	all, err := readResults()
	if err != nil || len(results) == 0 || os.Getenv("ATM_REAL_RESULTS") == "" {
		return err
	}
	for _, r := range results {
		all = slices.DeleteFunc(all, func(old result) bool { return old.Test == r.Test && old.Version == r.Version })
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b result) int { return cmp.Or(cmp.Compare(a.Test, b.Test), cmp.Compare(a.Version, b.Version)) })
	var lines []string
	for _, r := range all {
		line, _ := json.Marshal(r) // strings: cannot fail
		lines = append(lines, string(line))
	}
	return os.WriteFile(resultsFile, []byte("[\n"+strings.Join(lines, ",\n")+"\n]\n"), 0o644)
}
