package cmdline

import "strings"

// unknownFlag fails for a word that begins with - and is no flag here.
func (p *parse) unknownFlag(word string, l looked) {
	v, bare := p.verb(), strings.TrimLeft(l.typed, "-")
	path := p.app.path(p.path)
	switch {
	case strings.ContainsAny(l.typed, " \t\r\n"): // a list or a sentence, not a flag
		p.fail(Usage("%s begins with -, so it is no text", quoted(word)).WithHint(afterDashes))
		return
	case v == nil && l.flag != nil:
		p.fail(Usage("%s needs a command", l.typed).WithHint("%s help all", path))
		return
	}
	e := Usage("unknown flag %s", clipped(l.typed))
	if v != nil {
		e = Usage("unknown flag %s for %s", clipped(l.typed), path)
	}
	p.fail(e)
	if f := findShort(p.flagsHere(), bare); f != nil {
		e.WithHint("did you mean -%s %s?", bare[:1], bare[1:])
		return
	}
	var known []string
	for _, f := range p.flagsHere() {
		known = append(append(known, f.Name), f.Aliases...)
	}
	if near, ok := Nearest(bare, known); ok {
		e.WithHint("did you mean %s?", dashed(near)).WithCandidates(dashed(near))
	} else if v != nil && (strings.Contains(v.Args, "TEXT") || strings.Contains(v.Args, "WORDS")) {
		e.WithHint(afterDashes)
	} else {
		e.WithHint("%s --help", path)
	}
}

const afterDashes = "text that begins with - goes after --"

// flagsHere returns the flags that this verb understands.
func (p *parse) flagsHere() []*Flag {
	var all []*Flag
	add := func(flags []Flag) {
		for i := range flags {
			all = append(all, &flags[i])
		}
	}
	if v := p.verb(); v != nil {
		add(v.Common)
		add(v.Flags)
	}
	add(p.app.Flags)
	add(builtinFlags[:])
	return all
}

// findShort returns the flag that "n5" means where -n takes a number.
func findShort(flags []*Flag, bare string) *Flag {
	if len(bare) < 2 || strings.Trim(bare[1:], "0123456789") != "" {
		return nil
	}
	for _, f := range flags {
		if f.Kind == Int && f.named(bare[:1], false) {
			return f
		}
	}
	return nil
}
