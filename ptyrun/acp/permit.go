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
// somebody has rejected in this turn, and what a rule says to ask about is asked, unless somebody has allowed just that.
// alias is another way in which a request of the agent may have written the input.
func (a *Agent) permit(ctx context.Context, t *turn, q policy.Request, isGuarded bool, alias string) error {
	q.Dirs = []string{a.Dir, a.realDir}
	decision := a.Rules.First(q)
	if decision == "" && isGuarded {
		decision = policy.Ask
	}
	var isAllowed, wasAsked bool
	a.do(func() { isAllowed, wasAsked = t.answerTo(deed{acp.ToolKind(q.Tool), q.Input}, alias) })
	switch {
	case decision == policy.Deny:
		return errDenied
	case wasAsked && !isAllowed:
		return errNo
	case wasAsked || decision != policy.Ask:
		return nil
	}
	asked := newQuestion("permission", q.Tool+": "+q.Input)
	asked.Tool, asked.Input, asked.request, asked.turn = q.Tool, q.Input, q, t
	asked.addOption(acp.PermissionOption{OptionId: "allow", Name: "Allow", Kind: acp.PermissionOptionKindAllowOnce})
	asked.addOption(acp.PermissionOption{OptionId: "reject", Name: "Reject", Kind: acp.PermissionOptionKindRejectOnce})
	a.do(func() { a.ask(asked) })
	if a.await(ctx, asked) != 0 {
		return errNo
	}
	return nil
}

// deed is what a call does, and with which path or command.
type deed struct {
	kind  acp.ToolKind
	input string
}

// answerTo returns how a question about a deed was answered in this turn. A yes is one to that deed alone: who lets a file
// be read has not let it be written. A no is one to all that names the same, until it was asked about itself.
func (t *turn) answerTo(d deed, alias string) (isAllowed, wasAsked bool) {
	if t == nil {
		return false, false
	}
	if isAllowed, wasAsked = t.answers[d]; wasAsked {
		return isAllowed, true
	}
	for other, isAllowed := range t.answers {
		if !isAllowed && (other.input == d.input || other.input == alias) {
			return false, true
		}
	}
	return false, false
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
