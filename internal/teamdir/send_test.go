package teamdir

import (
	"errors"
	"strings"
	"testing"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/wire"
)

// Send is all that an answer needs: it stores its files, marks what it answers, and under one name it is one message.
func TestSend(t *testing.T) {
	r := newRoot(t, nil)
	team := newTeam(t, r, "alice", "bob")
	other, err := r.CreateTeam("other")
	must(t, err)
	must(t, other.Create(t.Context(), "dora"))
	alice, bob := team.Box("alice"), team.Box("bob")
	question := &wire.Message{Body: "?", RequiresAck: true}
	err = sendTo(team, alice, "bob", question)
	must(t, err)
	for range 2 {
		answer := &Outgoing{
			From: bob, To: []wire.Address{alice.Address(), other.Box("dora").Address()}, Parent: question, Once: "answer",
			Message: &wire.Message{Body: "!"}, Files: []File{{"a.txt", strings.NewReader("file")}},
		}
		sent, err := r.Send(t.Context(), answer)
		must(t, err)
		if len(sent.To) != 2 || sent.Unmarked != nil || sent.Unlisted != nil {
			t.Errorf("%+v", sent)
		}
		for _, to := range sent.To {
			f, err := to.Box.Store().Attachment(answer.Message.Attachments[0])
			must(t, err)
			f.Close()
		}
	}
	if got := unreadOf(t, team, "alice"); len(got) != 1 || got[0] != "!" {
		t.Errorf("alice got %q", got)
	}
	it, err := bob.Get(question.ID)
	must(t, err)
	if it.State != maildir.Done {
		t.Errorf("the question is %s, not acknowledged", it.State)
	}
}

// A recipient that nobody knows keeps the message from nobody else, and an answer that did not arrive marks nothing.
func TestSendToNobody(t *testing.T) {
	r := newRoot(t, nil)
	team := newTeam(t, r, "alice", "bob", "carol")
	question := &wire.Message{Body: "?"}
	err := sendTo(team, team.Box("alice"), "bob", question)
	must(t, err)
	gone := wire.Address{Agent: "zed", Team: "main"}
	for _, to := range [][]wire.Address{{gone}, {gone, team.Box("carol").Address()}} {
		sent, err := r.Send(t.Context(), &Outgoing{From: team.Box("bob"), To: to, Parent: question, Message: &wire.Message{Body: "!"}})
		if !errors.Is(err, maildir.ErrNoAgent) || len(sent.To) != len(to) || sent.To[len(to)-1].Address != gone || sent.Unmarked != nil {
			t.Errorf("%+v, %v", sent, err)
		}
	}
	if got := unreadOf(t, team, "carol"); len(got) != 1 {
		t.Errorf("carol got %q", got)
	}
	if it, err := team.Box("bob").Get(question.ID); err != nil || it.State != maildir.Unread {
		t.Error("the question is marked, though its sender has no answer")
	}
	if sent, err := r.Send(t.Context(), &Outgoing{From: team.Box("bob"), Message: &wire.Message{Body: "!"}}); sent != nil || err == nil {
		t.Error("sent to nobody")
	}
}
