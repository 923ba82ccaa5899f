package room

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/wire"
)

const (
	maxJobs  = 100 // of a queue, that are not finished
	maxEnded = 20  // and that are
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
	q := &Queue{Name: name, ServedBy: append([]wire.Name{}, r.Scope.Team.Servers(name)...), Jobs: []Job{}, team: box.Address().Team}
	var jobs []*wire.Item
	var messages []*wire.Message
	add := func(it *wire.Item) bool {
		jobs, messages = append(jobs, it), append(messages, it.Message)
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
	answers := post.AnswersTo(context.Background(), r.Scope.Root, messages...)
	for _, it := range jobs {
		j := jobOf(it, q.team)
		if it.State == wire.Done {
			j.endedBy(answers, it.Message, box.Address())
		} else if it.TimesHandedOut > 0 {
			for _, a := range post.Decliners(box, it.ID) {
				j.DeclinedBy = append(j.DeclinedBy, called(a, q.team))
			}
		}
		q.Jobs = append(q.Jobs, j)
	}
	return q, err
}

func jobOf(it *wire.Item, team wire.Name) Job {
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

// endedBy adds who ended the job and how: with an ack, or with an answer.
func (j *Job) endedBy(answers *post.Answers, m *wire.Message, queue wire.Address) {
	end := answers.At(m, queue).Ack()
	if replies := answers.Replies(m, queue).Counted; end == nil && len(replies) > 0 {
		end = replies[0]
	}
	if end == nil {
		return
	}
	at := end.SentAt.UTC()
	j.By, j.EndedAt, j.State = called(end.From, queue.Team), &at, cmp.Or(end.Outcome(), JobDone)
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
