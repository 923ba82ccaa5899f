//go:build unix

package crashtest

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"regexp"
	"strings"

	"github.com/agentteammail/atm/internal/testround"
)

// A token is the name of a text: every text that a test sends has one of its
// own, and says itself whether it is whole.
//
//	tok <16 hex> <length> <checksum of the lines>
//	some lines
//	end <16 hex>
type token string

var (
	headLine = regexp.MustCompile(`tok ([0-9a-f]{16}) ([0-9]+) ([0-9a-f]{8})`)
	// A longer text is cut by read, which says so in the line that follows.
	cutLine = regexp.MustCompile(`^… .* more: atm show `)
)

// write makes a token, and a text that has about so many bytes.
func write(size int) (token, string) {
	t := token(fmt.Sprintf("%016x", testround.Rand.Uint64()))
	var b strings.Builder
	for b.Len() < size {
		for range 10 + testround.Rand.IntN(60) {
			b.WriteByte("abcdefghijklmnopqrstuvwxyz "[testround.Rand.IntN(27)])
		}
		b.WriteString(".\n")
	}
	lines := b.String()
	return t, fmt.Sprintf("tok %s %s\n%send %s", t, sum(lines), lines, t)
}

func sum(lines string) string {
	return fmt.Sprintf("%d %08x", len(lines), crc32.ChecksumIEEE([]byte(lines)))
}

// someSize is the size of a text: most are a few lines.
func someSize() int {
	switch testround.Rand.IntN(30) {
	case 0:
		return 20_000 + testround.Rand.IntN(60_000)
	case 1, 2, 3:
		return 4000
	}
	return testround.Rand.IntN(500)
}

// tokenOf is the token of a text, "" if it has none; whole says that nothing
// of it is missing and nothing is beside it.
func tokenOf(text string) (t token, whole bool) {
	m := headLine.FindStringSubmatchIndex(text)
	if m == nil {
		return "", false
	}
	t = token(text[m[2]:m[3]])
	if m[0] != 0 {
		return t, false
	}
	lines, ok := strings.CutPrefix(text[m[1]:], "\n")
	lines, ended := strings.CutSuffix(lines, "end "+string(t))
	if !ok || !ended {
		return t, false
	}
	return t, text[m[4]:m[7]] == sum(lines)
}

// shown are the tokens of the texts that somebody who got this output of read
// has seen: whole, or as much as read shows of a long one. begun are those of
// which they saw the first line at least.
func shown(output string) (out, begun []token) {
	var text []string // of the letter so far, nil outside one
	flush := func() {
		if t, whole := tokenOf(strings.Join(text, "\n")); whole {
			out = append(out, t)
		}
		text = nil
	}
	for line := range strings.SplitSeq(output, "\n") {
		in, isBody := strings.CutPrefix(line, "  ")
		switch {
		case isBody && headLine.MatchString(in) && strings.HasPrefix(in, "tok "):
			text = []string{in}
			begun = append(begun, token(headLine.FindStringSubmatch(in)[1]))
		case text == nil:
		case isBody:
			if text = append(text, in); in == "end "+string(begun[len(begun)-1]) {
				flush()
			}
		case cutLine.MatchString(line):
			t, _ := tokenOf(text[0])
			out = append(out, t)
			text = nil
		default:
			text = nil
		}
	}
	return out, begun
}

// inJSON are the texts in a whole document of read, or of send --wait-reply.
func inJSON(s string) (out []token) {
	var list struct {
		Messages []letter
		Reply    letter
	}
	if json.Unmarshal([]byte(s), &list) != nil {
		return nil
	}
	for _, m := range append(list.Messages, list.Reply) {
		if t, _ := tokenOf(m.Body); t != "" {
			out = append(out, t)
		}
	}
	return out
}
