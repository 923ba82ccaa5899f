package claudeteam

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
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
	box    *mailbox.Box
	name   string    // in Claude's team
	joined time.Time // of one of Claude's
}

const (
	ourAgentType = "atm"  // the agentType of our members in config.json
	ourSuffix    = "-atm" // appended to the name of one of ours that is reserved or taken in Claude's team
)

// inboxFile is the member's file in Claude's team.
func (m *member) inboxFile() string {
	notInPath := regexp.MustCompile(`[^a-zA-Z0-9_-]`)
	return inboxDir + "/" + notInPath.ReplaceAllString(m.name, "-") + ".json"
}

// sharesInbox reports whether any of the members has the same inbox file as m.
func sharesInbox(m member, members []member) bool {
	return slices.ContainsFunc(members, func(o member) bool { return strings.EqualFold(o.inboxFile(), m.inboxFile()) })
}

// markFile marks a mailbox that was made for one of Claude's, and holds its name there: the mailbox does not become
// ours when that member leaves.
func markFile(name wire.Name) string { return string(name) + "/run/claude" }

func (s *Sync) isOurs(name wire.Name) bool {
	isMarked, err := s.Team.Dir().Exists(markFile(name))
	return err == nil && !isMarked && s.Team.Box(name).Exists()
}

// findMembers reads config.json and our team. It makes a mailbox for each new member of Claude's.
func (s *Sync) findMembers(ctx context.Context, fail func(name string, err error)) error {
	var config struct{ Members []json.RawMessage }
	data, err := s.root.ReadFile(configFile, maxFile)
	if err == nil {
		err = json.Unmarshal(data, &config)
	}
	if err == nil && len(config.Members) == 0 {
		err = errors.New(configFile + " lists no members")
	}
	if err != nil {
		return err
	}
	s.config, s.configNames, s.ours, s.theirs = data, map[string]bool{}, nil, nil
	for _, raw := range config.Members {
		if raw[0] == '{' { // anything else is no member
			fail(configFile, s.addTheirs(ctx, raw))
		}
	}
	boxes, err := s.Team.Boxes()
	for _, box := range boxes {
		if s.isOurs(box.Agent()) {
			s.ours = append(s.ours, member{box: box, name: s.nameThere(box.Address())})
		}
	}
	return err
}

// addTheirs adds a member that config.json lists. The error says why it is skipped.
func (s *Sync) addTheirs(ctx context.Context, raw json.RawMessage) error {
	var r struct {
		Name      string  `json:"name"`
		AgentType string  `json:"agentType"`
		JoinedAt  float64 `json:"joinedAt"` // in milliseconds
	}
	err := json.Unmarshal(raw, &r)
	s.configNames[r.Name] = true
	if err == nil && (r.Name == "" || r.AgentType == ourAgentType) {
		return nil
	}
	name := s.nameHere(r.Name)
	isTaken := slices.ContainsFunc(s.theirs, func(m member) bool { return m.box.Agent() == name })
	if err == nil && (isTaken || s.isOurs(name)) {
		err = fmt.Errorf("its name here would be %s, but that is taken", name)
	}
	box := s.Team.Box(name)
	if err == nil && !box.Exists() {
		err = s.makeBox(ctx, r.Name, name)
	}
	if err != nil {
		return fmt.Errorf("skipped member %q: %w", r.Name, err)
	}
	s.theirs = append(s.theirs, member{box, r.Name, time.UnixMilli(int64(r.JoinedAt))})
	return nil
}

// makeBox makes the mailbox of one of Claude's. It writes the mark first, since a mailbox without one is ours.
func (s *Sync) makeBox(ctx context.Context, theirs string, name wire.Name) error {
	dir, mark := s.Team.Dir(), markFile(name)
	err := cmp.Or(dir.Mkdir(string(name)), dir.Mkdir(path.Dir(mark)), dir.Replace(mark, []byte(theirs), true))
	if err == nil {
		err = s.Team.Create(ctx, name)
	}
	if err != nil {
		return err
	}
	if name != validName(theirs) {
		s.Report(Transfer{Kind: renamed, From: theirs, To: string(name)})
	}
	return nil
}

// nameHere returns our name for one of Claude's members: another one if that name is ours, or was.
func (s *Sync) nameHere(theirs string) wire.Name {
	name := validName(theirs)
	other := name[:min(len(name), 57)] + "-claude"
	if marked, _ := s.Team.Dir().ReadFile(markFile(other), 1<<10); string(marked) == theirs || s.isOurs(name) {
		return other
	}
	return name
}

// validName returns the nearest valid name.
func validName(theirs string) wire.Name {
	invalid := regexp.MustCompile(`[^a-z0-9_-]`)
	name := strings.TrimLeft(invalid.ReplaceAllString(strings.ToLower(theirs), "-"), "-_")
	if name = name[:min(len(name), 64)]; !wire.IsName(name) { // empty or reserved
		name += "claude"
	}
	return wire.Name(name)
}

// nameThere returns the name of a sender in Claude's team. Our names that are reserved or taken there get a suffix.
// Claude's agents cannot answer senders in other teams.
func (s *Sync) nameThere(a wire.Address) string {
	for _, m := range s.theirs {
		if m.box.Address() == a {
			return m.name
		}
	}
	if slices.Contains([]wire.Name{"team-lead", "user", "system"}, a.Agent) {
		a.Agent += ourSuffix
	}
	name := string(a.Agent)
	if a.Team != s.Team.Name || a.Host != "" {
		name = a.String()
	}
	for sharesInbox(member{name: name}, s.theirs) {
		name += ourSuffix
	}
	return name
}

// isRetired reports whether a name belonged to one of ours that was retired, and belongs to nobody here now.
func (s *Sync) isRetired(name string) bool {
	if !wire.IsName(name) || s.Team.Box(wire.Name(name)).Exists() {
		return false
	}
	retired, _ := s.Team.Retired(name)
	if len(retired) == 0 {
		return false
	}
	wasTheirs, err := s.Team.Dir().Exists(markFile(retired[0].Agent()))
	return err == nil && !wasTheirs
}

// join adds our members to config.json. If the file has changed since this pass read it, the next pass does.
func (s *Sync) join(ctx context.Context) error {
	missing := ""
	for _, m := range s.ours {
		if !s.configNames[m.name] {
			missing += fmt.Sprintf(`,{"agentId":%s,"name":%q,"agentType":%q,"joinedAt":%d,"tmuxPaneId":"","cwd":%s,"subscriptions":[]}`,
				wire.Quote(m.name+"@"+filepath.Base(s.Dir)), m.name, ourAgentType, time.Now().UnixMilli(), wire.Quote(s.Team.Dir().Path()))
		}
	}
	if missing == "" {
		return nil
	}
	return s.rewrite(ctx, configFile, func(old []byte) ([]byte, error) {
		config, err := wire.ReadObject(old)
		if err != nil || !bytes.Equal(old, s.config) {
			return nil, err
		}
		members := bytes.TrimSuffix(config.Get("members"), []byte("]"))
		return indented(config.With("members", slices.Concat(members, []byte(missing+"]"))).Encode())
	})
}
