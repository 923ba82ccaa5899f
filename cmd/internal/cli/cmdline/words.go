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

// ArgNames returns the names of a command's positional arguments: TO, ID|NAME, TEXT.
func ArgNames(c *cli.Command) (names []string) {
	for field := range strings.FieldsSeq(c.ArgsUsage) {
		name, _, _ := strings.Cut(strings.Trim(field, "[]…"), "[")
		names = append(names, name)
	}
	return names
}

// CheckWords compares the number of words with the command's ArgsUsage. An empty word ("$UNSET") is none.
func CheckWords(c *cli.Context) error {
	command, words := c.Command, c.Args().Slice()
	names := ArgNames(command)
	if command.Args {
		return nil
	}
	isNameless := len(words) > 0 && words[0] == "" && slices.Contains([]string{"NAME", "AGENT", "WORDS", "FILE"}, names[0])
	if isNameless || len(words) < len(names)-strings.Count(" "+command.ArgsUsage, " [") {
		missing := command.ArgsUsage
		if isNameless { // "[NAME]": it may be left out, but is not
			missing = strings.Trim(strings.Fields(missing)[0], "[]")
		}
		return failure.Usage("%s needs %s", command.HelpName, missing).WithHint("%s", LineOf(c).Completed())
	}
	if len(words) <= len(names) || strings.Contains(command.ArgsUsage, "…") {
		return nil
	}
	if len(command.VisibleCommands()) > 0 { // the first one was meant as one of these
		return UnknownWord(command, words[0], words[1:]...)
	}
	return UnknownWord(command, words[len(names)])
}

// Completed returns the command line, quoted for a shell, with words of an example, or else of the command's first one, for
// the arguments that are missing. It keeps the command's flags, since without one it would do something else;
// app.Given.Command adds those of all commands.
func (l *Line) Completed(example ...string) failure.Hint {
	if len(l.flags)+len(l.Words)+len(example) == 0 {
		return failure.Say("`%s`", Example(l.Command))
	}
	if len(example) == 0 {
		example = exampleWords(l.Command)
	}
	var words []string
	for i := range max(len(example), len(l.Words)) {
		if i < len(l.Words) && l.Words[i] != "" {
			words = append(words, policy.Quote(l.Words[i]))
		} else if i < len(example) {
			words = append(words, example[i])
		}
	}
	behind := len(words) // the index of the first word behind "--"
	if programAt := slices.Index(ArgNames(l.Command), "CMD"); programAt > 0 {
		behind = min(programAt, behind)
	} else if slices.ContainsFunc(l.Words, isFlag) {
		behind = 0
	}
	all := append([]string{l.Command.HelpName}, words[:behind]...)
	for _, flag := range l.flags {
		all = append(all, policy.Quote(flag))
	}
	if behind < len(words) {
		all = append(append(all, "--"), words[behind:]...)
	}
	return failure.Say("`%s`", strings.Join(all, " "))
}

// Example returns the first example of a command, without its explanation. One that ends, removes or confirms something would
// act on who is in the example, and so it has a placeholder.
func Example(c *cli.Command) string {
	line, _, _ := strings.Cut(c.UsageText, "\n")
	example, _ := explained(line)
	if strings.HasPrefix(c.Category, "!") {
		example = strings.Replace(example, " bob", " NAME", 1)
	}
	return example
}

// explained splits an example, or words, from what it says of it four spaces behind.
func explained(line string) (example, explanation string) {
	example, explanation, _ = strings.Cut(line, "    ")
	return example, strings.TrimSpace(explanation)
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
			example, explanation := explained(strings.TrimSuffix(line, "\n"))
			if explanation != "" || example == "EOF" { // of the text above
				examples = append(examples, [2]string{example, explanation})
			}
		}
	}
	return examples
}
