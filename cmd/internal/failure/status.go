package failure

import (
	"os"
	"sync"

	"github.com/agentteammail/atm/mailbox/letter"
)

var status struct {
	sync.Mutex
	isShown bool
}

// ShowStatus shows a line on stderr, which must be a terminal, in place of the one before; "" removes it. PrintLine
// removes it too.
func ShowStatus(text string) {
	status.Lock()
	defer status.Unlock()
	if text == "" && !status.isShown {
		return
	}
	status.isShown = text != ""
	os.Stderr.WriteString("\r\x1b[K" + letter.Fit(text, max(Width(os.Stderr)-1, 1)))
}
