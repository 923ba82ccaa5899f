package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// receivedDir has a receipt for each message of another host that is on its way through a mailbox here.
var receivedDir = path.Join(mailbox.BridgeDir, "received")

// The stages that a sender on another host is told of; a reply tells of itself.
var stageNames = strings.Fields("stored announced read turn_started turn_done acked")

const (
	stagesGather = time.Second // events come in crowds, and mail goes first
	turnWithin   = time.Hour   // of the arrival; else what was read went into no turn
	forgetAfter  = 7 * 24 * time.Hour
	maxStages    = 64 << 10 // bytes of content
)

// receipt is what the sender of a message was told of its way.
type receipt struct {
	Sender      string    `json:"sender"` // whole
	At          time.Time `json:"at"`     // when the message was stored here
	RequiresAck bool      `json:"requires_ack,omitempty"`
	Told        []string  `json:"told,omitempty"`     // stages
	Answered    bool      `json:"answered,omitempty"` // an answer that was judged: it is done once

	id        wire.ID
	recipient wire.Name
	host      wire.Name // the sender's
}

func (r *receipt) file() string { return path.Join(receivedDir, string(r.id)+"."+string(r.recipient)) }

func (b *Bridge) writeReceipt(r *receipt) error {
	data, _ := json.Marshal(r)
	if err := b.Team.Dir().MkdirAll(receivedDir); err != nil {
		return err
	}
	return b.Team.Dir().Replace(r.file(), data, r.Answered)
}

// isOneWay reports whether nobody is told what becomes of a message.
func isOneWay(m *wire.Message) bool { return m.Kind() == wire.TypeAck || m.Kind() == wire.TypeNotice }

func (b *Bridge) noteReceived(m *wire.Message, recipient wire.Name) error {
	r := &receipt{Sender: m.From.String(), At: time.Now().UTC(), RequiresAck: m.RequiresAck, id: m.ID, recipient: recipient}
	there, err := b.Team.Dir().Exists(r.file())
	if err != nil || there || isOneWay(m) {
		return err
	}
	return b.writeReceipt(r)
}

// receipts are those that are open, by recipient. One that is a week old is forgotten.
func (b *Bridge) receipts() (open map[wire.Name][]*receipt, err error) {
	open = map[wire.Name][]*receipt{}
	names, err := b.Team.Dir().Names(receivedDir)
	for _, name := range names {
		id, recipient, _ := strings.Cut(name, ".")
		r := &receipt{id: wire.ID(id), recipient: wire.Name(recipient)}
		data, _ := b.Team.Dir().ReadFile(path.Join(receivedDir, name), maxHeader) // it may just have been removed
		isWhole := json.Unmarshal(data, r) == nil && wire.IsID(id) && wire.IsName(recipient)
		sender, e := wire.ParseAddress(r.Sender, "")
		r.host = sender.Host
		switch {
		case !isWhole || e != nil || r.host == "" || r.host == b.Host: // somebody else's
		case time.Since(r.At) > forgetAfter:
			b.Team.Dir().Remove(r.file())
		case !r.Answered:
			open[r.recipient] = append(open[r.recipient], r)
		}
	}
	return open, err
}

// stages is the content of an envelope of the kind stage: how far a message has got with one recipient.
type stages struct {
	ID     wire.ID       `json:"id"`
	Sender string        `json:"sender"`
	To     string        `json:"to"`
	Stages []teams.Stage `json:"stages"`
}

// sendStages tells senders on other hosts what has become of their messages since they were told last.
func (b *Bridge) sendStages(ctx context.Context) (errs error) {
	open, errs := b.receipts()
	for name, some := range open {
		since := slices.MinFunc(some, func(x, y *receipt) int { return x.At.Compare(y.At) }).At
		turns, err := b.Team.Turns(name, since.Add(-time.Minute))
		if errors.Is(err, mailbox.ErrNoAgent) {
			continue // retired; it may be restored
		}
		var acks []func() error // as in sendSome
		for _, r := range some {
			if err == nil {
				acks = append(acks, b.publishNews(ctx, r, turns.Delivery(r.id)))
			}
		}
		for _, acked := range acks {
			err = cmp.Or(err, acked())
		}
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("tell of mail for %s: %w", name, err))
		}
	}
	return errs
}

// publishNews publishes what is new of a message's way. acked then notes it in the receipt; one whose message can
// get no further is removed.
func (b *Bridge) publishNews(ctx context.Context, r *receipt, d *teams.Delivery) (acked func() error) {
	where := b.Team.Box(r.recipient).Path()
	news := append([]teams.Stage{{Stage: "stored", At: &r.At, Evidence: &where}}, d.Stages(r.recipient)...)
	news = slices.DeleteFunc(news, func(s teams.Stage) bool { return slices.Contains(r.Told, s.Stage) })
	if len(news) == 0 {
		return func() error {
			isOver := d.Turn.HasEnded() || d.Turn == nil && time.Since(r.At) > turnWithin
			if isOver && d.Read.Exists() && (d.Acked.Exists() || !r.RequiresAck) {
				return b.Team.Dir().Remove(r.file())
			}
			return nil
		}
	}
	for _, s := range news {
		r.Told = append(r.Told, s.Stage)
	}
	published := b.publishStages(ctx, r, strings.Join(r.Told, " "), news)
	return func() error {
		if err := published(); err != nil {
			return err
		}
		return b.writeReceipt(r)
	}
}

// publishStages tells the sender of a message of stages, once under each name.
func (b *Bridge) publishStages(ctx context.Context, r *receipt, name string, some []teams.Stage) (acked func() error) {
	to := wire.Address{Agent: r.recipient, Team: b.Team.Name, Host: b.Host}
	content, _ := json.Marshal(stages{r.id, r.Sender, to.String(), some})
	return b.publish(ctx, &Envelope{Kind: KindStage, ID: wire.Derive("stages "+name, r.id, to), ToHost: r.host, Content: content})
}

// readStages reads what another host tells of a message that somebody here sent.
func (b *Bridge) readStages(in *incoming) (s stages, sender, to wire.Address, err error) {
	if len(in.Content) > maxStages || json.Unmarshal(in.Content, &s) != nil {
		return s, sender, to, bad("its content tells of no stages")
	}
	sender, err = wire.ParseAddress(s.Sender, "")
	to, err2 := wire.ParseAddress(s.To, "")
	isOurs := sender.Host == b.Host && sender.Team == b.Team.Name && to.Host == in.FromHost
	if err != nil || err2 != nil || !wire.IsID(string(s.ID)) || !isOurs {
		err = bad("host %s tells of %q on the way from %q to %q", in.FromHost, s.ID, s.Sender, s.To)
	}
	return s, sender, to, err
}

// noteStages notes stages at other hosts in the logs of those who sent the messages.
func (b *Bridge) noteStages(ctx context.Context, batch []*incoming) {
	events := map[wire.Name][]wire.Event{}
	for _, in := range batch {
		s, sender, to, err := b.readStages(in)
		if err != nil {
			in.err = err
			continue
		}
		for _, stage := range s.Stages {
			if !slices.Contains(stageNames, stage.Stage) || stage.Evidence == nil {
				continue
			}
			e := wire.Event{Source: "bridge", Kind: wire.EventStage, EventID: string(wire.Derive("stage "+stage.Stage, s.ID, to))}
			e = e.With("id", s.ID).With("to", s.To).With("host", in.FromHost).With("stage", stage.Stage).With("reached_at", stage.At).With("evidence", stage.Evidence)
			if stage.Text != "" {
				e = e.With("text", stage.Text)
			}
			events[sender.Agent] = append(events[sender.Agent], e)
			b.Report(Transfer{Kind: "stage", ID: s.ID, Host: in.FromHost, From: b.who(sender), To: b.who(to), Title: stage.Stage})
		}
	}
	for name, some := range events {
		err := b.Team.Box(name).Log().AppendSync(ctx, some...)
		if err == nil || errors.Is(err, mailbox.ErrNoAgent) { // who is not there is not told
			continue
		}
		for _, in := range batch { // those that are noted are known the next time
			in.err = cmp.Or(in.err, err)
		}
	}
}
