package mail

import (
	"cmp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/cmdline"
	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/cli/failure"
	"github.com/agentteammail/atm/teams/policy"
)

// recipients splits flags and words into names and text. The hint of a refusal is the repaired command.
func recipients(c *cli.Context, s *command.Scope) (names, words []string, err error) {
	words, names = c.Args().Slice(), c.StringSlice("to")
	if c.Bool("all") {
		names = []string{"all"}
	}
	if len(names) > 0 {
		words = append([]string{strings.Join(names, ",")}, words...)
	} else {
		words = withoutFiller(s, words)
	}
	if len(words) == 0 {
		return nil, nil, s.NoRecipient()
	}
	first := strings.Fields(words[0])
	isOnlyText := len(names) == 0 && len(words) == 1 && len(first) > 1 && !c.IsSet("message")
	if isOnlyText && !isNameAndText(s, first) {
		return nil, nil, s.NoRecipient().WithHint("%s", cmdline.LineOf(c).Repaired(words, []string{"NAME", words[0]}))
	}
	if len(first) == 0 { // such as an empty variable
		e := s.NoRecipient()
		return nil, nil, e.WithHint("%s", cmp.Or(cmdline.LineOf(c).Repaired(words[:1], []string{"NAME"}), e.Hint))
	}
	apart := slices.Concat(first, words[1:])
	if c.IsSet("message") {
		apart = append(apart, "") // stands for the text, which is no name
	}
	if list, n := namesApart(s, apart); list != words[0] && list != "" {
		wrong, right := words[:max(1, n-len(first)+1)], append([]string{list}, first[min(n, len(first)):]...)
		return nil, nil, failure.Usage("recipients must be one word, separated by commas").
			WithHint("%s", cmp.Or(cmdline.LineOf(c).Repaired(wrong, right), "atm send "+policy.Quote(list)+" \"text\""))
	}
	names = append([]string{strings.TrimSuffix(words[0], ":")}, c.StringSlice("cc")...)
	return names, words[1:], nil
}

// withoutFiller drops what precedes the recipient in `send message to bob "…"`.
func withoutFiller(s *command.Scope, words []string) []string {
	for len(words) > 1 && slices.Contains([]string{"message", "mail", "to"}, words[0]) && !s.IsMember(words[0]) {
		words = words[1:]
	}
	return words
}

// isNameAndText reports whether a text that is the only word begins with a recipient: "bob: hello".
func isNameAndText(s *command.Scope, text []string) bool {
	_, err := s.Member(strings.ToLower(strings.TrimRight(text[0], ",:")))
	return err == nil
}

// namesApart finds recipients that were typed as several words (`bob, carol hello`, `bob carol hello`, `bob and carol
// hello`). It returns them with commas between, and their number of words. A last word that is a name may be the text.
func namesApart(s *command.Scope, words []string) (list string, n int) {
	var all []string
	for ; n < len(words); n++ {
		name := strings.TrimSpace(strings.Join(strings.FieldsFunc(words[n], func(r rune) bool { return r == ',' }), ","))
		hasComma := n > 0 && (strings.HasSuffix(words[n-1], ",") || strings.HasPrefix(words[n], ","))
		hasMore, names := n+1 < len(words), strings.Split(name, ",")
		areMembers := !slices.ContainsFunc(names, func(name string) bool { return !s.IsMember(name) })
		mayBeText := !hasComma && !hasMore && len(names) == 1
		isInList := hasComma && hasMore || areMembers && !mayBeText
		if n == 0 || isInList {
			all = append(all, name)
		} else if name != "and" {
			break
		}
	}
	all = slices.DeleteFunc(all, func(name string) bool { return name == "" }) // of a lone comma
	return strings.Join(all, ","), n
}
