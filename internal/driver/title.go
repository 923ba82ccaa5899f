package driver

import (
	"strings"

	"github.com/agentteammail/atm/reducer"
)

// A title says what titles of one form mean. The first that fits counts.
type title struct {
	start string // the title begins so; "⠿" stands for any braille spinner
	means reducer.Activity
}

// braille is the sign for one of U+2801–U+28FF at the start of a text.
const braille = "⠿"

func (t title) fits(s string) bool {
	if t.start == braille {
		return startsBraille(s)
	}
	return strings.HasPrefix(s, t.start)
}

func startsBraille(s string) bool {
	for _, r := range s {
		return r > 0x2800 && r <= 0x28ff
	}
	return false
}

// titleSays is what the title is a witness of; Unknown: nothing.
func (d *Driver) titleSays(s string) reducer.Activity {
	s = strings.TrimSpace(s)
	for _, t := range d.titles {
		if t.fits(s) {
			return t.means
		}
	}
	return reducer.Unknown
}
