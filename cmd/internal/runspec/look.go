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
	Progress string        `json:"progress,omitempty"` // the state of its progress bar
	State    string        `json:"state"`              // as in the event agent_state
	Detail   string        `json:"detail,omitempty"`
	Failure  string        `json:"failure,omitempty"` // the error that ended the last turn
	IsPrompt bool          `json:"prompt"`            // a message would be typed now
	Gate     string        `json:"gate,omitempty"`    // else why not
	Draft    string        `json:"draft,omitempty"`
	Dialog   *ask.Question `json:"dialog,omitempty"` // what it asks
	Keys     []string      `json:"keys,omitempty"`   // that choose its options; "": unknown
	Answer   string        `json:"answer,omitempty"` // the text after the last message
	Matches  []Match       `json:"matches"`          // the rules that hold, by rows
}

// A Match is a rule of the driver's file that holds.
type Match struct {
	Rule  string `json:"rule"` // its key in the file
	Means string `json:"means,omitempty"`
	Line  int    `json:"line,omitempty"` // of the file
	Row   int    `json:"row"`            // of the screen, from 1 on; 0: it is no row
	Text  string `json:"text"`
	Style string `json:"style,omitempty"` // how the cells of the row are drawn that rules name
}
