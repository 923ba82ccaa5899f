package maildir

import "github.com/agentteammail/atm/wire"

// Linked returns the mailbox for use in another root, which calls the mailbox's root as, and is called from there. The
// messages of the mailbox are then as that other root writes their addresses, and are delivered as the owner writes them.
func (b *Box) Linked(as, from wire.Name) *Box {
	return &Box{store: b.store, agent: b.agent, as: as, from: from}
}

// AddressThere returns an address as the mailbox's owner writes it.
func (b *Box) AddressThere(a wire.Address) wire.Address { return renamed(a, b.as, b.from) }

// addressHere is the opposite of AddressThere.
func (b *Box) addressHere(a wire.Address) wire.Address { return renamed(a, b.from, b.as) }

// renamed returns an address of one of two linked roots as the other one writes it: who was of another root is of the own
// one then, and the reverse.
func renamed(a wire.Address, theirs, ours wire.Name) wire.Address {
	switch {
	case theirs == "" || a.Agent == "":
	case a.Host == theirs:
		a.Host = ""
	case a.Host == "":
		a.Host = ours
	}
	return a
}

// MessageThere returns a message as the mailbox's owner gets it. It leaves out the recipients in third places: what these are
// called is not known there.
func (b *Box) MessageThere(m *wire.Message) *wire.Message {
	if b.as == "" {
		return m
	}
	there := *m
	there.From, there.To = b.AddressThere(m.From), nil
	for _, a := range m.To {
		if a.Host == "" || a.Host == b.as {
			there.To = append(there.To, b.AddressThere(a))
		}
	}
	return &there
}

// setHere sets the addresses of a message of the mailbox to what they are here.
func (b *Box) setHere(m *wire.Message) {
	m.From = b.addressHere(m.From)
	for i, a := range m.To {
		m.To[i] = b.addressHere(a)
	}
}
