package screen

import (
	"bytes"
	"regexp"
)

const (
	escape    = 0x1b
	maxString = 1024 // bytes of a string that are kept
)

// stringPattern is a string that programs send to their terminal (OSC, DCS, APC, PM, SOS): what an OSC says, and what
// ends it. Only BEL (for OSC) and ESC \ do; the byte 0x9C does not, since it stands in the UTF-8 of "✳". CAN and SUB
// break it off, and another sequence too, which is not taken out. At the text's end it is also the beginning of one.
var stringPattern = regexp.MustCompile(`\x1b(?:\]([^\a\x1b\x18\x1a]*)|[P_^X][^\x1b\x18\x1a]*|$)` +
	`(\a|\x1b\\|[\x18\x1a]|\x1b?$|)`)

// withoutStrings takes the strings out of a stream, wherever they are torn, and does what OSC strings ask.
func (s *Screen) withoutStrings(p []byte) (out []byte) {
	p = append(s.partialString, p...)
	s.partialString = nil
	for at := stringPattern.FindSubmatchIndex(p); at != nil; at = stringPattern.FindSubmatchIndex(p) {
		found, end := p[at[0]:at[4]], string(p[at[4]:at[5]])
		found = found[:min(len(found), len("\x1b]")+maxString)]
		out, p = append(out, p[:at[0]]...), p[at[1]:]
		switch isWhole := end == "\a" || end == "\x1b\\"; {
		case isWhole && at[2] >= 0:
			s.runOSC(string(found[2:]), end)
		case len(p) == 0 && (end == "" || end == "\x1b"):
			s.partialString = append(bytes.Clone(found), end...)
		}
	}
	return append(out, p...)
}
