// Package teams is a team for programs: its members and how they are, and what they send, ask and answer. A team is a
// directory in a root, such as .atm/main; atm's own programs work in it at the same time, and some by this package. Package
// mailbox handles the mail of one member, package ptyrun runs one.
//
// What is sent is stored before Send returns, and survives a power cut. A program that is killed may send again under
// the same key (Message.Once): it stays one message.
//
// A message is data from somebody else: show it as text, and do nothing that it says by itself. A program that sends and
// reads needs nobody's consent, as atm send needs none. But no mail in a root that came with a git checkout gets into a
// program by itself (mailbox.Mailbox.HandOver).
//
// An answer counts if it comes from whom it was asked of. That of a person must have been given with a command of atm,
// such as atm reply, since any program may be an agent's: what is sent in a person's name from here is mail, and no
// answer. Questions of permission are answered with atm approve and atm reject. What a person says in a session counts
// (Say), unless this program's ancestors or its environment tell that an agent's program has started it.
//
// A Team may be used by several goroutines, and a team by several processes. The package reads no flags, and nothing else
// from the environment.
//
// Begin with Open, or Create for a new one. It starts no programs: that is package ptyrun. What people say of the team is in
// its directory's team.toml:
//
//	[groups]
//	dev = ["alice", "bob"]
//
//	[members.me]
//	person = true
package teams

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/filestore"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/input"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// Errors that callers tell apart, with errors.Is. Those of package mailbox come from here as well: for a name that is no
// member's it is mailbox.ErrNoMailbox.
var (
	ErrNoTeam      = teamdir.ErrNoTeam
	ErrOtherText   = maildir.ErrIDTaken // or another subject, …, under this key
	ErrNotCounted  = post.ErrNotCounted
	ErrDeclined    = post.ErrDeclined // by the recipient of a question
	ErrTooManyHops = post.ErrTooManyHops
	ErrAnswered    = input.ErrAnswered // by an earlier verdict
)

// Team is an open team.
type Team teamdir.Handle // so atm's programs convert theirs

func (t *Team) in() *teamdir.Team { return (*teamdir.Handle)(t).Team() }

func (t *Team) front() teamdir.Front {
	if f := (*teamdir.Handle)(t).Front(); f != nil {
		return f
	}
	return library{}
}

// Open opens the team in a directory, such as .atm/main, or returns ErrNoTeam.
func Open(dir string) (*Team, error) {
	t, err := open(dir, (*teamdir.Root).Team)
	if err != nil {
		return nil, fmt.Errorf("open team %s: %w", dir, err)
	}
	return t, nil
}

// Create opens the team in a directory, after it has made what is missing of it: the root above, the team, and these
// members. A root is hidden from git, so no directory with other files in it becomes one. Where people use atm, atm init
// and atm team add make teams; in a root that a program has made, atm acts by itself only after somebody has seen it and
// said yes: atm init --root DIR. With a name that is none, nothing is made; after another error it may be called again.
func Create(ctx context.Context, dir string, members ...wire.Name) (*Team, error) {
	t, err := create(ctx, dir, members)
	if err != nil {
		return nil, fmt.Errorf("create team %s: %w", dir, err)
	}
	return t, nil
}

func create(ctx context.Context, dir string, members []wire.Name) (*Team, error) {
	dir, err := absolute(dir)
	for _, name := range append([]wire.Name{wire.Name(filepath.Base(dir))}, members...) {
		if err == nil {
			_, err = wire.ParseName(string(name))
		}
	}
	if err == nil {
		err = makeRoot(filepath.Dir(dir))
	}
	if err != nil {
		return nil, err
	}
	t, err := open(dir, (*teamdir.Root).CreateTeam)
	if err != nil {
		return nil, err
	}
	for i, name := range members {
		if err := t.Add(ctx, name); err != nil && !errors.Is(err, mailbox.ErrExists) {
			t.Close()
			return nil, fmt.Errorf("%w (made before: the team and %d of %d members)", err, i, len(members))
		}
	}
	return t, nil
}

func absolute(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("the directory has no name")
	}
	return filepath.Abs(dir)
}

func makeRoot(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	hasOther := false
	for _, f := range files {
		switch f.Name() {
		case rootdir.FormatFile:
			return nil
		case ".gitignore": // which a root gets first
		default:
			_, err := os.Stat(filepath.Join(dir, f.Name(), ".locks")) // package mailbox made a team there
			hasOther = hasOther || err != nil
		}
	}
	if hasOther {
		return fmt.Errorf("%s has other files, and so does not become a root", dir)
	}
	_, err = rootdir.Make(dir)
	return err
}

func open(dir string, get func(*teamdir.Root, wire.Name) (*teamdir.Team, error)) (*Team, error) {
	dir, err := absolute(dir)
	if err != nil {
		return nil, err
	}
	root, err := teamdir.Open(filepath.Dir(dir), notices.Tell)
	if errors.Is(err, rootdir.ErrNotRoot) {
		err = fmt.Errorf("%w: %w (Create makes it)", ErrNoTeam, err)
	}
	if err != nil {
		return nil, err
	}
	t, err := get(root, wire.Name(filepath.Base(dir)))
	if err != nil {
		root.Close()
		return nil, err
	}
	return (*Team)(t.Handle(nil)), nil
}

// Close closes the team's directory.
func (t *Team) Close() error { return t.in().Root().Close() }

// Dir returns the team's directory. That of a member is below it, under the member's name.
func (t *Team) Dir() string { return t.in().Dir().Path() }

// Name returns the team's name, as it is in addresses.
func (t *Team) Name() wire.Name { return t.in().Name }

// Names lists the members that have a mailbox here, in order. Members says how they are.
func (t *Team) Names() (names []wire.Name, err error) {
	boxes, err := t.in().Boxes()
	for _, b := range boxes {
		names = append(names, b.Agent())
	}
	return names, err
}

// Add makes a mailbox for a new member. If there is one, the error is mailbox.ErrExists.
func (t *Team) Add(ctx context.Context, name wire.Name) error {
	if err := t.in().Store.Create(ctx, name); err != nil {
		return fmt.Errorf("add member %s: %w", name, err)
	}
	return nil
}

// AddShared is Add for an inbox from which all members take: see Take. It may be called again. If there is a member of that
// name, its inbox is shared from then on, with the mail that is in it.
func (t *Team) AddShared(ctx context.Context, name wire.Name) error {
	err := t.Add(ctx, name)
	if errors.Is(err, maildir.ErrExists) {
		err = nil
	}
	if err == nil {
		err = claim.Share(t.in().Box(name))
	}
	return err
}

// Mailbox returns the mailbox of a member, or mailbox.ErrNoMailbox. It works until the team is closed.
func (t *Team) Mailbox(name wire.Name) (*mailbox.Mailbox, error) {
	box, err := t.in().Member(name)
	if err != nil {
		return nil, err
	}
	return (*mailbox.Mailbox)(box), nil
}

// OpenFile opens the content of a file that came with a message to a member of the team.
func (t *Team) OpenFile(a wire.Attachment) (*os.File, error) { return filestore.Open(t.in().Dir(), a) }

// Member says how a member is. Its state is unknown until something tells of it: atm run, hooks of its program, or a package
// that runs it, such as ptyrun.
type Member struct {
	Name   wire.Name // of a member on another host with that: bob@build
	Role   string    // of team.toml
	State  reducer.Word
	Detail string    // the reason for State; it may quote the member's program: escape it before it reaches a terminal
	Since  time.Time // when State began; zero: not known
	Unread int
	Owed   int // read messages that wait for an acknowledgement
}

// Members lists the members by name, those on other hosts last. With an error it lists whom it could read.
func (t *Team) Members(ctx context.Context) (members []Member, err error) {
	all, err := presence.Members(ctx, t.in())
	for _, m := range all {
		members = append(members, memberOf(m))
	}
	return members, err
}

// Member says how one member of this host is, or returns mailbox.ErrNoMailbox.
func (t *Team) Member(ctx context.Context, name wire.Name) (Member, error) {
	_, err := t.in().Member(name)
	if err != nil {
		return Member{}, err
	}
	m, err := presence.Status(ctx, t.in(), name)
	return memberOf(m), err
}

func memberOf(m presence.Member) Member {
	out := Member{Name: m.Name, Role: m.Role, State: m.State, Detail: m.Detail, Unread: m.Unread, Owed: m.Owed}
	if m.Since != nil {
		out.Since = *m.Since
	}
	return out
}

// State returns what a member's events say of it: its sessions, turns and questions. Member says how it is, which needs
// more than its events.
func (t *Team) State(name wire.Name) (*reducer.State, error) {
	if _, err := t.in().Member(name); err != nil {
		return nil, err
	}
	return t.in().State(name)
}

// Watch begins to watch the mailboxes of some members, or of all, also of those that come later. Close the watcher before
// the team.
func (t *Team) Watch(ctx context.Context, o watcher.Options, members ...wire.Name) (*watcher.Watcher, error) {
	if len(members) == 0 {
		boxes, err := t.in().Mailboxes()
		if err != nil {
			return nil, err
		}
		o.Mailboxes = t.in().Mailboxes
		return watcher.Open(ctx, boxes, o), nil
	}
	var boxes []watcher.Mailbox
	for _, name := range members {
		boxes = append(boxes, t.in().Box(name))
	}
	return watcher.Open(ctx, boxes, o), nil
}

// Pending lists what waits for a person's answer, the oldest first. With an error it lists what it could read.
func (t *Team) Pending(ctx context.Context) ([]ask.Question, error) {
	questions, err := presence.PendingQuestions(ctx, t.in())
	return questions, err
}
