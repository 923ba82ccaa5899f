package screen

import (
	"bytes"
	"regexp"
)

const (
	escape    = 0x1b
	maxString = 1024 // bytes of a string that are kept
)

// stringPattern matches a string (OSC, DCS, APC, PM, SOS) and its end. BEL (of an OSC) and ESC \ end it; the byte 0x9C
// does not, because it is part of "✳". CAN and SUB cancel it, and so does another sequence, which is not removed. At
// the end of the text it also matches an incomplete string.
var stringPattern = regexp.MustCompile(`\x1b(?:\]([^\a\x1b\x18\x1a]*)|[P_^X][^\x1b\x18\x1a]*|$)` +
	`(\a|\x1b\\|[\x18\x1a]|\x1b?$|)`)

// withoutStrings removes the strings from a stream, wherever it is split, and carries out OSC strings.
func (s *Screen) withoutStrings(p []byte) (out []byte) {
	p = append(s.partialString, p...)
	s.partialString = nil
	for at := stringPattern.FindSubmatchIndex(p); at != nil; at = stringPattern.FindSubmatchIndex(p) {
		found, end := p[at[0]:at[4]], string(p[at[4]:at[5]])
		found = found[:min(len(found), len("\x1b]")+maxString)]
		out, p = append(out, p[:at[0]]...), p[at[1]:]
		isWhole := end == "\a" || end == "\x1b\\"
		switch {
		case isWhole && at[2] >= 0:
			s.runOSC(string(found[2:]), end)
		case len(p) == 0 && (end == "" || end == "\x1b"):
			s.partialString = append(bytes.Clone(found), end...)
		}
	}
	return append(out, p...)
}
