package mailbox_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// newMailbox makes bob's mailbox in a directory of its own.
func newMailbox() (bob *mailbox.Mailbox, remove func()) {
	root, err := os.MkdirTemp("", "atm-example-")
	if err != nil {
		log.Fatal(err)
	}
	bob, err = mailbox.Create(context.Background(), filepath.Join(root, "main", "bob"))
	if err != nil {
		log.Fatal(err)
	}
	return bob, func() { bob.Close(); os.RemoveAll(root) }
}

func ExampleMailbox_Deliver() {
	bob, remove := newMailbox()
	defer remove()
	alice := wire.Address{Agent: "alice"} // of bob's team
	out, err := bob.Deliver(context.Background(), wire.Message{From: alice, Body: "rebase, please"})
	fmt.Println(out.IsStored, out.WasDelivered, err)
	// After a kill, the same id is the same message.
	out, err = bob.Deliver(context.Background(), wire.Message{ID: out.ID, From: alice, Body: "rebase, please"})
	fmt.Println(out.IsStored, out.WasDelivered, err)
	// Output:
	// true false <nil>
	// true true <nil>
}

func ExampleMailbox_HandOver() {
	bob, remove := newMailbox()
	defer remove()
	ctx, alice := context.Background(), wire.Address{Agent: "alice"}
	bob.Deliver(ctx, wire.Message{From: alice, Body: "rebase, please"})
	var queue []string // of another program
	err := bob.HandOver(ctx, func(m *wire.Message, mayBeRepeat bool) error {
		queue = append(queue, m.Body)
		return nil // it is there, and so counts as read
	})
	fmt.Println(queue, err)
	// Output:
	// [rebase, please] <nil>
}

func ExampleMailbox_Read() {
	bob, remove := newMailbox()
	defer remove()
	ctx, alice := context.Background(), wire.Address{Agent: "alice"}
	for _, text := range []string{"one", "two"} {
		bob.Deliver(ctx, wire.Message{From: alice, Body: text})
	}
	err := bob.Read(ctx, 1, func(m *wire.Message) error {
		fmt.Println(m.From, "says", m.Body)
		return nil // it counts as read
	})
	fmt.Println(err)
	for it, err := range bob.List(ctx) {
		fmt.Println(it.Body, "is", it.State, err)
	}
	// Output:
	// alice@main says one
	// <nil>
	// two is unread <nil>
}

func ExampleMailbox_Watch() {
	bob, remove := newMailbox()
	defer remove()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go bob.Deliver(ctx, wire.Message{From: wire.Address{Agent: "alice"}, Body: "hello"})
	for m, err := range bob.Watch(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(m.Body)
		break
	}
	// Output: hello
}

func ExampleOpen() {
	_, err := mailbox.Open("no/such/team/bob")
	fmt.Println(err != nil)
	// Output: true
}
