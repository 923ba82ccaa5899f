package wire_test

import (
	"errors"
	"fmt"

	"github.com/agentteammail/atm/wire"
)

// A message is read, answered and written. Members that nobody knows are kept.
func ExampleDecode() {
	m, err := wire.Decode([]byte(`{"id":"01a1f859-f5a6-728f-8e26-bc745809e3b2","from":"alice@main","to":["bob@main"],"body":"Rebase, please.","ticket":7}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	answer := wire.Message{From: m.To[0], To: []wire.Address{m.From}, InReplyTo: m.ID, Thread: m.ThreadID(), Body: "Done.", Hop: m.NextHop()}
	line, _ := answer.MarshalJSON()
	fmt.Println(m.Title(), string(m.Extra))
	fmt.Println(string(line))
	// Output: Rebase, please. {"ticket":7}
	// {"type":"message","from":"bob@main","to":["alice@main"],"thread":"01a1f859-f5a6-728f-8e26-bc745809e3b2","in_reply_to":"01a1f859-f5a6-728f-8e26-bc745809e3b2","body":"Done.","hop":1}
}

// An error says where.
func ExampleDecodeError() {
	_, err := wire.Decode([]byte("{\"from\":\"alice@main\",\n \"body\":5}"))
	var where *wire.DecodeError
	fmt.Println(errors.As(err, &where), where.Line, err)
	// Output: true 2 line 2, column 9: body: must be a string
}

// Ids sort by the time at which they were made. A derived one is the same whoever derives it.
func ExampleNewID() {
	a, b := wire.NewID(), wire.NewID()
	bob, _ := wire.ParseAddress("bob", "main")
	mine, again := wire.AckID(a, bob, 0), wire.AckID(a, bob, 0)
	fmt.Println(a < b, mine == again, mine == a)
	// Output: true true false
}

// An event has fields of its kind beside those that all events have.
func ExampleEvent_With() {
	e := wire.Event{Seq: 1, Team: "main", Agent: "bob", Source: "cli", Kind: wire.TurnCompleted, TurnID: "7"}.With("status", "failed")
	line := e.Append(nil)
	fmt.Println(string(line))
	back, err := wire.DecodeEvent(line)
	fmt.Println(back.Text("status"), back.Text("turn_id"), err)
	// Output:
	// {"seq":1,"team":"main","agent":"bob","source":"cli","kind":"turn_completed","turn_id":"7","status":"failed"}
	// failed 7 <nil>
}
