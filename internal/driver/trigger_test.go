package driver

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// What the programs' own code takes for a trigger in a submitted text, as they search for it. Where their patterns look
// behind, the character before is matched as well.
var found = map[string]func(text string) bool{
	"claude": func(text string) bool {
		return claudeMention.MatchString(text) || claudeSkill.MatchString(text) || claudeWord.MatchString(text) ||
			hasClaudeImage(text)
	},
	"codex": func(text string) bool {
		return codexMention.MatchString(text) || codexLink.MatchString(text)
	},
	"gemini":   func(text string) bool { return geminiMention.MatchString(text) },
	"qwen":     func(text string) bool { return qwenMention.MatchString(text) },
	"cline":    func(text string) bool { return clineMention.MatchString(text) || clineSkill.MatchString(text) },
	"continue": func(string) bool { return false },
	"kilo":     func(string) bool { return false },
	"opencode": func(string) bool { return false },
	"copilot":  func(text string) bool { return copilotMention.MatchString(text) || copilotPaste.MatchString(text) },
	"pi":       func(text string) bool { return piPaste.MatchString(text) },
	"acp": func(text string) bool { // it may be any of these
		all := []*regexp.Regexp{claudeMention, claudeSkill, codexMention, codexLink, geminiMention, qwenMention, clineMention, clineSkill, copilotMention}
		return slices.ContainsFunc(all, func(acts *regexp.Regexp) bool { return acts.MatchString(text) })
	},
}

var (
	claudeMention  = regexp.MustCompile(`(^|[\s\p{Z}。、？！])@\S`)
	claudeSkill    = regexp.MustCompile(`(^|[\s\p{Z}。、？！])/[a-zA-Z]`)
	claudeWord     = regexp.MustCompile(`(?i)\bultra(think|code|plan|review)\b`)
	claudeImage    = regexp.MustCompile(`(?i)\.(png|jpe?g|gif|webp)$`)
	clineMention   = regexp.MustCompile(`(^|[\s\p{Z}])@\S|@"?(/|~/|\.{1,2}/)`)
	clineSkill     = regexp.MustCompile(`(^|[\s\p{Z}])/[a-zA-Z0-9_.-]`)
	codexMention   = regexp.MustCompile(`\$[a-zA-Z0-9_:-]`)
	codexLink      = regexp.MustCompile(`\[@[a-zA-Z0-9_:-]+\]\s*\(|\]\(thread://`)
	qwenMention    = regexp.MustCompile(`(^|[^\\])@`)
	geminiMention  = regexp.MustCompile(`(^|[^\\])@[^ \t\r\n,;!?()\[\]{}.]`)
	copilotPaste   = regexp.MustCompile(`\[Paste #\d`)
	copilotMention = regexp.MustCompile(`@[^\\\s]`)
	piPaste        = regexp.MustCompile(`\[paste #\d+( (\+\d+ lines|\d+ chars))?\]`)
)

func hasClaudeImage(pasted string) bool {
	return slices.ContainsFunc(claudePieces(pasted), func(s string) bool { return claudeImage.MatchString(unquoted(strings.TrimSpace(s))) })
}

// claudePieces are the parts of a pasted text that may be paths. Both versions split at line feeds; one of them at every
// blank before a path, the other also before a quoted one.
func claudePieces(text string) (pieces []string) {
	text = regexp.MustCompile(` (["']?(?:/|[A-Za-z]:\\))`).ReplaceAllString(text, "\n$1")
	return strings.Split(text, "\n")
}

// unquoted is a piece without its quotes and without the backslashes before characters.
func unquoted(s string) string {
	for _, quote := range []string{`"`, "'"} {
		if len(s) > 1 && strings.HasPrefix(s, quote) && strings.HasSuffix(s, quote) {
			s = s[1 : len(s)-1]
			break
		}
	}
	return regexp.MustCompile(`\\(.)`).ReplaceAllString(s, "$1")
}

// restore is what a reader makes of a typed text who knows the legend.
var restore = map[string]*strings.Replacer{
	"claude": strings.NewReplacer(`\@`, `@`, `\/`, `/`), "codex": strings.NewReplacer(`$\`, `$`),
	"gemini": strings.NewReplacer(`\@`, `@`), "qwen": strings.NewReplacer(`\@`, `@`), "opencode": strings.NewReplacer(),
	"cline": strings.NewReplacer(`\@\`, `@`, `\/`, `/`), "continue": strings.NewReplacer(), "kilo": strings.NewReplacer(),
	"pi": strings.NewReplacer(), "acp": strings.NewReplacer(), "copilot": strings.NewReplacer(`@\`, `@`),
}

func checkAsData(t *testing.T, text string) {
	t.Helper()
	for name, acts := range found {
		d, _ := Named(name)
		typed, legend, ok := d.AsData(text)
		if !ok {
			continue
		}
		// Claude Code drops invisible characters first.
		visible := strings.Map(func(r rune) rune {
			if unicode.In(r, unicode.Cf, unicode.Mn, unicode.Variation_Selector) {
				return -1
			}
			return r
		}, typed)
		if acts(typed) || acts(visible) {
			t.Errorf("%s acts on %q, typed for %q", name, typed, text)
		}
		if got := restore[name].Replace(typed); got != text {
			t.Errorf("%s: %q reads as %q, and was %q", name, typed, got, text)
		}
		if acts(legend) || acts("x ("+legend+")") || (legend == "") != (typed == text) {
			t.Errorf("%s: the legend of %q is %q", name, typed, legend)
		}
	}
}

// What programs act on, in all places where somebody may put it.
var triggers = []string{
	"@secret.txt", "@/etc/hostname", "@~/key.pem", `@"a b.txt"`, "@./dir/", "@file#L1-5", "@agent-x", `@"x (agent)"`, "@server:resource",
	"@[x](claude-ref:1 \"y\")", "@bob", "/init", "/plugin:skill", "//x", "ultrathink", "UltraCode", "ultra\u200bthink", "ultrareview",
	"/a/b.png", "b.JPEG", `/a/b\ c.gif`, `"/a/b.webp"`, "'b.png'", "file:///a/b.png", `/a/b.p\ng`, `/a/b\.png`, "/a/b.png /c/d.png", `"/a b.png" "/c.png"`,
	`C:\b.png`, "b.png\u200b", "b.png\u3000", "$skill", "[$x](path)", `\$skill`, "$$skill", "[@x](plugin://y)", "[x](app://y)", "[x](thread://y)",
	"[Pasted text #1 +3 lines]", "[Image #1]", "[...Truncated text #1 +3 lines...]", "[Pasted Text: 5 lines]", "[Pasted Content 1149 chars]", "[paste #1 +22 lines]", "[paste #2 1234 chars]",
}

var places = []string{
	"%", "see %", "see %, please", "(%)", "[%]", "{%}", `"%"`, "'%'", "`%`", ",%", "。%", "见%", "x\t%", "x\n%", "x\n   %  \ny", "x\u00a0%", "x\u3000%", "x\u200b%",
	"x\ufeff%", "a%", `\%`, `\\%`, "%%", "% %", "mail me@example.com, %", "x\u2028%",
}

func TestAsData(t *testing.T) {
	for _, trigger := range triggers {
		for _, place := range places {
			checkAsData(t, strings.ReplaceAll(place, "%", trigger))
		}
	}
}

// What a long line is cut into holds no trigger either.
func TestAsDataInPieces(t *testing.T) {
	path := " /a/b.png"
	for n := 680; n < 720; n++ {
		text := strings.Repeat("x", n-len(path)) + path + " is what I mean."
		typed, _, ok := claude.AsData(text)
		for _, piece := range claude.Pastes(typed) {
			if ok && hasClaudeImage(piece) {
				t.Errorf("%d: it attaches the piece %q", n, piece)
			}
		}
	}
}

func TestPastes(t *testing.T) {
	text := "one\n\n\ttwo\n" + strings.Repeat("é", 1000) + "\n" + strings.Repeat("日本", 350) + "x\nlast "
	for _, d := range []*Driver{claude, codex} {
		pieces := d.Pastes(text)
		if strings.Join(pieces, "") != text {
			t.Errorf("%s: %q", d.Name, pieces)
		}
		for _, p := range pieces {
			if d == claude && (len(p) > 700 || strings.Contains(strings.TrimSuffix(p, "\n"), "\n") || !utf8.ValidString(p)) {
				t.Errorf("%s: the piece %q", d.Name, p)
			}
		}
	}
	if pieces := codex.Pastes(text); len(pieces) != 1 {
		t.Errorf("codex gets %d pieces", len(pieces))
	}
}

func FuzzAsData(f *testing.F) {
	for _, trigger := range triggers {
		f.Add("see " + trigger + "\n" + trigger + "\\@ $\\ \\/")
	}
	f.Fuzz(checkAsData)
}

// What is ordinary in mail is typed as it is, or with an escape or two, and what cannot be escaped is not.
func TestWhatIsTyped(t *testing.T) {
	for _, c := range []struct{ driver, text, want string }{
		{"claude", "a/b and https://example.com/x, </div>, 1/2: ~/x ./y", "a/b and https://example.com/x, </div>, 1/2: ~/x ./y"},
		{"claude", "see /tmp/x.log, me@example.com", `see \/tmp/x.log, me\@example.com`},
		{"claude", `already \@ and \/`, `already \\@ and \\/`},
		{"claude", "the logo.png is too large", "the logo.png is too large"},
		{"claude", "the logo.png", ""},
		{"claude", "ultrathink about it", ""},
		{"claude", "think harder, for $5", "think harder, for $5"},
		{"codex", "cp $HOME/@x $5, /tmp/logo.png", `cp $\HOME/@x $\5, /tmp/logo.png`},
		{"codex", "[@x](plugin://y)", ""},
		{"gemini", "me@example.com: $HOME /tmp", `me\@example.com: $HOME /tmp`},
		{"cline", "me@example.com: @/etc/hosts /tmp", `me\@\example.com: \@\/etc/hosts \/tmp`},
		{"qwen", "me@example.com: $HOME /tmp", `me\@example.com: $HOME /tmp`},
		{"opencode", "me@example.com: $HOME /tmp ultrathink", "me@example.com: $HOME /tmp ultrathink"},
		// Nothing is known of what a program without a driver does. Over the Agent Client Protocol that is less.
		{"none", `[atm 9f3a1c from alice, now] answer: atm reply 9f3a1c "…"` + "\n  Is the parser done? (3 of 4)", `[atm 9f3a1c from alice, now] answer: atm reply 9f3a1c "…"` + "\n  Is the parser done? (3 of 4)"},
		{"none", "me@example.com", ""}, {"none", "a/b", ""}, {"none", "#1", ""}, {"none", "{x}", ""}, {"none", "[x](y)", ""},
		{"acp", "see cmd/main.go: #1 {x} [x](y) https://example.com", "see cmd/main.go: #1 {x} [x](y) https://example.com"},
		{"acp", "me@example.com", ""}, {"acp", "run /init", ""}, {"acp", "see $x", ""}, {"acp", "[x](plugin://y)", ""},
	} {
		d, _ := Named(c.driver)
		if typed, _, ok := d.AsData(c.text); typed != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q is typed as %q, %v, want %q", c.driver, c.text, typed, ok, c.want)
		}
	}
}
