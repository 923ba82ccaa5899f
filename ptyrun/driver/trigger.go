package driver

import (
	"regexp"
	"strings"
	"unicode"
)

// A triggerStyle says on what a program acts in a submitted text, beside giving it to the model: it attaches the file
// behind an @, loads a skill, thinks harder. It is what the program's code says, tried with the versions that the
// package comment names and newer ones.
type triggerStyle struct {
	escapes []escaping
	others  []*regexp.Regexp // what the program acts on in any form; they are matched as in actsOn
}

// An escaping is the form in which a program leaves a trigger alone. Its typed form must not come from anything else, so
// that who knows the legend can restore the exact text.
type escaping struct {
	trigger *regexp.Regexp
	typed   string // a template of package regexp
	legend  string
}

// careful is for a program of which nothing is known: every sign that is no ordinary punctuation may be a trigger.
var careful = triggerStyle{others: []*regexp.Regexp{pattern("[!#$&*/<>@\\\\^`{|}~]"), linked}}

// linked matches a link of Markdown.
var linked = pattern(`\]\s*\(`)

// AsData returns a text in the form in which the program, when the text is submitted, gives it to its model and acts on
// nothing in it. The legend says what stands for what in it: `\@ is an at sign`, or "" if the text is unchanged. It is not ok if
// there is no such form.
func (d *Driver) AsData(text string) (typed, legend string, ok bool) {
	style := d.triggers
	if style == nil {
		style = &careful
	}
	for _, other := range style.others {
		if actsOn(text, other) {
			return "", "", false
		}
	}
	var legends []string
	for _, e := range style.escapes {
		if e.trigger.MatchString(text) {
			text, legends = e.trigger.ReplaceAllString(text, e.typed), append(legends, e.legend)
		}
	}
	return text, strings.Join(legends, ", "), true
}

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
