package session

import (
	"cmp"
	"slices"
	"time"

	"github.com/agentteammail/atm/wire"
)

// Draft is something that the agent has made and that waits for a person's answer.
type Draft struct {
	ID        wire.UUID `json:"-"`
	At        time.Time `json:"at,omitzero"` // when it was first announced; zero: not known
	Summary   string    `json:"summary,omitzero"`
	Artifacts uint64    `json:"artifact_count,omitzero"`
}

// Drafts lists the drafts that were announced in the session, reviewed or not, oldest first.
func (s *Session) Drafts() []Draft {
	out := make([]Draft, 0, len(s.Notes.Drafts))
	for id, d := range s.Notes.Drafts {
		d.ID = id
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b Draft) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) })
	return out
}

// AddDraft records that a draft was reviewed in the session. Repeated, it is activity and nothing else.
func (s *Session) AddDraft(id wire.UUID, at time.Time) {
	if !slices.Contains(s.DraftIDs, id) {
		s.DraftIDs = append(s.DraftIDs, id)
	}
	s.touch(at)
}

// announceDraft adds a draft, or updates the summary of one that is announced again.
func (s *Session) announceDraft(d Draft) (isNew bool) {
	before, isKnown := s.Notes.Drafts[d.ID]
	if isKnown {
		d.At = before.At
	}
	d.Summary = wire.Clip(d.Summary, 4<<10)
	if s.Notes.Drafts == nil {
		s.Notes.Drafts = map[wire.UUID]Draft{}
	}
	s.Notes.Drafts[d.ID] = d
	return !isKnown
}
