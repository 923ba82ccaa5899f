package mail

import (
	"errors"
	"strings"
	"testing"

	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/failure"
)

// What somebody may have meant who typed words for flags is in the hint, as a command.
func TestRefuseWords(t *testing.T) {
	s := newScope(t)
	for words, want := range map[string]string{
		"90":                 "atm wait 90s",
		"9f3a1c acked":       "atm wait --acked 9f3a1c",
		"reply":              "atm wait --reply ID",
		"bob idle":           "atm wait --idle bob",
		"turn-done bob":      "atm wait --turn-done bob",
		"bob and carol exit": "atm wait --exit bob,carol",
		"busy":               "atm wait --busy NAME",
		"all idle":           "atm wait --idle all",
		"9f3a1c":             "atm wait --reply 9f3a1c,",
		"bob":                "atm wait --idle bob,",
		"bob carol":          "atm wait --idle bob,carol,",
		"until it is over":   "atm wait 30s",
	} {
		all := strings.Fields(words)
		_, notADuration := cmdline.ParseDuration(all[0])
		e, isOurs := errors.AsType[*failure.Error](refuseWords(s, all, notADuration))
		if !isOurs || e.Hint.String() != want && !strings.HasPrefix(e.Hint.String(), want+" ") && (!strings.HasSuffix(want, ",") || !strings.HasPrefix(e.Hint.String(), want)) {
			t.Errorf("wait %s: %v", words, e)
		}
	}
}
