// Package command is what the verbs of atm share.
//
// A verb is a *cli.Command (github.com/urfave/cli/v2) in the package of its group. Its action gets a Scope (With),
// calls one thing and prints one value.
//
//	UsageText    examples, a line each; the first one is also a hint
//	Usage        its line in `atm help all`
//	Aliases      synonyms, which work and are listed nowhere
//	ArgsUsage    the positional arguments, which are counted: [X] is optional, X… repeats, CMD begins
//	             another program's command line. Args: true turns the counting off
//
// The way of a command line:
//
//	cmdline       Parse finds the verb, its flags and its arguments; what is unknown gets a hint.
//	              Then urfave/cli parses the values and calls the action
//	scope.go      With opens the root, the team and the identity that the action works with
//	explain.go    Report gives an error its exit code and its hint (package failure), and prints it
//
// Results go to stdout through Print alone, everything else to stderr through Warn. Text from outside is escaped where
// it becomes part of a line (letter.Escape).
package command
