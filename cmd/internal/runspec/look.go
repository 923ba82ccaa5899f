package runspec

import "github.com/agentteammail/atm/reducer/ask"

// A Look is read from the stdin of `atm-runner look`, which reads a recorded screen and writes a Reading to its stdout.
type Look struct {
	Driver    string `json:"driver"`    // its name, or the path of its file
	Recording string `json:"recording"` // a file: a .cast, or the bytes that a program wrote
	Cols      int    `json:"cols"`      // of the terminal, unless the recording says it
	Rows      int    `json:"rows"`
}

// A Reading is what a driver reads from a screen.
type Reading struct {
	Driver   string        `json:"driver"`
	Screen   []string      `json:"screen"` // the rows, without styles
	Title    string        `json:"title"`
	State    string        `json:"state"` // unknown, idle, busy or blocked
	Detail   string        `json:"detail,omitempty"`
	IsPrompt bool          `json:"prompt"`         // a message would be typed now
	Gate     string        `json:"gate,omitempty"` // else why not
	Draft    string        `json:"draft,omitempty"`
	Dialog   *ask.Question `json:"dialog,omitempty"` // what it asks
	Keys     []string      `json:"keys,omitempty"`   // that choose its options; "": unknown
	Matches  []Match       `json:"matches"`          // the patterns that fit; the first one counts
}

// A Match is a pattern of the driver's file that fits.
type Match struct {
	Key  string `json:"key"`  // asks, busy or prompt
	Row  int    `json:"row"`  // the first one that it matches, from 1 on; 0: the title
	Text string `json:"text"` // that it matches
}
