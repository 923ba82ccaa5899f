package app

import (
	"slices"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/wire"
)

// maxNeeds is for how many messages one may wait.
const maxNeeds = 100

// FindNeeds returns the ids of the messages that a new one is to be shown after, from words.
func (s *Scope) FindNeeds(words []string) (ids []wire.ID, err error) {
	for _, word := range words {
		it, _, err := s.Find(word)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(ids, it.ID) {
			ids = append(ids, it.ID)
		}
	}
	if len(ids) > maxNeeds {
		return nil, failure.Usage("--after: %d messages, and at most %d", len(ids), maxNeeds).WithHint("wait for one that waits for the others")
	}
	return ids, nil
}

// checkNeeds refuses a message that would wait for ever for one that it is to be shown after. Whether those are done is known here
// only.
func (s *Scope) checkNeeds(m *wire.Message, to []wire.Address) error {
	for _, need := range m.Needs {
		it, _, err := s.Find(string(need))
		if err != nil {
			return err
		}
		id := it.ID.Short(6)
		isElsewhere := func(a wire.Address) bool { return a.Host != "" || a.Team != s.Team.Name }
		switch at := slices.IndexFunc(to, isElsewhere); {
		case at >= 0:
			called := (&letter.Renderer{Team: s.Team.Name}).Who(to[at])
			return failure.Refused("%s cannot see whether message %s is done: --after is for members of team %s on this machine", called, id, s.Team.Name).
				WithHint("leave --after out; --in 2h and --at 14:00 work for %s", called)
		case isElsewhere(it.From):
			return failure.Refused("message %s is from %s, and its acks go there: only what a member of team %s sent can be waited for", id, it.From, s.Team.Name).
				WithHint("send a message of your own, and wait for that")
		case !post.IsReply(it.Message):
			return failure.Refused("message %s is of type %s, which nobody does", id, it.Kind()).WithHint("--after takes the id of the work: `atm ls --sent`")
		case it.ID == m.Supersedes || post.NeedFor(s.Team, it.Message).Outcome == post.OutcomeWithdrawn:
			return failure.Refused("message %s was withdrawn, so it will never be done", id).WithHint("leave --after %s out", id)
		}
	}
	return nil
}
