package failure

import (
	"io"
	"sync"

	"github.com/agentteammail/atm/cmd/internal/output"
	"github.com/agentteammail/atm/internal/letter"
)

var progress struct {
	sync.Mutex
	isShown bool
}

// ShowProgress shows a line on stderr, which must be a terminal, in place of the one before; "" removes it. PrintLine
// removes it too.
func ShowProgress(stderr io.Writer, text string) {
	progress.Lock()
	defer progress.Unlock()
	if text == "" && !progress.isShown {
		return
	}
	progress.isShown = text != ""
	io.WriteString(stderr, "\r\x1b[K"+letter.Fit(text, max(output.Width(stderr)-1, 1)))
}
