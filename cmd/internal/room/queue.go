package room

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/wire"
)

const (
	maxJobs    = 100  // of a queue, that are not finished
	maxEnded   = 20   // and that are
	jobEvents  = 5000 // of a queue's events that are looked at
	jobsBefore = 24 * time.Hour
)

// Queue is a shared inbox: who serves it, and what became of its jobs.
type Queue struct {
	Name     wire.Name   `json:"name"`
	ServedBy []wire.Name `json:"served_by"` // that take jobs by themselves, as team.toml has it
	Jobs     []Job       `json:"jobs"`      // the oldest that are not finished, and then the newest that are
	More     int         `json:"more,omitempty"`

	team wire.Name
}

// The states of a job. One that was declined by the last who might do it has ended, as one that is done.
const (
	JobWaiting  = "waiting"
	JobTaken    = "taken"
	JobSetAside = "set_aside"
	JobDone     = "done"
	JobBlocked  = "blocked"
	JobDeclined = "declined"
)

// Job is a message to a shared inbox.
type Job struct {
	ID         wire.ID      `json:"id"`
	From       wire.Address `json:"from"`
	SentAt     time.Time    `json:"sent_at"`
	Title      string       `json:"title"`
	State      string       `json:"state"`
	By         string       `json:"by,omitempty"`          // who has it, or who ended it
	Until      *time.Time   `json:"until,omitempty"`       // of a taken one
	EndedAt    *time.Time   `json:"ended_at,omitempty"`    // if that is known
	DeclinedBy []string     `json:"declined_by,omitempty"` // who gave it back
	Times      int          `json:"times,omitempty"`       // how often it was given out in vain
}

// Queue looks at a shared inbox. With an *teamdir.UnreadableError it returns what could be read.
func (r *Room) Queue(name wire.Name) (*Queue, error) {
	box, err := r.Scope.Member(string(name))
	if err != nil {
		return nil, err
	}
	if isShared, err := claim.Shared(box); err != nil {
		return nil, err
	} else if !isShared {
		return nil, failure.Usage("%s is a member, and no shared inbox", name).WithHint("`atm status %s`", name)
	}
	q := &Queue{Name: name, ServedBy: []wire.Name{}, Jobs: []Job{}, team: box.Address().Team}
	c, _ := r.Scope.Team.Config()
	for _, one := range r.Scope.Team.Servers(name) {
		if slices.Contains(c.Members[one].Serves, name) {
			q.ServedBy = append(q.ServedBy, one)
		}
	}
	add := func(it *maildir.Item) bool {
		q.Jobs = append(q.Jobs, jobOf(it, q.team))
		return true
	}
	open, err := box.Walk(maildir.Range{Unread: true, Limit: maxJobs}, add)
	if err == nil {
		_, err = box.Walk(maildir.Range{Done: true, Newest: true, Limit: maxEnded}, add)
	}
	if err != nil {
		err = &teamdir.UnreadableError{Err: err}
	}
	q.More = open.More
	q.addEvents(box)
	return q, err
}

func jobOf(it *maildir.Item, team wire.Name) Job {
	j := Job{ID: it.ID, From: it.From, SentAt: it.SentAt, Title: it.Title(), State: JobWaiting, Times: it.TimesHandedOut}
	switch {
	case it.State == wire.Done:
		j.State, j.Times = JobDone, 0
	case it.IsAside:
		j.State = JobSetAside
	case it.Lease != nil:
		until := it.Lease.Until.UTC()
		j.State, j.By, j.Until = JobTaken, called(it.Lease.By, team), &until
	}
	return j
}

func called(a wire.Address, team wire.Name) string {
	return strings.TrimSuffix(a.String(), "@"+string(team))
}

// addEvents adds who ended jobs, and who gave them back.
func (q *Queue) addEvents(box *maildir.Box) {
	jobs, oldest := map[wire.ID]*Job{}, time.Now()
	for i := range q.Jobs {
		jobs[q.Jobs[i].ID] = &q.Jobs[i]
		if at := q.Jobs[i].ID.Time(); at.Before(oldest) {
			oldest = at
		}
	}
	oldest, n := oldest.Add(-jobsBefore), 0 // clocks differ
	box.Log().Backward(func(e *wire.Event) bool {
		if n++; n > jobEvents || e.At.Before(oldest) {
			return true
		}
		j := jobs[e.MessageID()]
		if j == nil {
			return false
		}
		by := e.Field(wire.FieldBy)
		if a, err := wire.ParseAddress(by, q.team); err == nil {
			by = called(a, q.team)
		}
		switch outcome := e.Field("outcome"); {
		case e.Kind == wire.EventReturned && outcome == "declined" && !slices.Contains(j.DeclinedBy, by):
			j.DeclinedBy = append(j.DeclinedBy, by)
		case e.Kind == wire.EventAcked && j.EndedAt == nil:
			at := e.At.UTC()
			j.By, j.EndedAt = by, &at
			if outcome == JobBlocked || outcome == JobDeclined {
				j.State = outcome
			}
		}
		return false
	})
}

// Says is the state in words: "taken by bob for 9m more".
func (j Job) Says(now time.Time) string {
	said := strings.ReplaceAll(j.State, "_", " ")
	if j.By != "" {
		said += " by " + letter.Escape(j.By)
	}
	switch {
	case j.Until != nil:
		said += " for " + letter.Span(j.Until.Sub(now)) + " more"
	case j.EndedAt != nil:
		said += " " + letter.Ago(now, *j.EndedAt)
	}
	if len(j.DeclinedBy) > 0 {
		said += ", declined by " + letter.Escape(strings.Join(j.DeclinedBy, ", "))
	}
	if j.Times > 0 {
		said += ", given out " + letter.Many(j.Times, "time")
	}
	return said
}

// Server says who serves it.
func (q *Queue) Server() string {
	if len(q.ServedBy) == 0 {
		return fmt.Sprintf("no member serves it by itself: atm take %s", q.Name)
	}
	return "served by " + app.Join(q.ServedBy)
}

// Counts says how many jobs are in which state: "2 taken, 13 waiting".
func (q *Queue) Counts() string {
	n, said := map[string]int{}, []string{}
	for _, j := range q.Jobs {
		n[j.State]++
	}
	n[JobWaiting] += q.More
	for _, state := range []string{JobTaken, JobWaiting, JobSetAside} {
		if n[state] > 0 {
			said = append(said, fmt.Sprint(n[state], " ", strings.ReplaceAll(state, "_", " ")))
		}
	}
	if len(said) == 0 {
		return "nothing waits"
	}
	return strings.Join(said, ", ")
}

// Text is the board in lines.
func (q *Queue) Text(now time.Time) string {
	text := fmt.Sprintf("%s: %s; %s\n", q.Name, q.Counts(), q.Server())
	for _, j := range q.Jobs {
		text += fmt.Sprintf("  %s  %s: %s (%s, %s)\n", j.ID.Short(6), j.Says(now), letter.OneLine(j.Title, 100),
			letter.Escape(called(j.From, q.team)), letter.Ago(now, j.SentAt))
	}
	if q.More > 0 {
		text += fmt.Sprintf("  %d more wait\n", q.More)
	}
	return strings.TrimSuffix(text, "\n")
}
