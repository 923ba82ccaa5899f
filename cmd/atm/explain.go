package main

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/config"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// explain gives an error of the packages its exit code and the way out.
func (e *env) explain(err error) error {
	var done *cmdline.Error
	if err == nil || errors.As(err, &done) {
		return err
	}
	var unknown *teams.UnknownError
	var ambiguous *teams.AmbiguousError
	var held *lockfile.HeldError
	var format *teams.FormatError
	var untrusted *teams.UntrustedError
	var notDurable *mailbox.NotDurableError
	var hops *teams.HopError
	var path *fs.PathError
	var content *mailbox.ContentError
	var mistakes *config.Error
	var many *policy.ManyQuestionsError
	var leased *mailbox.LeasedError
	var place *teams.WorktreeError
	switch {
	case errors.As(err, &place):
		return cmdline.Failed("%s", err).WithHint("%s", place.Hint)
	case errors.As(err, &path) && path.Path == e.Stdout.Name():
		return cmdline.Failed("the output could not be written: %w", path) // with its cause: a reader that has gone is no error to speak of
	case errors.As(err, &content):
		return cmdline.Usage("%s", err).WithHint("what is no short text goes along as a file: --attach FILE")
	case errors.As(err, &unknown):
		return unknownAgent(unknown)
	case errors.As(err, &ambiguous):
		ids := make([]string, len(ambiguous.Candidates))
		for i, id := range ambiguous.Candidates {
			ids[i] = string(id)
		}
		return cmdline.Ambiguous("%s", err).WithHint("more digits: %s", shorts(ambiguous.Candidates)).WithCandidates(ids...)
	case errors.As(err, &held):
		return cmdline.Locked("%s", err).WithHint("try again, or wait longer: --lock-timeout 30s")
	case errors.As(err, &notDurable):
		return cmdline.Failed("%s", err).WithHint("retry with --id %s: it stays one message", notDurable.ID)
	case errors.As(err, &hops):
		return cmdline.Refused("%s; are two agents thanking each other?", err).WithHint("end the turn without an answer, or begin anew: atm send")
	case errors.As(err, &format):
		return cmdline.Failed("%s", err).WithHint("upgrade atm; `atm version` says which this is")
	case errors.As(err, &untrusted):
		return cmdline.Refused("%s", err).WithHint("name it to accept it: --root DIR")
	case errors.As(err, &mistakes):
		return e.tomlMistakes(mistakes)
	case errors.As(err, &many):
		return manyQuestions(many)
	case errors.Is(err, policy.ErrNotYours):
		if e.inAgent() {
			return cmdline.Refused("%s", err).WithHint("ask who may: atm send NAME \"…\"")
		}
		return cmdline.Refused("%s", err).WithHint("approvers in team.toml says who answers")
	case errors.Is(err, policy.ErrNoQuestion):
		return cmdline.NotFound("%s", err).WithHint("atm pending lists what is asked")
	case errors.Is(err, teams.ErrNoRoot):
		return cmdline.NotFound("%s", err).WithHint("atm init alice bob, where the project begins; one that is elsewhere: --root DIR")
	case errors.Is(err, teams.ErrNoTeam):
		return e.unknownTeam(err)
	case errors.Is(err, mailbox.ErrNotFound):
		return cmdline.NotFound("%s", err).WithHint("atm ls --all lists your messages, atm search WORDS the team's")
	case errors.Is(err, mailbox.ErrNoAgent):
		return cmdline.NotFound("%s", err).WithHint("atm team lists the members")
	case errors.Is(err, mailbox.ErrUnreadable):
		return cmdline.Refused("%s", err).WithHint("chmod g+rwx the team's directory, or send as the inbox's owner")
	case errors.Is(err, mailbox.ErrRunning):
		return cmdline.Refused("%s", err).WithHint("end its program first; atm status%s says which process it is", e.first())
	case errors.Is(err, mailbox.ErrBeingTyped):
		return cmdline.Refused("%s", err).WithHint("again in a moment: atm withdraw sends a notice to who has read it")
	case errors.As(err, &leased):
		return cmdline.Locked("%s", err).WithHint("take another: atm take")
	case errors.Is(err, mailbox.ErrNotHeld):
		return cmdline.Refused("%s", err).WithHint("atm trace%s says whose it is", e.subject())
	case errors.Is(err, teams.ErrNotShared):
		return cmdline.Refused("%s", err).WithHint("atm team add %s --shared", strings.TrimSpace(e.first()))
	case errors.Is(err, mailbox.ErrWithdrawn):
		return cmdline.Refused("%s", err).WithHint("atm show%s shows it again", e.subject())
	case errors.Is(err, mailbox.ErrExists):
		return cmdline.Refused("%s", err).WithHint("atm team lists who there is; atm team retire NAME makes room")
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		f := cmdline.Failed("%s", err)
		if errors.Is(err, fs.ErrPermission) {
			f = cmdline.Refused("%s", err)
		}
		if e.inAgent() || e.Getenv("ATM_AGENT") != "" {
			where := "the root"
			if e.root != nil {
				where = e.root.Path
			}
			f.WithHint("a sandbox may forbid it: let it write to %s", where)
		} else {
			f.WithHint("atm doctor")
		}
		return f
	case errors.Is(err, durable.ErrNotDirectory), errors.Is(err, syscall.ENOTDIR):
		return cmdline.Failed("%s", err).WithHint("atm doctor")
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return cmdline.Failed("%s", err).WithHint("free some space and send again; nothing was lost")
	}
	return err
}

// first is the command's first argument, for a hint.
func (e *env) first() string {
	if len(e.Args) == 0 {
		return ""
	}
	return " " + cmdline.Escape(e.Args[0])
}

// subject is the message that the command is about, for a hint.
func (e *env) subject() string {
	if e.Verb.Name == "take" {
		return " " + cmdline.Escape(e.String("renew"))
	}
	return e.first()
}

// noMember explains a word that cannot be one agent's name.
func (e *env) noMember(s string, err error) error {
	c := cmdline.Usage("%v", err)
	first, _, several := strings.Cut(s, ",")
	switch _, bad := wire.ParseAddress(first, e.team.Name); {
	case several && bad == nil && (strings.Contains(e.Verb.Args, "AGENT…") || strings.Contains(e.Verb.Args, "NAME…")):
		return c.WithHint("%s %s", e.Path, strings.Join(strings.Split(cmdline.Escape(s), ","), " "))
	case several && bad == nil && slices.Contains(e.Args, s):
		if len(e.Args) > 1 && e.Args[0] == s {
			first += " \"…\""
		}
		return c.WithHint("one at a time: %s %s", e.Path, first)
	case s == "all" && slices.Contains(e.Args, s):
		return c.WithHint("all members: atm team, atm watch")
	}
	if near, ok := cmdline.Nearest(s, strs(e.memberNames())); ok {
		return c.WithHint("did you mean %q?", near).WithCandidates(near)
	}
	return c.WithHint("atm team lists the members")
}

func unknownAgent(u *teams.UnknownError) error {
	f := cmdline.NotFound("%s", u)
	names := strs(u.Members)
	if u.Retired {
		return f.WithHint("atm team restore %s brings them back with their mail", u.Name)
	}
	near, ok := cmdline.Nearest(string(u.Name), names)
	switch {
	case ok && len(names) <= 12:
		f.WithHint("did you mean %q? members: %s", near, join(u.Members)).WithCandidates(names...)
	case ok:
		f.WithHint("did you mean %q? `atm team` lists them", near).WithCandidates(near)
	case len(names) == 0:
		f.WithHint("the team has no members: atm team add %s", u.Name)
	case len(names) <= 12:
		f.WithHint("members: %s", join(u.Members)).WithCandidates(names...)
	default:
		f.WithHint("`atm team` lists them")
	}
	return f
}

func (e *env) unknownTeam(err error) error {
	f := cmdline.NotFound("%s", err)
	if e.root == nil {
		return f
	}
	all, _ := e.root.Teams()
	if len(all) > 0 {
		f.WithHint("teams: %s", join(all)).WithCandidates(strs(all)...)
	} else {
		f.WithHint("atm init alice bob")
	}
	return f
}

// failure is how one recipient's error stands in a result.
func (e *env) failure(err error) (code, message, hint string) {
	var c *cmdline.Error
	if errors.As(e.explain(err), &c) {
		return c.Code, c.Message, c.Hint
	}
	return "failed", err.Error(), ""
}

// memberNames are the names of my team, for looking at what a word means.
func (e *env) memberNames() []wire.Name {
	names, _ := e.team.Agents()
	return names
}
