package teams

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/agentteammail/atm/mailbox"
)

// BadEnvelopes is where a team's bridge keeps what it did not accept: each envelope under its SHA-256, with the
// reason beside it. One without a reason is to be tried again.
const BadEnvelopes = mailbox.BridgeDir + "/bad"

// ReasonSuffix ends the name of a reason.
const ReasonSuffix = ".reason"

// BadReasons says why envelopes were not accepted, each reason once.
func (t *Team) BadReasons() (n int, reasons []string, errs error) {
	names, errs := t.Dir().Names(BadEnvelopes)
	for _, name := range names {
		if !strings.HasSuffix(name, ReasonSuffix) {
			continue
		}
		n++
		why, err := t.Dir().ReadFile(path.Join(BadEnvelopes, name), 4096)
		errs = errors.Join(errs, err)
		if text := strings.TrimSpace(string(why)); !slices.Contains(reasons, text) {
			reasons = append(reasons, text)
		}
	}
	return n, reasons, errs
}

// RetryBad has the bridge that runs, or the next one, try again what was not accepted, and says how many these are.
func (t *Team) RetryBad() (n int, errs error) {
	names, errs := t.Dir().Names(BadEnvelopes)
	for _, name := range names {
		if strings.HasSuffix(name, ReasonSuffix) {
			errs = errors.Join(errs, t.Dir().Remove(path.Join(BadEnvelopes, name)))
			n++
		}
	}
	return n, errs
}
