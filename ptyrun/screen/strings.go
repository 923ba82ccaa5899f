package screen

import (
	"bytes"
	"regexp"
)

// stripper takes the strings that programs send to their terminal out of a stream: OSC, DCS, APC, PM and SOS. They may
// be torn anywhere. Only BEL (for OSC) and ESC \ end one; the byte 0x9C does not, since it stands in the UTF-8 of "✳".
type stripper struct {
	begun []byte // a string, or the ESC of one, whose end has not come
}

const (
	escape    = 0x1b
	maxString = 1024 // bytes of a string that are kept
)

// stringPattern is a string: what an OSC says, and what ends it. CAN and SUB break it off, and another sequence too,
// which is not taken out. It is also the beginning of one, at the end of the text.
var stringPattern = regexp.MustCompile(`\x1b(?:\]([^\a\x1b\x18\x1a]*)|[P_^X][^\x1b\x18\x1a]*|$)(\a|\x1b\\|[\x18\x1a]|\x1b?$|)`)

// filter returns p without strings, and calls osc for each OSC string that has ended, with what ended it.
func (s *stripper) filter(p []byte, osc func(text, end string)) (out []byte) {
	p = append(s.begun, p...)
	s.begun = nil
	for at := stringPattern.FindSubmatchIndex(p); at != nil; at = stringPattern.FindSubmatchIndex(p) {
		found, end := p[at[0]:at[4]], string(p[at[4]:at[5]])
		found = found[:min(len(found), len("\x1b]")+maxString)]
		out, p = append(out, p[:at[0]]...), p[at[1]:]
		switch isWhole := end == "\a" || end == "\x1b\\"; {
		case isWhole && at[2] >= 0:
			osc(string(found[2:]), end)
		case len(p) == 0 && (end == "" || end == "\x1b"):
			s.begun = append(bytes.Clone(found), end...)
		}
	}
	return append(out, p...)
}
