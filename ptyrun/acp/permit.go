package acp

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/coder/acp-go-sdk"

	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/teams/policy"
)

var (
	errDenied  = errors.New("a rule of team.toml denies it")
	errNo      = errors.New("it was not allowed")
	errGuarded = errors.New("nothing is written for an agent into git's own directory or into the root of its team")
)

// permit returns an error unless the agent may have its client do something. The protocol leaves it to the agent to ask
// first, and what nobody was asked about is done, since the agent could do it itself; but not what a rule denies or what
// somebody has rejected in this turn, and what a rule says to ask about is asked. subjects are what a request of the agent
// for the same would have named.
func (a *Agent) permit(ctx context.Context, t *turn, q policy.Request, isGuarded bool, subjects ...string) error {
	q.Dirs = []string{a.Dir, a.realDir}
	decision := a.Rules.First(q)
	if decision == "" && isGuarded {
		decision = policy.Ask
	}
	wasAsked, answer := false, false
	a.do(func() {
		for _, subject := range subjects {
			if t != nil && !wasAsked {
				answer, wasAsked = t.answers[subject]
			}
		}
	})
	switch {
	case decision == policy.Deny:
		return errDenied
	case wasAsked && !answer:
		return errNo
	case wasAsked || decision != policy.Ask:
		return nil
	}
	asked := newQuestion("permission", q.Tool+": "+q.Input)
	d := &asked.Dialog
	d.Tool, d.Alias, d.Input, d.IsCommand = q.Tool, q.Alias, q.Input, q.Command
	asked.turn = t
	asked.addOption(acp.PermissionOption{OptionId: "allow", Name: "Allow", Kind: acp.PermissionOptionKindAllowOnce})
	asked.addOption(acp.PermissionOption{OptionId: "reject", Name: "Reject", Kind: acp.PermissionOptionKindRejectOnce})
	a.do(func() { a.ask(asked) })
	if a.await(ctx, asked) != 0 {
		return errNo
	}
	return nil
}

// namesGuarded matches a command that names git's own directory or a root.
var namesGuarded = regexp.MustCompile(`(?i)(^|[^\w.-])\.(git|atm)(/|$|[^\w.-])`)

// isGuarded reports whether a path in the member's directory leads into git's own directory or into a root, also through
// links. A link that leads to nothing yet may lead there.
func (a *Agent) isGuarded(rel string) bool {
	path, rest := filepath.Join(a.realDir, rel), ""
	real, err := filepath.EvalSymlinks(path)
	for ; err != nil && path != a.realDir; real, err = filepath.EvalSymlinks(path) {
		if _, isThere := os.Lstat(path); isThere == nil {
			return true
		}
		path, rest = filepath.Dir(path), filepath.Join(filepath.Base(path), rest)
	}
	at := filepath.Join(real, rest)
	inDir, _ := filepath.Rel(a.realDir, at)
	inRoot, _ := filepath.Rel(a.Root, at)
	dirInRoot, _ := filepath.Rel(a.Root, a.realDir)
	if filepath.IsLocal(inRoot) && !filepath.IsLocal(dirInRoot) {
		return true
	}
	return slices.ContainsFunc(strings.Split(inDir, string(filepath.Separator)), func(element string) bool {
		return strings.EqualFold(element, ".git") || strings.EqualFold(element, rootdir.Name)
	})
}
