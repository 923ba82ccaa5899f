package app

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/filestore"
	"github.com/agentteammail/atm/internal/maildir/once"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/config"
	"github.com/agentteammail/atm/internal/teamdir/git"
	"github.com/agentteammail/atm/internal/teamdir/input"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

// known are errors of the packages below, with the kind and the hint that Explain gives them. The first match counts.
var known = []struct {
	matches func(error) bool
	make    func(format string, args ...any) *failure.Error
	hint    failure.Hint
}{
	{isA[*config.Error], failure.Failed, "`atm doctor` names every mistake in team.toml"},
	{isA[*lockfile.HeldError], failure.Locked, "try again, or wait longer: --lock-timeout 30s"},
	{isA[*maildir.ContentError], failure.Usage, "send it as a file: --attach FILE"},
	{is(rootdir.ErrNewer), failure.Refused, "go install github.com/agentteammail/atm/cmd/...@latest, or the newest of https://github.com/agentteammail/atm/releases"},
	{is(teamdir.ErrOlderRuns), failure.Refused, "kill that process; mail that was being typed is typed again, marked"},
	{is(rootdir.ErrFormat), failure.Refused, "write 3 into its file FORMAT"},
	{is(git.ErrBusy), failure.Locked, "try again when git has ended; if no git runs, one that was killed has left that lock: remove it"},
	{is(git.ErrNoCommit), failure.Refused, "git add FILE, git commit: a worktree has only what is committed"},
	{is(git.ErrNoGit), failure.Refused, "put git on PATH, then try again"},
	{is(rootdir.ErrNoState), failure.Refused, "set HOME, or XDG_STATE_HOME to an absolute path that stays; then `atm init`"},
	{is(rootdir.ErrTracked), failure.Refused, "check out what does not have those that `atm init` lists, or have git forget them: git rm -r --cached FILE; a team file that git keeps is taken in by `atm init --toml FILE`"},
	{is(rootdir.ErrUntrusted), failure.Refused, "ask its owner; or make your own in another directory: `atm init --here alice bob me`"},
	{isUnsure, failure.Refused, "git status says more; then try again"},
	{isA[*rootdir.UnacceptedError], failure.Refused, "`atm init` shows what is there, and how to accept it"},
	{is(rootdir.ErrNoRoot, rootdir.ErrNotRoot), failure.NotFound, "`atm init alice bob me` at the top of your project; if it has a root: cd there, or --root DIR"},
	{is(post.ErrTooManyHops), failure.Refused, "end the turn without answering, or start a new thread: `atm send`"},
	{is(post.ErrDeclined), failure.Refused, "`atm team` shows who else could"},
	{is(post.ErrNotCounted), failure.Refused, "type it in a terminal of your own, outside of agents' programs"},
	{is(teamdir.ErrNoTeam), failure.NotFound, "`atm team ls` lists the teams; for another project: `atm link DIR --as NAME`; for another machine: `atm bridge trust HOST KEY`"},
	{isA[process.NoProgramError], failure.Failed, "install it, or name another program: `atm run NAME -- bash`"},
	{is(teamdir.ErrForbidden), failure.Refused, "only a person may change team.toml"},
	{is(ask.ErrNoQuestion, input.ErrAnswered), failure.NotFound, "`atm pending` lists the open questions"},
	{is(policy.ErrNotYours), failure.Refused, "approvers in team.toml says who may answer"},
	{is(session.ErrNotFound), failure.NotFound, "`atm session ls --all` lists them"},
	{is(mailbox.ErrNotFound), failure.NotFound, "`atm ls --all` lists your messages, `atm search WORDS` the team's"},
	{is(filestore.ErrNoContent), failure.NotFound, "ask for it again: `atm reply ID \"…\"`"},
	{is(filestore.ErrDamaged), failure.Failed, "ask for it again: `atm reply ID \"…\"`"},
	{is(mailbox.ErrNoMailbox), failure.NotFound, "`atm team` lists the members"},
	{is(mailbox.ErrExists), failure.Refused, "`atm team` lists the members; `atm team retire NAME` frees the name"},
	{is(maildir.ErrUnreadable), failure.Refused, "send as the inbox's owner"},
	{is(maildir.ErrRunning), failure.Refused, "stop it first: `atm stop NAME`"},
	{is(maildir.ErrBeingTyped), failure.Refused, "try again in a moment; once it is read, `atm withdraw ID` sends a notice"},
	{is(maildir.ErrNotHeld), failure.Refused, "`atm trace ID` says who has it"},
	{is(maildir.ErrWithdrawn), failure.Refused, "`atm show ID` still shows it"},
	{is(once.ErrName), failure.Usage, "--once parser/1"},
	{is(once.ErrDamaged), failure.Failed, "`atm ls --sent` shows whether it was sent; to send it again, delete that file"},
	{is(syscall.ENOSPC, syscall.EDQUOT), failure.Failed, "free some space, and try again; nothing was lost"},
	{is(durable.ErrNotDirectory, durable.ErrNotRegular, syscall.ENOTDIR, syscall.EROFS), failure.Failed, "`atm doctor`"},
	{is(fs.ErrPermission), failure.Refused, "`atm doctor`"},
}

func is(known ...error) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(known, func(k error) bool { return errors.Is(err, k) })
	}
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// isUnsure reports whether git did not say what it tracks in a root.
func isUnsure(err error) bool {
	e, ok := errors.AsType[*rootdir.UnacceptedError](err)
	return ok && e.Cause != nil
}

// IsOutputError reports whether writing to stdout failed.
func (g *Given) IsOutputError(err error) bool {
	p, ok := errors.AsType[*fs.PathError](err)
	f, isFile := g.Out.(*os.File)
	return ok && isFile && p.Path == f.Name()
}

// Explain gives any error an exit code and a hint. A *failure.Error keeps its own, and gets the message of what wraps it.
func (g *Given) Explain(err error) *failure.Error {
	e := g.explain(err)
	if !strings.HasPrefix(string(e.Hint), "ask") && !strings.Contains(string(e.Hint), "a person") && g.mayNot(e.Hint) {
		e.Hint = "ask your person: " + e.Hint
	}
	e.Hint = e.Hint.Map(g.Command)
	return e
}

// verbActs are the acts of verbs that are called otherwise.
var verbActs = map[string]policy.Act{
	"up": policy.Start, "down": policy.Stop, "type": policy.Type, "approve": policy.Answer, "reject": policy.Answer,
	"bridge": policy.Bridge, "link": policy.Link,
}

// mayNot reports whether a hint has a command that this process, of an agent, may not give.
func (g *Given) mayNot(hint failure.Hint) bool {
	if !programs.HasMark(os.Getenv) {
		return false
	}
	quiet := *g
	quiet.IsQuiet = true
	s, err := OpenTeam(&quiet)
	if err != nil {
		return false
	}
	defer s.Root.Close()
	isRefused := false
	hint.Map(func(command string) string {
		words := strings.Fields(command)
		i := 1 // atm run bob, atm team add bob
		if len(words) > 1 && (words[1] == "team" || words[1] == "session") {
			i = 2
		}
		verb, on := "", wire.Name("")
		if len(words) > i {
			verb = words[i]
		}
		if len(words) > i+1 {
			on = wire.Name(words[i+1])
		}
		act := cmp.Or(verbActs[verb], policy.Act(verb))
		if _, isAct := policy.Rights[act]; isAct {
			isRefused = isRefused || s.May(act, on) != nil
		}
		return command
	})
	return isRefused
}

func (g *Given) explain(err error) *failure.Error {
	if own, ok := errors.AsType[*failure.Error](err); ok {
		wrapped := *own
		wrapped.Message = err.Error()
		return &wrapped
	}
	if g.IsOutputError(err) {
		return failure.Failed("%w", err).WithHint("only the output failed: mail not shown stays unread, everything else was done")
	}
	if e, ok := errors.AsType[*teamdir.LinkError](err); ok {
		return explainLink(err, e)
	}
	if e, ok := errors.AsType[*teamdir.UnknownError](err); ok {
		return unknownAgent(err, e)
	}
	if e, ok := errors.AsType[*teamdir.UnknownHostError](err); ok {
		const hint = "`atm bridge trust %s KEY`; `atm bridge keygen` on that machine prints this line; a project on this machine: `atm link DIR --as %[1]s`"
		hosts := Strings(e.Hosts)
		return failure.NotFound("%s", err).WithHint(hint, e.Host).WithCandidates(hosts...).WithNearest(string(e.Host), hosts)
	}
	if e, ok := errors.AsType[*teamdir.WordError](err); ok {
		return failure.Usage("%w", err).WithHint("%s", listed(e.Members)).WithNearest(e.Word, Strings(e.Members))
	}
	if e, ok := errors.AsType[*presence.GroupError](err); ok {
		return explainGroup(err, e)
	}
	if e, ok := errors.AsType[*maildir.LeasedError](err); ok {
		return failure.Refused("%w", err).WithHint("`atm trace %s` says who has it", e.ID.Short(6))
	}
	if e, ok := errors.AsType[*post.NotYoursError](err); ok && e.Inbox != "" {
		return failure.Refused("%w", err).WithHint("`atm take %s`; then ack what it shows", e.Inbox)
	} else if ok {
		return failure.Refused("%w", err).WithHint("`atm trace %s` shows where it is", e.ID.Short(6))
	}
	if e, ok := errors.AsType[*post.AmbiguousError](err); ok {
		short := Shorts(e.Candidates)
		return failure.Ambiguous("%s", err).WithHint("type more digits: %s", short).WithCandidates(strings.Fields(short)...)
	}
	if e, ok := errors.AsType[*session.AmbiguousError](err); ok {
		return failure.Ambiguous("%s", err).WithHint("one of these: %s", Join(e.IDs)).WithCandidates(Strings(e.IDs)...)
	}
	if e, ok := errors.AsType[*rootdir.GoneError](err); ok {
		return failure.NotFound("%w", err).WithHint("a backup brings it back: `atm restore FILE --root %s`; a new one: `atm init alice bob me`; if it shall stay gone: rm %s",
			policy.Quote(e.Path), policy.Quote(e.Note))
	}
	if is(rootdir.ErrNoRoot, rootdir.ErrNotRoot)(err) {
		if e := g.noRoot(err); e.Hint != "" {
			return e
		}
	}
	if e, ok := errors.AsType[*session.Error](err); ok {
		return failure.Refused("%s", e.Reason).WithHint("`atm session ls --all` shows the state of each")
	}
	if e, ok := errors.AsType[*maildir.NotDurableError](err); ok {
		return failure.Failed("%s", err).WithHint("it was sent, do not send it again: `atm show %s`", e.ID)
	}
	if e, ok := errors.AsType[*maildir.IDTakenError](err); ok {
		own := "send yours with an id of its own"
		if e.IsYours {
			own = "send this one under another --once name, or another id"
		}
		return failure.Refused("%w", err).WithHint("`atm show %s` shows it; %s", e.ID.Short(6), own)
	}
	for _, k := range known {
		if !k.matches(err) {
			continue
		}
		hint := k.hint.Map(g.fill)
		isForbidden := errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
		if isForbidden && (programs.HasMark(os.Getenv) || os.Getenv("ATM_AGENT") != "") {
			hint = "a sandbox may forbid it: let it read and write the root, which `atm where` shows; otherwise: " + hint
		}
		return k.make("%w", err).WithHint("%s", hint)
	}
	return failure.Failed("%w", err)
}

// noRoot says what else to name in place of a root that was named and is none; no hint: none was named.
func (g *Given) noRoot(err error) *failure.Error {
	e, named, how := failure.NotFound("%w", err), g.Root, "--root"
	if named == "" {
		named, how = os.Getenv("ATM_ROOT"), "ATM_ROOT"
	}
	entries, _ := os.ReadDir(named)
	_, hasRoot := os.Stat(filepath.Join(named, rootdir.Name))
	switch {
	case named == "":
	case hasRoot == nil:
		e.WithHint("the root is %s in it: %s %s", rootdir.Name, how, policy.Quote(filepath.Join(named, rootdir.Name)))
	case how == "ATM_ROOT":
		e.WithHint("set ATM_ROOT to a root, or unset it: then the one of the working directory counts")
	case len(entries) == 0:
		e.WithHint("`atm init alice bob me` makes one there; or name another: --root DIR")
	default:
		e.WithHint("a root is the directory %s of a project: --root DIR/%[1]s", rootdir.Name)
	}
	return e
}

func explainGroup(err error, e *presence.GroupError) *failure.Error {
	switch {
	case len(e.Others) > 0:
		others := strings.ReplaceAll(Join(e.Others), " ", "")
		return failure.Ambiguous("%w", err).WithHint("`atm send %s \"…\"` is to the member; the others: `atm send %s \"…\"`", strings.TrimPrefix(e.Word, "@"), others)
	case strings.TrimPrefix(e.Word, "@") == "all":
		return failure.Usage("%w", err).WithHint("`atm team add NAME`")
	}
	return failure.Usage("%w", err).WithHint("`atm team` shows the groups")
}

// unknownAgent names the nearest member and, in a team of up to twelve, all of them.
func unknownAgent(err error, u *teamdir.UnknownError) *failure.Error {
	name, _, _ := strings.Cut(string(u.Name), "@")
	root := ""
	if u.Root != "" {
		root = " --root " + policy.Quote(u.Root)
	}
	e := failure.NotFound("%w", err).WithHint("`atm team%s` lists them", root)
	if u.Retired {
		return e.WithHint("`atm team restore %s --team %s%s` brings it back with its mail", name, u.Team, root)
	}
	if u.Planned {
		return e.WithHint("`atm team add %s --team %s%s` makes its mailbox, as atm up does for all in team.toml", name, u.Team, root)
	}
	var byName map[wire.Name][]wire.Name
	if u.In != nil {
		byName, _ = presence.Groups(u.In)
	}
	if members, isGroup := byName[u.Name]; isGroup {
		return e.WithHint("@%s is a group: %s; name one of them; mail to all: `atm send @%[1]s \"…\"`", u.Name, Join(members)).WithCandidates(Strings(members)...)
	}
	var groups []string
	for name := range byName {
		groups = append(groups, "@"+string(name))
	}
	slices.Sort(groups)
	if len(u.Members)+len(groups) <= 12 {
		e.WithHint("%s", listed(u.Members, groups...)).WithCandidates(Strings(u.Members)...)
	}
	return e.WithNearest(string(u.Name), append(Strings(u.Members), groups...))
}

// IsRefusal reports whether an error says that an answer is void and that retrying cannot help.
func IsRefusal(err error) bool {
	e, isOwn := errors.AsType[*failure.Error](err)
	return isOwn && (e.Code == "usage" || e.Code == "refused") || errors.Is(err, policy.ErrNotYours) || errors.Is(err, ask.ErrNoQuestion)
}

// fill puts the only word that was typed into a command, where it can stand.
func (g *Given) fill(command string) string {
	if g.isID() {
		command = strings.ReplaceAll(command, "ID", g.Word)
	}
	name, _, _ := strings.Cut(g.Word, ".") // of a retired member, a time follows
	if _, err := wire.ParseName(name); err == nil {
		command = strings.ReplaceAll(command, "NAME", name)
	}
	return command
}

func (g *Given) isID() bool {
	_, err := wire.ParseFragment(g.Word)
	return err == nil
}

// Command returns a command of atm with those of --root, --team and --as that this one was given, behind its words: the rules
// by which agents' programs allow commands begin with the verb. Other programs' commands stay as they are.
func (g *Given) Command(command string) string {
	if command != "atm" && !strings.HasPrefix(command, "atm ") {
		return command
	}
	flags, text, hasText := cutUnquoted(command, " -- ") // behind which flags are none
	if flags += g.Flags(command, "root", "team", "as"); hasText {
		flags += " -- " + text
	}
	return flags
}

// Commands is Command for several with semicolons between.
func (g *Given) Commands(list string) string {
	first, rest, isMore := cutUnquoted(list, "; ")
	if first = g.Command(first); isMore {
		first += "; " + g.Commands(rest)
	}
	return first
}

// cutUnquoted is strings.Cut at what is no part of a quoted word.
func cutUnquoted(command, at string) (before, after string, found bool) {
	for from := 0; ; {
		i := strings.Index(command[from:], at)
		if i < 0 {
			return command, "", false
		}
		from += i
		if _, err := policy.SplitWords(command[:from]); err == nil {
			return command[:from], command[from+len(at):], true
		}
		from++
	}
}
