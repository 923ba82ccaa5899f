package claudeteam

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

type member struct {
	box    *mailbox.Mailbox
	name   string    // in Claude's team
	joined time.Time // of one of Claude's
	shares string    // another of Claude's that has the same inbox file
}

const (
	ourAgentType = "atm"  // the agentType of our members in config.json
	ourSuffix    = "-atm" // appended to the name of one of ours that is reserved or taken in Claude's team
)

// What does not stand in the name of an inbox's file, and in a name of ours.
var notInPath, notInName = regexp.MustCompile(`[^a-zA-Z0-9_-]`), regexp.MustCompile(`[^a-z0-9_-]`)

// inboxFile is the member's file in Claude's team.
func (m *member) inboxFile() string {
	return inboxDir + "/" + notInPath.ReplaceAllString(m.name, "-") + ".json"
}

// agent is the member's name in our team.
func (m *member) agent() wire.Name { return m.box.Address().Agent }

// markFile marks a mailbox that was made for one of Claude's: it does not become ours when that member leaves. It holds
// the member's name and team there.
func markFile(name wire.Name) string { return string(name) + "/run/claude" }

func (s *Sync) isMarked(name wire.Name) bool {
	isMarked, err := s.here.Exists(markFile(name))
	return isMarked || err != nil
}

func (s *Sync) isOurs(name wire.Name) bool { return s.exists(name) && !s.isMarked(name) }

func (s *Sync) exists(name wire.Name) bool {
	_, err := s.Team.Mailbox(name)
	return err == nil
}

// configMember is an element of config.json's members.
type configMember struct {
	AgentID       string   `json:"agentId"`
	Name          string   `json:"name"`
	AgentType     string   `json:"agentType"`
	JoinedAt      float64  `json:"joinedAt"` // in milliseconds
	TmuxPaneID    string   `json:"tmuxPaneId"`
	Cwd           string   `json:"cwd"`
	Subscriptions []string `json:"subscriptions"`
}

// findMembers reads config.json and our team. It makes a mailbox for each new member of Claude's.
func (s *Sync) findMembers(ctx context.Context) error {
	var config struct{ Members []configMember }
	data, err := s.root.ReadFile(configFile, maxFile)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return &FileError{configFile, fmt.Errorf("%s: %w", configFile, err)}
	}
	s.listed, s.ours, s.theirs = map[string]bool{}, nil, nil
	for _, m := range config.Members {
		s.listed[m.Name] = true
		if m.Name == "" || m.AgentType == ourAgentType {
			continue
		}
		box, err := s.makeBox(ctx, s.nameHere(m.Name), m.Name)
		if err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		isSame := func(other member) bool { return other.box.Address() == box.Address() } // it has joined again
		s.theirs = append(slices.DeleteFunc(s.theirs, isSame), member{box: box, name: m.Name, joined: time.UnixMilli(int64(m.JoinedAt))})
	}
	for i, m := range s.theirs {
		sharesFile := func(other member) bool { return other.name != m.name && other.inboxFile() == m.inboxFile() }
		if j := slices.IndexFunc(s.theirs, sharesFile); j >= 0 {
			s.theirs[i].shares = s.theirs[j].name
		}
	}
	names, err := s.Team.Names()
	for _, name := range names {
		if box, err := s.Team.Mailbox(name); err == nil && !s.isMarked(name) { // else it was retired meanwhile
			s.ours = append(s.ours, member{box: box, name: s.nameThere(box.Address())})
		}
	}
	return err
}

// makeBox makes the mailbox of one of Claude's, unless it exists. It writes the mark first: a mailbox without one is
// ours.
func (s *Sync) makeBox(ctx context.Context, name wire.Name, theirs string) (*mailbox.Mailbox, error) {
	exists := s.exists(name)
	if !exists || s.markOf(name) != s.mark(theirs) {
		mark := markFile(name)
		err := cmp.Or(s.here.Mkdir(string(name)), s.here.Mkdir(path.Dir(mark)), s.here.Replace(mark, []byte(s.mark(theirs)), true))
		if err == nil && !exists {
			err = s.Team.Add(ctx, name)
		}
		if err != nil {
			return nil, err
		}
	}
	return s.Team.Mailbox(name)
}

// mark says for whom a mailbox is made. Every team of Claude's has a team-lead, and each is somebody else.
func (s *Sync) mark(theirs string) string { return theirs + s.ofTeam() }

func (s *Sync) ofTeam() string { return "@" + filepath.Base(s.Dir) }

// markOf returns the mark of a mailbox; "": it is not known, or there is none.
func (s *Sync) markOf(name wire.Name) string {
	mark, _ := s.here.ReadFile(markFile(name), maxFile)
	return string(mark)
}

// nameHere returns our name for one of Claude's members: the nearest valid one, or another if that is, or was, ours or
// another member's: 审查员 and 测试员, Rev and rev, or team-lead and that of another team of Claude's.
func (s *Sync) nameHere(theirs string) wire.Name {
	name := validName(theirs)
	if other := name[:min(len(name), 57)] + "-claude"; s.isOurs(name) || s.isMarked(other) {
		name = other
	}
	if of := s.markOf(name); of != "" && !strings.HasSuffix(of, s.ofTeam()) {
		name = validName(theirs + s.ofTeam())
	}
	for n, first := 2, name; ; n++ {
		of := s.markOf(name)
		if !s.isOurs(name) && (of == "" || of == s.mark(theirs)) {
			return name
		}
		number := fmt.Sprintf("-%d", n)
		name = first[:min(len(first), 64-len(number))] + wire.Name(number)
	}
}

func validName(theirs string) wire.Name {
	name := strings.TrimLeft(notInName.ReplaceAllString(strings.ToLower(theirs), "-"), "-_")
	if name = name[:min(len(name), 64)]; !wire.IsName(name) { // empty or reserved
		name += "claude"
	}
	return wire.Name(name)
}

// nameThere returns the name of a sender in Claude's team. Our names that are reserved, taken or were taken there get a
// suffix. Claude's agents cannot answer senders in other teams.
func (s *Sync) nameThere(a wire.Address) string {
	named := func(m member) bool { return m.box.Address() == a }
	if i := slices.IndexFunc(s.theirs, named); i >= 0 {
		return s.theirs[i].name
	}
	if a.Team != s.Team.Name() || a.Host != "" {
		return a.String()
	}
	other := member{name: string(a.Agent) + ourSuffix}
	hasOther, _ := s.root.Exists(other.inboxFile())
	isTaken := func(m member) bool { return strings.EqualFold(m.name, string(a.Agent)) }
	if hasOther || slices.ContainsFunc(s.theirs, isTaken) || slices.Contains([]wire.Name{"team-lead", "user", "system"}, a.Agent) {
		return other.name
	}
	return string(a.Agent)
}

// join adds our members to config.json.
func (s *Sync) join(ctx context.Context) error {
	var missing []byte
	for _, m := range s.ours {
		if !s.listed[m.name] {
			one, _ := json.Marshal(configMember{m.name + "@" + filepath.Base(s.Dir), m.name, ourAgentType, float64(time.Now().UnixMilli()), "", s.Team.Dir(), []string{}})
			missing = append(append(missing, ','), one...)
		}
	}
	if missing == nil {
		return nil
	}
	return s.rewrite(ctx, configFile, func(old []byte) ([]byte, error) {
		config, err := wire.ReadObject(old)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.root.Join(configFile), err)
		}
		members := bytes.TrimSuffix(config.Get("members"), []byte("]"))
		return indented(config.With("members", slices.Concat(members, missing, []byte("]"))).Encode())
	})
}
