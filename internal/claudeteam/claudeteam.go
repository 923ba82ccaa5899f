// Package claudeteam carries mail between a team of ours and one of Claude Code's own, both ways. Facts about
// theirs are of versions 2.1.197 and 2.1.328.
//
//	teams/<team>/config.json                 its members
//	teams/<team>/inboxes/<name>.json         a list of entries; who reads one removes it
//	teams/<team>/inboxes/<name>.json.lock    see lock
//
// Names in config.json are theirs, but for those that Join has put there; every other member of our team is
// ours. Where one of each has the same name, theirs is NAME-claude here, and ours NAME-atm there. Each of ours has an
// inbox file there, and each of theirs a mailbox here.
//
//   - An entry for one of ours is removed when its message is stored here. The message's id is made of the
//     entry, so a second time it is the same message.
//   - A message for one of theirs is marked as read when its entry is stored there. Until then it is leased:
//     after a kill it goes out again ten seconds later, and says that it may be a repeat.
//   - What is not understood is left as it is: files that are no list, entries that are no message, fields of
//     others. Mail between two of theirs is only looked at, for who has become idle.
package claudeteam

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// Sync carries mail between two teams. Not for concurrent use; several processes may do the same.
type Sync struct {
	Team   *teams.Team
	Dir    string         // of their team
	Join   bool           // ours are put into config.json: their SendMessage knows no other names
	Report func(Transfer) // is told what was done

	fault        durable.Fault // tests
	root         *durable.Root // Dir, during a pass
	config       []byte
	listed       map[string]bool // names in config
	ours, theirs []member
	passedOver   error // in config
}

// Transfer is one thing that was carried over.
type Transfer struct {
	Kind   string  `json:"kind"` // taken_in, handed_over, idle_notification, renamed
	ID     wire.ID `json:"id,omitempty"`
	From   string  `json:"from"`
	To     string  `json:"to,omitempty"`
	Title  string  `json:"title,omitempty"`
	Repeat bool    `json:"repeat,omitempty"` // it may have been handed over before
}

// String says it to people.
func (t Transfer) String() string {
	switch t.Kind {
	case idle:
		return t.From + " is idle"
	case renamed:
		return t.From + " of theirs is " + t.To + " here"
	}
	line := fmt.Sprintf("%s → %s: %s", t.From, t.To, t.Title)
	if t.Repeat {
		line += " (may be a repeat)"
	}
	return line
}

// ErrEnded says that there is no such team, or no more.
var ErrEnded = errors.New("there is no such team, or it has ended")

const (
	configFile = "config.json"
	renamed    = "renamed"
	ourType    = "atm" // the agentType of ours there
	inboxes    = "inboxes"
	tempPrefix = ".atm-"
	otherwise  = "-atm"          // behind the name of one of ours that one of theirs has
	maxFile    = 64 << 20        // bytes of a file of theirs
	lookEvery  = 3 * time.Second // where no change is told of
	joining    = 5 * time.Second // a new member gets no mail: Claude Code empties its inbox when it starts it
)

type member struct {
	box    *mailbox.Box
	name   string
	joined time.Time // of theirs
}

func (m *member) inbox() string {
	notInPath := regexp.MustCompile(`[^a-zA-Z0-9_-]`)
	return inboxes + "/" + notInPath.ReplaceAllString(m.name, "-") + ".json"
}

func nameHere(name string) wire.Name {
	notInName := regexp.MustCompile(`[^a-z0-9_-]|^[_-]+`)
	name = strings.TrimLeft(notInName.ReplaceAllString(strings.ToLower(name), "-"), "-_")
	if name = name[:min(len(name), 64)]; !wire.IsName(name) { // empty or reserved
		name += "claude"
	}
	return wire.Name(name)
}

// nameThere is the name of one of ours among theirs, some of which are reserved. They cannot answer other teams.
func nameThere(a wire.Address, team wire.Name) string {
	if slices.Contains([]wire.Name{"team-lead", "user", "system"}, a.Agent) {
		a.Agent += "-atm"
	}
	if a.Team != team || a.Host != "" {
		return a.String()
	}
	return string(a.Agent)
}

// Run makes a pass whenever something changes, until the context ends or their team does: ErrEnded. fail is told
// what goes wrong, once for as long as it does.
func (s *Sync) Run(ctx context.Context, fail func(error)) error {
	w, err := watcher.OpenDirs()
	if err != nil {
		return err
	}
	defer w.Close()
	for told := ""; ; {
		w.Add(s.Dir, filepath.Join(s.Dir, inboxes))
		err := s.Pass(ctx)
		switch {
		case errors.Is(err, ErrEnded), ctx.Err() != nil:
			return cmp.Or(ctx.Err(), err)
		case err == nil:
			told = ""
		case err.Error() != told:
			told = err.Error()
			fail(err)
		}
		for _, m := range s.theirs {
			w.Add(filepath.Join(m.box.Path(), "inbox"), filepath.Join(m.box.Path(), "inbox", "new"))
		}
		gather := 20 * time.Millisecond // what belongs together
		if err != nil {
			gather = time.Second // its own attempts are changes as well
		}
		select {
		case <-w.Changed():
			select {
			case <-time.After(gather):
			case <-ctx.Done():
			}
		case <-time.After(lookEvery):
		case <-ctx.Done():
		}
	}
}

// Pass carries over everything that waits, once. What goes wrong with one member keeps back nobody else's mail.
func (s *Sync) Pass(ctx context.Context) (errs error) {
	root, err := durable.Open(s.Dir, s.fault)
	if s.root = root; err == nil {
		defer root.Close()
		err = s.findMembers(ctx)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrEnded
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.Dir, err)
	}
	fail := func(name string, err error) {
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("%s: %w", root.Join(name), err))
		}
	}
	fail(configFile, s.passedOver)
	fail(inboxes, root.Mkdir(inboxes))
	if s.Join {
		fail(configFile, s.join(ctx))
	}
	for _, m := range s.ours {
		fail(m.inbox(), s.takeIn(ctx, m, true))
		if old := (member{box: m.box, name: m.name + otherwise}); s.isLeft(old) {
			fail(old.inbox(), s.takeIn(ctx, old, true))
		}
	}
	s.checkFiles(fail)
	for _, m := range s.theirs {
		s.takeIn(ctx, m, false) // what is wrong with it is said when something is to be added
		fail(m.inbox(), s.handOver(ctx, m))
	}
	return errs
}

type memberRecord struct {
	Name      string  `json:"name"`
	AgentType string  `json:"agentType"`
	JoinedAt  float64 `json:"joinedAt"` // in milliseconds
}

func (s *Sync) findMembers(ctx context.Context) error {
	var config struct{ Members []json.RawMessage }
	data, err := s.root.ReadFile(configFile, maxFile)
	if err == nil {
		err = json.Unmarshal(data, &config)
	}
	if err == nil && len(config.Members) == 0 {
		err = errors.New(configFile + " names no members")
	}
	known := map[wire.Name]bool{}
	s.config, s.listed, s.ours, s.theirs, s.passedOver = data, map[string]bool{}, nil, nil, nil
	for _, raw := range config.Members {
		if raw[0] != '{' {
			continue // what is no member keeps back nobody's mail
		}
		var r memberRecord
		badErr := json.Unmarshal(raw, &r)
		s.listed[r.Name] = true
		name := s.nameHere(r.Name)
		switch {
		case badErr == nil && (r.Name == "" || r.AgentType == ourType):
			continue
		case badErr == nil && (known[name] || s.isOurs(name)):
			badErr = fmt.Errorf("it would be %s here, and so is another", name)
		}
		if badErr != nil {
			s.passedOver = errors.Join(s.passedOver, fmt.Errorf("member %q is passed over: %w", r.Name, badErr))
			continue
		}
		known[name] = true
		box := s.Team.Box(name)
		if dir := s.Team.Dir(); !box.Exists() {
			// The mark first: what has none is ours.
			e := errors.Join(dir.Mkdir(string(name)), dir.Mkdir(path.Dir(mark(name))), dir.Replace(mark(name), []byte(r.Name), true))
			e = cmp.Or(e, s.Team.Create(ctx, name))
			if e != nil && !errors.Is(e, mailbox.ErrExists) { // another sync has made it
				s.passedOver = errors.Join(s.passedOver, e)
				continue
			}
			if name != nameHere(r.Name) {
				s.Report(Transfer{Kind: renamed, From: r.Name, To: string(name)})
			}
		}
		s.theirs = append(s.theirs, member{box, r.Name, time.UnixMilli(int64(r.JoinedAt))})
	}
	agents, agentsErr := s.Team.Agents()
	for _, name := range agents {
		if s.isOurs(name) {
			box := s.Team.Box(name)
			s.ours = append(s.ours, member{box: box, name: s.nameThere(box.Address())})
		}
	}
	return errors.Join(err, agentsErr)
}

// isLeft reports whether an inbox is left from the time when one of ours was called so there, and nobody else is or was.
func (s *Sync) isLeft(old member) bool {
	there, err := s.root.Exists(old.inbox())
	name := wire.Name(strings.ToLower(old.name))
	isOthers := s.Team.Box(name).Exists() || s.Team.WasRetired(name) || hasInbox(slices.Concat(s.ours, s.theirs), old)
	return err == nil && there && !isOthers
}

// checkFiles says which inboxes with mail nobody reads any more, and removes what killed ones have left half written.
func (s *Sync) checkFiles(fail func(name string, err error)) {
	files, _ := s.root.Names(inboxes)
	for _, file := range files {
		name, file := strings.TrimSuffix(file, ".json"), inboxes+"/"+file
		switch {
		case strings.HasPrefix(name, tempPrefix):
			if info, err := s.root.Lstat(file); err == nil && time.Since(info.ModTime()) > time.Hour {
				s.root.Remove(file)
			}
		case s.wasOurs(name) && s.hasMail(file):
			fail(file, fmt.Errorf("%s was retired here, and gets nothing: atm team restore %[1]s", name))
		}
	}
}

// wasOurs reports whether a name is of one of ours who was retired, and of nobody now.
func (s *Sync) wasOurs(name string) bool {
	if !wire.IsName(name) || hasInbox(s.theirs, member{name: name}) || s.Team.Box(wire.Name(name)).Exists() {
		return false
	}
	kept, _ := s.Team.Retired(name)
	if len(kept) == 0 {
		return false
	}
	wasTheirs, err := s.Team.Dir().Exists(mark(kept[0].Agent()))
	return err == nil && !wasTheirs
}

// hasMail reports whether an inbox file has what nobody has read, or cannot be read.
func (s *Sync) hasMail(file string) bool {
	data, err := s.root.ReadFile(file, maxFile)
	list, bad := decodeInbox(data)
	return err != nil || bad != nil || slices.ContainsFunc(list, func(e entry) bool { return !e.Read })
}

// mark is in a mailbox that was made for one of theirs: it is not ours when they have left.
func mark(name wire.Name) string { return string(name) + "/run/claude" }

func (s *Sync) isOurs(name wire.Name) bool {
	isTheirs, err := s.Team.Dir().Exists(mark(name))
	return err == nil && !isTheirs && s.Team.Box(name).Exists()
}

// nameHere is what one of theirs is called here: another name where one of ours has it, or had.
func (s *Sync) nameHere(theirs string) wire.Name {
	name := nameHere(theirs)
	other := name[:min(len(name), 57)] + "-claude"
	if was, _ := s.Team.Dir().ReadFile(mark(other), 1<<10); string(was) == theirs || s.isOurs(name) {
		return other
	}
	return name
}

// nameThere is what one of ours is called there: another name where one of theirs has it.
func (s *Sync) nameThere(a wire.Address) string {
	for _, m := range s.theirs {
		if m.box.Address() == a {
			return m.name
		}
	}
	name := nameThere(a, s.Team.Name)
	for hasInbox(s.theirs, member{name: name}) {
		name += otherwise
	}
	return name
}

// hasInbox reports whether one of the members has the same inbox file as another.
func hasInbox(all []member, as member) bool {
	return slices.ContainsFunc(all, func(m member) bool { return strings.EqualFold(m.inbox(), as.inbox()) })
}

func (s *Sync) join(ctx context.Context) error {
	missing := ""
	for _, m := range s.ours {
		if !s.listed[m.name] {
			missing += fmt.Sprintf(`,{"agentId":%s,"name":%q,"agentType":%q,"joinedAt":%d,"tmuxPaneId":"","cwd":%s,"subscriptions":[]}`,
				wire.Quote(m.name+"@"+filepath.Base(s.Dir)), m.name, ourType, time.Now().UnixMilli(), wire.Quote(s.Team.Dir().Path()))
		}
	}
	if missing == "" {
		return nil
	}
	return s.rewrite(ctx, configFile, func(old []byte) ([]byte, error) {
		config, err := wire.ReadObject(old)
		if err != nil || !bytes.Equal(old, s.config) { // it is looked at anew in the next pass
			return nil, err
		}
		members := bytes.TrimSuffix(config.Get("members"), []byte("]"))
		raw, err := config.With("members", slices.Concat(members, []byte(missing+"]"))).MarshalJSON()
		if err == nil {
			raw, err = indented(raw)
		}
		return raw, err
	})
}
