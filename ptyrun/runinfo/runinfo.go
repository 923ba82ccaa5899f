// Package runinfo is run.json in an agent's run directory, where a runner writes what it
// runs. By it the next runner finds what one that was killed has left, and others learn
// whose process it is and how it brings mail. It is no evidence of life: the lock is.
package runinfo

import (
	"encoding/json"
	"time"
)

// File is the name of the file, MaxSize a bound of its length in bytes.
const (
	File    = "run.json"
	MaxSize = 1 << 20
)

// Info is what the file says, as JSON.
type Info struct {
	Run     string    `json:"run"`
	Kept    []string  `json:"kept,omitempty"` // earlier runs, whose processes were left running
	Runner  int       `json:"runner"`
	PID     int       `json:"pid,omitempty"` // of the program
	Started time.Time `json:"started"`
	Command []string  `json:"command"`
	Inject  string    `json:"inject,omitempty"`
}

// Parse reads the file's text; ok is false for what no runner wrote.
func Parse(data []byte) (info Info, ok bool) {
	err := json.Unmarshal(data, &info)
	return info, err == nil && info.Run != ""
}
