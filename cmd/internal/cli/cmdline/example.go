package cmdline

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/policy"
)

// Example returns the first example of a command, without its explanation.
func Example(c *cli.Command) string {
	example, _, _ := strings.Cut(firstLine(c.UsageText), "    ")
	return example
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// standIns are the flags that take the place of an argument, by what ArgsUsage calls that.
var standIns = map[string][]string{"TO": {"to", "all"}, "TEXT": {"message", "file", "enter"}, "FILE": {"agent"}}

// Completed returns the command line, quoted for a shell, with words of the command's example, or of the one that is
// given, for the arguments that are missing. It keeps the command's flags, since without one it would do something
// else; app.Given.Command adds those of all commands.
func (l *Line) Completed(example ...string) failure.Hint {
	if len(l.flags) == 0 && len(l.Words) == 0 && len(example) == 0 {
		command, explanation, isExplained := strings.Cut(firstLine(l.Command.UsageText), "    ")
		if isExplained {
			return failure.Say("`%s`; %s", command, strings.TrimSpace(explanation))
		}
		return failure.Say("`%s`", command)
	}
	if len(example) == 0 {
		example = exampleWords(l.Command)
	}
	words, names := []string{}, ArgNames(l.Command)
	for i := range max(len(example), len(l.Words)) {
		switch {
		case i < len(l.Words) && l.Words[i] != "":
			words = append(words, policy.Quote(l.Words[i]))
		case i < len(example) && !l.hasStandIn(names[min(i, len(names)-1)]):
			words = append(words, example[i])
		}
	}
	flags, behind := []string{policy.QuoteAll(l.flags)}, len(words) // the index of the first word behind "--"
	if programAt := slices.Index(names, "CMD"); programAt > 0 {
		behind = min(programAt, behind)
	} else if slices.ContainsFunc(l.Words, isFlag) {
		behind = 0
	}
	if behind < len(words) {
		flags = append(flags, "--")
	}
	all := slices.Concat([]string{l.Command.HelpName}, words[:behind], flags, words[behind:])
	return failure.Say("`%s`", strings.Join(slices.DeleteFunc(all, func(word string) bool { return word == "" }), " "))
}

// hasStandIn reports whether a flag was typed in place of an argument.
func (l *Line) hasStandIn(arg string) bool {
	return slices.ContainsFunc(l.flags, func(word string) bool {
		f := l.flag(word)
		return f != nil && slices.ContainsFunc(f.Names(), func(name string) bool { return slices.Contains(standIns[arg], name) })
	})
}

var (
	shellWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"[^"]*"|'[^']*'|\S+`) })
	endsArgs  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(-[^-]|--.|[<>])`) }) // a flag, or where stdin comes from
)

// exampleWords returns the arguments in a command's example, as they are typed.
func exampleWords(c *cli.Command) (words []string) {
	_, args, _ := strings.Cut(Example(c), c.HelpName+" ")
	for _, word := range shellWord().FindAllString(args, -1) {
		if endsArgs().MatchString(word) {
			break
		}
		if word != "--" {
			words = append(words, word)
		}
	}
	return words
}

// Explained returns the examples of some commands that say what they do, each with that.
func Explained(program *cli.App, names ...string) (examples [][2]string) {
	for _, name := range names {
		for line := range strings.Lines(program.Command(name).UsageText) {
			example, explanation, isExplained := strings.Cut(strings.TrimSuffix(line, "\n"), "    ")
			if isExplained || example == "EOF" { // of the text above
				examples = append(examples, [2]string{example, strings.TrimSpace(explanation)})
			}
		}
	}
	return examples
}
