package failure

import (
	"io"
	"sync"

	"github.com/agentteammail/atm/cmd/internal/output"
	"github.com/agentteammail/atm/mailbox/letter"
)

var status struct {
	sync.Mutex
	isShown bool
}

// ShowStatus shows a line on stderr, which must be a terminal, in place of the one before; "" removes it. PrintLine
// removes it too.
func ShowStatus(stderr io.Writer, text string) {
	status.Lock()
	defer status.Unlock()
	if text == "" && !status.isShown {
		return
	}
	status.isShown = text != ""
	io.WriteString(stderr, "\r\x1b[K"+letter.Fit(text, max(output.Width(stderr)-1, 1)))
}
