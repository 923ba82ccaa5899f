package record_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentteammail/atm/ptyrun/internal/record"
)

// What a terminal shows is recorded for asciinema.
func Example() {
	dir, err := os.MkdirTemp("", "record-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "screen.cast")
	w, err := record.Create(record.Options{Path: path, Cols: 80, Rows: 24})
	if err != nil {
		fmt.Println(err)
		return
	}
	w.Output([]byte("hello\r\n"))
	w.Exit(0)
	fmt.Println(w.Close())
	data, _ := os.ReadFile(path)
	for line := range strings.Lines(string(data)) {
		if _, event, ok := strings.Cut(line, ","); ok && line[0] == '[' {
			fmt.Print(event)
		}
	}
	// Output:
	// <nil>
	// "o","hello\r\n"]
	// "x","0"]
}
