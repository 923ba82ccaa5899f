package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentteammail/atm/wire"
)

// Act is what somebody does to a member, in the words of "carol may not stop bob".
type Act string

// The acts: Rights says who may do each.
const (
	Answer    Act = "answer"    // what it asks: approve and reject, also a draft; and press keys that may answer
	Type      Act = "type into" // its terminal
	Interrupt Act = "interrupt"
	Stop      Act = "stop" // also with down
	Restart   Act = "restart"
	Run       Act = "run"
	Start     Act = "start" // with up
	Add       Act = "add"
	Retire    Act = "retire"
	Restore   Act = "restore"
	Release   Act = "end a claim of"
	Begin     Act = "start a session with"
	Speak     Act = "send a session's message to"
	Pause     Act = "pause" // its session, as with the next three
	Resume    Act = "resume"
	Complete  Act = "complete"
	Abort     Act = "abort" // which stops it, too
	Retry     Act = "retry"
	Sync      Act = "sync mail for"
	Bridge    Act = "bridge the team to other machines"
	Link      Act = "link the team to another root"
)

// A Right says who may do an act besides the owner of the account and people, who may do each of them.
type Right struct {
	Lead   bool // the team's lead, to others
	Itself bool // a member, to itself
	Script bool // any member, outside of agents' programs
}

// Rights is the table of acts. Who may answer is said by approvers in team.toml, if it has that key.
var Rights = map[Act]Right{
	Answer:    {Lead: true}, // nobody may answer their own question
	Type:      {Lead: true}, // for keys may answer it, too
	Interrupt: {Lead: true, Itself: true},
	Stop:      {Lead: true, Itself: true},
	Restart:   {Lead: true, Itself: true},
	Run:       {Lead: true, Itself: true},
	Start:     {Lead: true, Itself: true},
	Retire:    {Lead: true, Itself: true},
	Restore:   {Lead: true, Itself: true},
	Release:   {Lead: true, Itself: true},
	Speak:     {Lead: true, Itself: true},
	Pause:     {Lead: true, Itself: true},
	Resume:    {Lead: true, Itself: true},
	Complete:  {Lead: true, Itself: true},
	Abort:     {Lead: true, Itself: true},
	Add:       {Lead: true, Itself: true, Script: true}, // what follows is done to nobody
	Begin:     {Lead: true, Itself: true, Script: true},
	Retry:     {Lead: true, Itself: true, Script: true},
	Sync:      {Lead: true, Script: true},
	Bridge:    {Script: true},
	Link:      {Script: true},
}

// Actor is who does something.
type Actor struct {
	// Name is the member that a process belongs to, else the one that it names; alice@laptop is on another host. "": it
	// names none. Outside of agents' programs that is the owner of the account; inside of one it is nobody.
	Name wire.Name

	IsAgent bool // an agent's program started the process
}

// ErrNotYours says that a member may not answer a question.
var ErrNotYours = errors.New("not yours to answer")

// Check returns why somebody may not do something to a member; nil: they may. The reason not to answer is an ErrNotYours.
func (p Policy) Check(act Act, member wire.Name, by Actor) error {
	right := Rights[act]
	isItself, isLead := by.Name == member && member != "", by.Name == p.Lead && p.Lead != ""
	isListed := p.Approvers == nil || slices.Contains(p.Approvers, by.Name)
	why := ""
	switch {
	case isItself && right.Itself:
		return nil
	case isItself && act == Answer:
		why = "nobody may answer their own question"
	case isItself && act == Type:
		why = fmt.Sprintf("%s may not %s itself: nobody may answer their own question", member, act)
	case by.IsAgent && p.IsPartial:
		why = "another version of atm saved its policy, so only a person may " + string(act)
	case by.IsAgent && !right.Lead:
		why = "an agent may not " + string(act)
	case by.IsAgent && !isLead && act == Answer && p.Lead == "":
		why = "of the agents only the lead may answer, and team.toml names none"
	case by.IsAgent && !isLead && act == Answer:
		why = "of the agents only the lead may answer: " + string(p.Lead)
	case by.IsAgent && p.Lead == "":
		why = fmt.Sprintf("an agent may %s others only as the team's lead, which team.toml names none of", act)
	case by.IsAgent && !isLead:
		why = fmt.Sprintf("an agent may %s others only as the team's lead, who is %s", act, p.Lead)
	case act == Answer && !isListed:
		why = "only approvers may answer: " + join(p.Approvers)
	case act == Answer && p.Approvers != nil:
		return nil
	case by == Actor{}, isLead && right.Lead, slices.Contains(p.People, by.Name):
		return nil
	case strings.Contains(string(by.Name), "@") && act == Answer:
		why = "from other hosts only approvers may answer, and team.toml names none"
	case act == Answer:
		why = "only people and the lead may answer: " + join(append(slices.Clone(p.People), p.Lead))
	case right.Script && !strings.Contains(string(by.Name), "@"):
		return nil
	default:
		why = fmt.Sprintf("%s may not %s %s: only people and the lead may: %s", by.Name, act, member, join(append(slices.Clone(p.People), p.Lead)))
	}
	if by.IsAgent && by.Name != "" && by.Name != member { // who did not expect that
		why += " (this comes from " + string(by.Name) + "'s program)"
	}
	if act == Answer {
		return fmt.Errorf("the question of %s is %w: %s", member, ErrNotYours, why)
	}
	return errors.New(why)
}

// join lists names once each, without the empty one of a missing lead.
func join(names []wire.Name) string {
	var list []string
	for _, n := range names {
		if n != "" && !slices.Contains(list, string(n)) {
			list = append(list, string(n))
		}
	}
	return strings.Join(list, ", ")
}
