package post

import (
	"errors"
	"strings"
	"testing"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/filestore"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/wire"
)

// Send is all that an answer needs: it stores its files, marks what it answers, and under one name it is one message.
func TestSend(t *testing.T) {
	r := teamtest.NewRoot(t, nil)
	team := teamtest.NewTeam(t, r, "alice", "bob")
	other, err := r.CreateTeam("other")
	teamtest.Must(t, err)
	teamtest.Must(t, other.Store.Create(t.Context(), "dora"))
	alice, bob := team.Box("alice"), team.Box("bob")
	question := &wire.Message{Body: "?", RequiresAck: true}
	err = sendTo(team, alice, "bob", question)
	teamtest.Must(t, err)
	for range 2 {
		answer := &Outgoing{
			From: bob, To: []wire.Address{alice.Address(), other.Box("dora").Address()}, Parent: question, Once: "answer",
			Message: &wire.Message{Body: "!"}, Files: []File{{"a.txt", strings.NewReader("file")}},
		}
		sent, err := Send(t.Context(), r, answer)
		teamtest.Must(t, err)
		if len(sent.To) != 2 || sent.Unmarked != nil || sent.Unlisted != nil {
			t.Errorf("%+v", sent)
		}
		for _, to := range sent.To {
			box, err := r.Mailbox(to.Address)
			teamtest.Must(t, err)
			f, err := filestore.Open(box.Store().Dir(), answer.Message.Attachments[0])
			teamtest.Must(t, err)
			f.Close()
		}
	}
	if got := teamtest.UnreadOf(t, team, "alice"); len(got) != 1 || got[0] != "!" {
		t.Errorf("alice got %q", got)
	}
	it, err := bob.Get(question.ID)
	teamtest.Must(t, err)
	if it.State != wire.Done {
		t.Errorf("the question is %s, not acknowledged", it.State)
	}
}

// A recipient that nobody knows keeps the message from nobody else, and an answer that did not arrive marks nothing.
func TestSendToNobody(t *testing.T) {
	r := teamtest.NewRoot(t, nil)
	team := teamtest.NewTeam(t, r, "alice", "bob", "carol")
	question := &wire.Message{Body: "?"}
	err := sendTo(team, team.Box("alice"), "bob", question)
	teamtest.Must(t, err)
	gone := wire.Address{Agent: "zed", Team: "main"}
	for _, to := range [][]wire.Address{{gone}, {gone, team.Box("carol").Address()}} {
		sent, err := Send(t.Context(), r, &Outgoing{From: team.Box("bob"), To: to, Parent: question, Message: &wire.Message{Body: "!"}})
		if !errors.Is(err, maildir.ErrNoMailbox) || len(sent.To) != len(to) || sent.To[len(to)-1].Address != gone || sent.Unmarked != nil {
			t.Errorf("%+v, %v", sent, err)
		}
	}
	if got := teamtest.UnreadOf(t, team, "carol"); len(got) != 1 {
		t.Errorf("carol got %q", got)
	}
	if it, err := team.Box("bob").Get(question.ID); err != nil || it.State != wire.Unread {
		t.Error("the question is marked, though its sender has no answer")
	}
	if sent, err := Send(t.Context(), r, &Outgoing{From: team.Box("bob"), Message: &wire.Message{Body: "!"}}); sent.To != nil || err == nil {
		t.Error("sent to nobody")
	}
}
