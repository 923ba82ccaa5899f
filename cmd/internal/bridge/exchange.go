package bridge

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/internal/hostkey"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/teamdir/presence"
)

// exchangeWait is for how long an exchange waits for one that another command makes.
const exchangeWait = 10 * time.Second

// ExchangeMain makes an exchange with each root that the team's has a link to, and returns an exit code. Why one could
// not be made is noted for trace and doctor.
func ExchangeMain(version string, words []string) int {
	return command.RunCompanion("exchange", version, words, func(c *cli.Context) error {
		s, err := app.OpenTeam(command.Given(c))
		if err != nil {
			return err
		}
		links, err := s.Root.Links()
		for _, l := range links {
			e := exchange(c.Context, s, l)
			if e != nil && !errors.Is(e, errNoted) {
				presence.NoteHeld(s.Team, l.Name, e.Error())
			}
			err = cmp.Or(err, e)
		}
		return err
	})
}

// errNoted is an error of mail that a bridge has noted where it waits.
var errNoted = errors.New("not all could be carried")

// exchange carries what the two teams of a link have for each other. Both ends of the bridge are in this process.
func exchange(ctx context.Context, s *app.Scope, l hostkey.Link) error {
	if err := s.CheckAccepted(); err != nil {
		return err
	}
	there, back, err := s.OpenLinked(l)
	if err != nil {
		return err
	}
	defer there.Root.Close()
	isInAgent := s.Actor().IsAgent
	ends := []*joined{newEnd(s, l, back, isInAgent), newEnd(there, back, l, isInAgent)}
	ends[0].other, ends[1].other = ends[1], ends[0]
	byPath := ends
	if there.Root.Path < s.Root.Path { // two exchanges from both sides must not wait for each other
		byPath = []*joined{ends[1], ends[0]}
	}
	for _, b := range byPath {
		lock, err := b.Team.Locks().Lock(ctx, presence.BridgeLock(b.peer), lockfile.Exclusive, exchangeWait, nil)
		if _, isHeld := errors.AsType[*lockfile.HeldError](err); isHeld {
			return fmt.Errorf("another command exchanges with %s", l.Name)
		} else if err != nil {
			return err
		}
		defer lock.Unlock()
		if err := presence.PruneTaken(b.Team); err != nil {
			return err
		}
	}
	steps := []func(*Bridge, context.Context) error{(*Bridge).send, (*Bridge).retryBad, (*Bridge).sendStages, (*Bridge).send, (*Bridge).sendRows}
	for _, step := range steps {
		for _, b := range ends {
			if e := step(b.Bridge, ctx); e != nil { // the other steps still run
				err = fmt.Errorf("%w: %w", errNoted, e)
			}
		}
	}
	return err
}

// newEnd is one root's end of a link.
func newEnd(s *app.Scope, l, back hostkey.Link, isInAgent bool) *joined {
	b := &Bridge{
		Root: s.Root, Team: s.Team, Host: back.Name, peer: l.Name, key: ed25519.NewKeyFromSeed(l.Seed),
		peerKey: ed25519.NewKeyFromSeed(back.Seed).Public().(ed25519.PublicKey), isInAgent: isInAgent,
		Report: func(Transfer) {}, Warn: func(line string) { s.Given.Warn("%s", line) },
	}
	end := &joined{Bridge: b, objects: map[string]func() (io.ReadCloser, error){}}
	b.way = end
	return end
}

// joined is the transport of a link: it hands over to the other end, which answers at once.
type joined struct {
	*Bridge
	other   *joined
	handed  []*incoming                              // what the other end is about to get
	objects map[string]func() (io.ReadCloser, error) // by their SHA-256
}

func (j *joined) String() string                                         { return string(j.peer) }
func (j *joined) connect(context.Context) error                          { return nil }
func (j *joined) close()                                                 {}
func (j *joined) keep(context.Context) error                             { return nil }
func (j *joined) maxInline() int                                         { return maxInline }
func (j *joined) beginPass()                                             {}
func (j *joined) receive(context.Context, func([]delivery)) (int, error) { return 0, nil }
func (j *joined) receiveRows(context.Context) error                      { return nil }

// publish has the other end take the envelope, with all that were published before, when the first of them is asked for.
func (j *joined) publish(ctx context.Context, e *Envelope, data []byte) (acked func() error) {
	if e.Object {
		content := e.Content
		j.objects[e.SHA256] = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	}
	d := &handed{data: data}
	j.handed = append(j.handed, newIncoming(d))
	return func() error {
		batch := j.handed
		j.handed = nil
		j.other.ingest(ctx, batch, func(in *incoming) { j.other.fetch(ctx, in) })
		if d.err != nil {
			return fmt.Errorf("%s has not taken it: %w", j.peer, d.err)
		}
		return nil
	}
}

func (j *joined) offer(_ context.Context, sha256 string, open func() (io.ReadCloser, error)) error {
	j.objects[sha256] = open
	return nil
}

func (j *joined) object(_ context.Context, sha256 string) (io.ReadCloser, error) {
	open := j.other.objects[sha256]
	if open == nil {
		return nil, fmt.Errorf("%s has no %s", j.peer, sha256)
	}
	return open()
}

func (j *joined) publishRows(_ context.Context, data []byte) error {
	j.other.saveRows(rowsKey(j.Host), data, time.Now())
	return nil
}

// handed is an envelope that the other end gets. One that is not accepted stays in the outbox.
type handed struct {
	data []byte
	err  error
}

func (d *handed) Data() []byte                            { return d.data }
func (d *handed) meta() (uint64, time.Time)               { return 1, time.Time{} }
func (d *handed) InProgress() error                       { return nil }
func (d *handed) accept() error                           { return nil }
func (d *handed) refuse(err error, _ time.Duration) error { d.err = err; return nil }
