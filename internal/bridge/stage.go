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
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// receivedDir has a receipt for each message of another host that is on its way through a mailbox here.
var receivedDir = path.Join(mailbox.BridgeDir, "received")

// The stages that a sender on another host is told of; a reply tells of itself.
var stageNames = strings.Fields("stored announced read turn_started turn_done acked")

const (
	gatherStages = time.Second // events come in crowds, and mail goes first
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
	data, err := json.Marshal(r)
	if err == nil {
		err = b.Team.Dir().Replace(r.file(), data, r.Answered)
	}
	return err
}

// noteReceived makes the receipt of a message that was delivered, unless it is there.
func (b *Bridge) noteReceived(m *wire.Message, recipient wire.Name) error {
	r := &receipt{Sender: m.From.String(), At: time.Now().UTC(), RequiresAck: m.RequiresAck, id: m.ID, recipient: recipient}
	there, err := b.Team.Dir().Exists(r.file())
	if err != nil || there || m.Kind() == wire.TypeAck || m.Kind() == wire.TypeNotice { // of an ack nobody asks
		return err
	}
	return cmp.Or(b.Team.Dir().MkdirAll(receivedDir), b.writeReceipt(r))
}

// receipts are those that are open, by recipient. One that is a week old is forgotten.
func (b *Bridge) receipts() (open map[wire.Name][]*receipt, err error) {
	open = map[wire.Name][]*receipt{}
	names, err := b.Team.Dir().Names(receivedDir)
	for _, name := range names {
		id, recipient, _ := strings.Cut(name, ".")
		r := &receipt{id: wire.ID(id), recipient: wire.Name(recipient)}
		data, e := b.Team.Dir().ReadFile(path.Join(receivedDir, name), maxHeader)
		if e != nil || !wire.IsID(id) || !wire.IsName(recipient) || json.Unmarshal(data, r) != nil {
			continue // somebody else's, or just removed
		}
		sender, e := wire.ParseAddress(r.Sender, "")
		if r.host = sender.Host; e != nil || r.host == "" || r.host == b.Host {
			continue
		}
		if time.Since(r.At) > forgetAfter {
			b.Team.Dir().Remove(r.file())
		} else if !r.Answered {
			open[r.recipient] = append(open[r.recipient], r)
		}
	}
	return open, err
}

// addEvents watches what tells of stages.
func (b *Bridge) addEvents(w *watcher.Dirs) {
	w.Add(b.Team.Dir().Join(receivedDir))
	boxes, _ := b.Team.Boxes()
	for _, box := range boxes {
		w.Add(path.Join(box.Path(), "events"))
	}
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
		var acks []func() error // waiting for one after the other, all are under way
		for _, r := range some {
			if err == nil {
				var acked func() error
				if acked, err = b.publishStages(ctx, r, turns.Delivery(r.id)); acked != nil {
					acks = append(acks, func() error {
						if err := acked(); err != nil {
							return err
						}
						return b.writeReceipt(r)
					})
				}
			}
		}
		for _, ack := range acks {
			err = cmp.Or(ack(), err)
		}
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("tell of mail for %s: %w", name, err))
		}
	}
	return errs
}

// publishStages publishes what is new of a message's way, nil where nothing is. A receipt whose message can get no
// further is removed.
func (b *Bridge) publishStages(ctx context.Context, r *receipt, d *teams.Delivery) (acked func() error, err error) {
	where := b.Team.Box(r.recipient).Path()
	news := append([]teams.Stage{{Stage: "stored", At: &r.At, Evidence: &where}}, d.Stages(r.recipient)...)
	news = slices.DeleteFunc(news, func(s teams.Stage) bool { return slices.Contains(r.Told, s.Stage) })
	if len(news) == 0 {
		isOver := d.Turn.HasEnded() || d.Turn == nil && time.Since(r.At) > turnWithin
		if isOver && d.Read.Exists() && (d.Acked.Exists() || !r.RequiresAck) {
			err = b.Team.Dir().Remove(r.file())
		}
		return nil, err
	}
	for _, s := range news {
		r.Told = append(r.Told, s.Stage)
	}
	to := wire.Address{Agent: r.recipient, Team: b.Team.Name, Host: b.Host}
	content, err := json.Marshal(stages{r.id, r.Sender, to.String(), news})
	if err != nil {
		return nil, err
	}
	id := wire.Derive("stages "+strings.Join(r.Told, " "), r.id, to)
	return b.publish(ctx, &Envelope{Kind: KindStage, ID: id, ToHost: r.host, Content: content})
}

// noteStages notes stages at other hosts in the logs of those who sent the messages.
func (b *Bridge) noteStages(ctx context.Context, batch []*incoming) {
	events := map[wire.Name][]wire.Event{}
	for _, in := range batch {
		var s stages
		if len(in.Content) > maxStages || json.Unmarshal(in.Content, &s) != nil {
			in.err = bad("its content tells of no stages")
			continue
		}
		sender, err := wire.ParseAddress(s.Sender, "")
		to, err2 := wire.ParseAddress(s.To, "")
		if err != nil || err2 != nil || !wire.IsID(string(s.ID)) || sender.Host != b.Host || sender.Team != b.Team.Name || to.Host != in.FromHost {
			in.err = bad("host %s tells of %q on the way from %q to %q", in.FromHost, s.ID, s.Sender, s.To)
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
			b.report(Transfer{Kind: "stage", ID: s.ID, Host: in.FromHost, From: b.who(sender), To: b.who(to), Title: stage.Stage})
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
