//go:build linux || darwin

package acpfront

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/coder/acp-go-sdk"

	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/teams/rootdir"
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
func (f *front) permit(ctx context.Context, q policy.Request, isGuarded bool, subjects ...string) error {
	q.Dirs = []string{f.Dir, f.realDir}
	decision := f.Rules.First(q)
	if decision == "" && isGuarded {
		decision = policy.Ask
	}
	wasAsked, answer := false, false
	f.do(func() {
		for _, subject := range subjects {
			if yes, ok := f.turn.answered(subject); ok {
				wasAsked, answer = true, yes
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
	r := &request{kind: "permission", tool: q.Tool, alias: q.Alias, prompt: q.Tool + ": " + q.Input, input: q.Input, isCommand: q.Command}
	r.options = []acp.PermissionOption{
		{OptionId: "allow", Name: "Allow", Kind: acp.PermissionOptionKindAllowOnce},
		{OptionId: "reject", Name: "Reject", Kind: acp.PermissionOptionKindRejectOnce},
	}
	f.do(func() { r.turn = f.turn })
	if f.ask(ctx, r) != 0 {
		return errNo
	}
	return nil
}

// answered returns what somebody has answered in this turn about a command or a path.
func (t *turn) answered(subject string) (yes, ok bool) {
	if t == nil {
		return false, false
	}
	yes, ok = t.answers[subject]
	return yes, ok
}

// noteAnswer keeps the answer to a request about a command or about paths.
func (r *request) noteAnswer(chosen int, locations []acp.ToolCallLocation) {
	if r.turn == nil || chosen < 0 {
		return
	}
	yes := strings.HasPrefix(string(r.options[chosen].Kind), "allow")
	if r.turn.answers == nil {
		r.turn.answers = map[string]bool{}
	}
	r.turn.answers[r.input] = yes
	for _, l := range locations {
		r.turn.answers[l.Path] = yes
	}
}

// namesGuarded matches a command that names git's own directory or a root.
var namesGuarded = regexp.MustCompile(`(?i)(^|[^\w.-])\.(git|atm)(/|$|[^\w.-])`)

// isGuarded reports whether a path in the member's directory leads into git's own directory or into a root, also through
// links. A link that leads to nothing yet may lead there.
func (f *front) isGuarded(rel string) bool {
	path, rest := filepath.Join(f.realDir, rel), ""
	real, err := filepath.EvalSymlinks(path)
	for ; err != nil && path != f.realDir; real, err = filepath.EvalSymlinks(path) {
		if _, isThere := os.Lstat(path); isThere == nil {
			return true
		}
		path, rest = filepath.Dir(path), filepath.Join(filepath.Base(path), rest)
	}
	at := filepath.Join(real, rest)
	inDir, _ := filepath.Rel(f.realDir, at)
	inRoot, _ := filepath.Rel(f.Root, at)
	dirInRoot, _ := filepath.Rel(f.Root, f.realDir)
	if filepath.IsLocal(inRoot) && !filepath.IsLocal(dirInRoot) {
		return true
	}
	return slices.ContainsFunc(strings.Split(inDir, string(filepath.Separator)), func(element string) bool {
		return strings.EqualFold(element, ".git") || strings.EqualFold(element, rootdir.Name)
	})
}
