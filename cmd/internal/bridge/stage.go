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

	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer/history"
	"github.com/agentteammail/atm/wire"
)

// stageNames are the stages that are reported to a sender on another host. A reply needs no report.
var stageNames = strings.Fields("stored announced read turn_started turn_done acked")

const (
	stagesGather = time.Second // events come in bursts, and mail goes first
	turnWithin   = time.Hour   // how long after its arrival a message may begin a turn
	forgetAfter  = 7 * 24 * time.Hour
)

// receipt says which stages of a message were reported to its sender.
type receipt struct {
	Sender      string    `json:"sender"` // with team and host
	At          time.Time `json:"at"`     // when the message was stored here
	RequiresAck bool      `json:"requires_ack,omitempty"`
	Reported    []string  `json:"told,omitempty"`
	Answered    bool      `json:"answered,omitempty"` // the message is an answer that was applied, which happens once

	id        wire.ID
	recipient wire.Name
	host      wire.Name // the sender's
}

func (r *receipt) file() string {
	return path.Join(teamdir.ReceivedDir, string(r.id)+"."+string(r.recipient))
}

func (b *Bridge) writeReceipt(r *receipt) error {
	data, _ := json.Marshal(r)
	if err := b.Team.Dir().MkdirAll(teamdir.ReceivedDir); err != nil {
		return err
	}
	return b.Team.Dir().Replace(r.file(), data, r.Answered)
}

// isOneWay reports whether a message's stages are never reported.
func isOneWay(m *wire.Message) bool { return m.Kind() == wire.TypeAck || m.Kind() == wire.TypeNotice }

func (b *Bridge) addReceipt(m *wire.Message, recipient wire.Name) error {
	r := &receipt{Sender: m.From.String(), At: time.Now().UTC(), RequiresAck: m.RequiresAck, id: m.ID, recipient: recipient}
	exists, err := b.Team.Dir().Exists(r.file())
	if err != nil || exists || isOneWay(m) {
		return err
	}
	return b.writeReceipt(r)
}

// openReceipts returns the receipts with stages to come, by recipient. It removes those older than forgetAfter.
func (b *Bridge) openReceipts() (open map[wire.Name][]*receipt, err error) {
	open = map[wire.Name][]*receipt{}
	names, err := b.Team.Dir().Names(teamdir.ReceivedDir)
	for _, name := range names {
		id, recipient, _ := strings.Cut(name, ".")
		if !wire.IsID(id) {
			continue
		}
		r := &receipt{id: wire.ID(id), recipient: wire.Name(recipient)}
		data, _ := b.Team.Dir().ReadFile(path.Join(teamdir.ReceivedDir, name), maxHeader) // another goroutine may have removed it
		json.Unmarshal(data, r)
		sender, e := wire.ParseAddress(r.Sender, "")
		r.host = sender.Host
		switch {
		case e != nil: // not a receipt, or not yet
		case time.Since(r.At) > forgetAfter:
			b.Team.Dir().Remove(r.file())
		case !r.Answered && b.isFor(r.host):
			open[r.recipient] = append(open[r.recipient], r)
		}
	}
	return open, err
}

// stages is the content of a stage envelope: new stages of a message at one recipient.
type stages struct {
	ID     wire.ID         `json:"id"`
	Sender string          `json:"sender"`
	To     string          `json:"to"`
	Stages []history.Stage `json:"stages"`
}

// sendStages reports new stages to the senders on other hosts.
func (b *Bridge) sendStages(ctx context.Context) (errs error) {
	b.reporting.Lock()
	defer b.reporting.Unlock()
	b.way.beginPass()
	open, errs := b.openReceipts()
	for name, receipts := range open {
		since := slices.MinFunc(receipts, func(x, y *receipt) int { return x.At.Compare(y.At) }).At
		turns, err := b.Team.HistorySince(name, since.Add(-time.Minute))
		if errors.Is(err, mailbox.ErrNoMailbox) {
			continue // retired; it may be restored
		}
		var acks []func() error // as in sendBatch
		for _, r := range receipts {
			if err == nil {
				acks = append(acks, b.publishNewStages(ctx, r, turns.Delivery(r.id)))
			}
		}
		for _, acked := range acks {
			err = cmp.Or(err, acked())
		}
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("report on mail for %s: %w", name, err))
		}
	}
	return errs
}

// publishNewStages publishes the stages that the receipt does not have. acked then adds them to the receipt, or removes
// it if no more can come.
func (b *Bridge) publishNewStages(ctx context.Context, r *receipt, d *history.Delivery) (acked func() error) {
	boxPath := b.Team.Box(r.recipient).Path()
	all := append([]history.Stage{{Name: "stored", At: r.At, Evidence: boxPath}}, post.StagesOf(d, r.recipient)...)
	fresh := slices.DeleteFunc(all, func(s history.Stage) bool { return slices.Contains(r.Reported, s.Name) })
	if len(fresh) == 0 {
		return func() error {
			isOver := d.Turn.HasEnded() || d.Turn == nil && time.Since(r.At) > turnWithin
			if isOver && d.Read.Exists() && (d.Acked.Exists() || !r.RequiresAck) {
				return b.Team.Dir().Remove(r.file())
			}
			return nil
		}
	}
	for _, s := range fresh {
		r.Reported = append(r.Reported, s.Name)
	}
	published := b.publishStages(ctx, r, strings.Join(r.Reported, " "), fresh)
	return func() error {
		if err := published(); err != nil {
			return err
		}
		return b.writeReceipt(r)
	}
}

// publishStages reports stages to the sender of a message, once for each name.
func (b *Bridge) publishStages(ctx context.Context, r *receipt, name string, list []history.Stage) (acked func() error) {
	to := wire.Address{Agent: r.recipient, Team: b.Team.Name, Host: b.Host}
	content, _ := json.Marshal(stages{r.id, r.Sender, to.String(), list})
	return b.publish(ctx, &Envelope{Kind: KindStage, ID: wire.Derive("stages "+name, r.id, to), ToHost: r.host, Content: content})
}

// parseStages parses what another host reports of a message that somebody here sent.
func (b *Bridge) parseStages(in *incoming) (s stages, sender, to wire.Address, err error) {
	if json.Unmarshal(in.Content, &s) != nil {
		return s, sender, to, bad("its content is not a list of stages")
	}
	sender, _ = wire.ParseAddress(s.Sender, "")
	to, _ = wire.ParseAddress(s.To, "")
	isOurs := sender.Host == b.Host && sender.Team == b.Team.Name && to.Host == in.FromHost
	if !wire.IsID(string(s.ID)) || !isOurs {
		err = bad("host %s reports on %q on the way from %q to %q", in.FromHost, s.ID, s.Sender, s.To)
	}
	return s, sender, to, err
}

// recordStages appends stages at other hosts to the senders' event logs.
func (b *Bridge) recordStages(ctx context.Context, batch []*incoming) {
	events := map[wire.Name][]wire.Event{}
	for _, in := range batch {
		s, sender, to, err := b.parseStages(in)
		if err != nil {
			in.err = err
			continue
		}
		for _, stage := range s.Stages {
			if !slices.Contains(stageNames, stage.Name) {
				continue
			}
			e := wire.Event{Source: wire.SourceBridge, Kind: wire.EventStage, EventID: string(wire.Derive("stage "+stage.Name, s.ID, to))}
			e = e.With(wire.FieldID, s.ID).With("to", s.To).With("host", in.FromHost).With("stage", stage.Name).With("reached_at", stage.At).With("evidence", stage.Evidence).With("text", stage.Text)
			events[sender.Agent] = append(events[sender.Agent], e)
			b.Report(Transfer{Kind: "stage", ID: s.ID, Host: in.FromHost, From: b.display(sender), To: b.display(to), Title: stage.Name})
		}
	}
	for name, list := range events {
		err := b.Team.Box(name).Log().AppendSync(ctx, list...)
		if err == nil || errors.Is(err, mailbox.ErrNoMailbox) { // the sender may be gone
			continue
		}
		for _, in := range batch { // the log deduplicates events that come again
			in.err = cmp.Or(in.err, err)
		}
	}
}
