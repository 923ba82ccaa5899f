package driver

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agentteammail/atm/internal/driver/agents"
)

// careful is for a program of which nothing is known: every sign that is no ordinary punctuation may be a trigger.
var careful = agents.Typing{Refused: []agents.Pattern{{Regexp: regexp.MustCompile("[!#$&*/<>@\\\\^`{|}~]")}, {Regexp: linked}}}

// linked matches a link of Markdown.
var linked = regexp.MustCompile(`\]\s*\(`)

// AsData returns a text in the form in which the program, when the text is submitted, gives it to its model and acts on
// nothing in it. The legend says what stands for what in it: `\@ is an at sign`, or "" if the text is unchanged. It is not ok if
// there is no such form.
func (d *Driver) AsData(text string) (typed, legend string, ok bool) {
	typing := d.file.Typing
	if typing == nil {
		typing = &careful
	}
	var legends []string
	typed = text
	for _, e := range typing.Escapes {
		if e.Pattern.MatchString(typed) {
			typed, legends = e.Pattern.ReplaceAllString(typed, e.Typed), append(legends, e.Legend)
		}
	}
	pasted := strings.Join(d.Pastes(typed), "\n")
	for _, p := range typing.Refused {
		if actsOn(text, p.Regexp) || actsOn(pasted, p.Regexp) {
			return "", "", false
		}
	}
	return typed, strings.Join(legends, ", "), true
}

// Pastes returns the pieces in which a text is pasted, one right after the other: the whole, unless the program distrusts
// long pastes.
func (d *Driver) Pastes(text string) (pieces []string) {
	if d.file.Typing == nil || d.file.Typing.MaxPaste == 0 {
		return []string{text}
	}
	for line := range strings.Lines(text) {
		for n := d.file.Typing.MaxPaste; len(line) > n; n = d.file.Typing.MaxPaste {
			for !utf8.RuneStart(line[n]) {
				n--
			}
			pieces, line = append(pieces, line[:n]), line[n:]
		}
		pieces = append(pieces, line)
	}
	return pieces
}

// TakesAsIs reports whether the program takes what it gets in one piece for a text, with its line breaks, although it does
// not enable bracketed paste.
func (d *Driver) TakesAsIs() bool { return d.file.Typing != nil && d.file.Typing.AsIs }

// actsOn reports whether a pattern matches a text, or what is left of it if the program drops invisible characters, or
// takes backslashes for quotes.
func actsOn(text string, trigger *regexp.Regexp) bool {
	bare := func(r rune) rune {
		if r == '\\' || r > unicode.MaxASCII {
			return -1
		}
		return r
	}
	return trigger.MatchString(text) || trigger.MatchString(strings.Map(bare, text))
}
