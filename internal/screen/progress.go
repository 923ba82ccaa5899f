package screen

import "regexp"

// A Progress is the state of the bar that a program has its terminal show, with OSC 9;4; "": it never has. It is
// untrusted.
type Progress string

const (
	NoProgress            Progress = "none" // the program has taken its bar away
	NormalProgress        Progress = "normal"
	FailedProgress        Progress = "error"
	IndeterminateProgress Progress = "indeterminate" // it works, and cannot say how long
	PausedProgress        Progress = "paused"
)

var progresses = []Progress{NoProgress, NormalProgress, FailedProgress, IndeterminateProgress, PausedProgress}

// progressPattern matches what follows "9;" in the sequence: a state, and perhaps how many percent are done.
var progressPattern = regexp.MustCompile(`^4;([0-4])(?:;\d{0,3})?;?$`)

// ClearProgress makes a terminal take the bar away. Some show it as a notification, so it is only for one that has been
// shown a bar.
const ClearProgress = "\x1b]9;4;0;\a"

// takeProgress carries out an OSC 9, which is also a notification in some terminals.
func (s *Screen) takeProgress(text string) {
	if found := progressPattern.FindStringSubmatch(text); found != nil {
		s.progress, s.bar = progresses[found[1][0]-'0'], "\x1b]9;"+text+"\a"
	}
}

// Progress returns the state of the program's progress bar.
func (s *Screen) Progress() Progress { return s.progress }
