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

// setNeeds finds the messages that one is to be shown after. Whether they are done is known here only.
func (s *Scope) setNeeds(m *Submission, to []wire.Address) error {
	for _, word := range m.After {
		it, _, err := s.Find(word)
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
		case it.ID == m.Content.Supersedes || post.NeedFor(s.Team, it.Message).Outcome == post.OutcomeWithdrawn:
			return failure.Refused("message %s was withdrawn, so it will never be done", id).WithHint("leave --after %s out", id)
		}
		if !slices.Contains(m.Content.Needs, it.ID) {
			m.Content.Needs = append(m.Content.Needs, it.ID)
		}
	}
	if len(m.Content.Needs) > maxNeeds {
		return failure.Usage("--after: %d messages, and at most %d", len(m.Content.Needs), maxNeeds).WithHint("wait for one that waits for the others")
	}
	return nil
}
