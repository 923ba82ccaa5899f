package control

import (
	"encoding/json"
	"time"
)

// PaperFile is the file beside the socket in which a runner has written down what
// it runs: by it the next runner finds what one that was killed has left, and
// others learn whose process it is and how it brings mail. MaxPaper bounds it.
const (
	PaperFile = "run.json"
	MaxPaper  = 1 << 20
)

// Paper is what the file says.
type Paper struct {
	Run     string    `json:"run"`
	Kept    []string  `json:"kept,omitempty"` // earlier runs, whose processes were left running
	Runner  int       `json:"runner"`
	PID     int       `json:"pid,omitempty"` // of the program
	Started time.Time `json:"started"`
	Command []string  `json:"command"`
	Inject  string    `json:"inject,omitempty"`
}

// ParsePaper reads the file's text; ok is false for what no runner wrote.
func ParsePaper(data []byte) (p Paper, ok bool) {
	if json.Unmarshal(data, &p) != nil || p.Run == "" {
		return Paper{}, false
	}
	return p, true
}

// Encode writes it as the file has it.
func (p *Paper) Encode() ([]byte, error) {
	data, err := json.Marshal(p)
	return append(data, '\n'), err
}
