package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/agentteammail/atm/teams"
)

// setAside keeps an envelope that is not accepted, durably, and says why.
func (b *Bridge) setAside(in *incoming) error {
	dir, file := b.Team.Dir(), path.Join(teams.BadEnvelopes, cmp.Or(in.bad, hashOf(in.data)))
	err := dir.MkdirAll(teams.BadEnvelopes)
	if err == nil && in.bad == "" {
		err = dir.Replace(file, in.data[:min(len(in.data), maxEnvelope+1)], true) // a larger one is never accepted
	}
	if err == nil {
		err = dir.Replace(file+teams.ReasonSuffix, []byte(in.err.Error()+"\n"), true)
	}
	if err != nil {
		return fmt.Errorf("set aside an envelope (%w): %w", in.err, err)
	}
	b.report(Transfer{Kind: "bad", Title: path.Base(file)[:12], Reason: in.err.Error()})
	return nil
}

// takeAgain takes in what `atm bridge retry` asked for.
func (b *Bridge) takeAgain(ctx context.Context) error {
	names, err := b.Team.Dir().Names(teams.BadEnvelopes)
	for _, name := range names {
		if len(name) != 64 || slices.Contains(names, name+teams.ReasonSuffix) {
			continue
		}
		data, e := b.Team.Dir().ReadFile(path.Join(teams.BadEnvelopes, name), maxEnvelope+1)
		if err = errors.Join(err, e); e == nil {
			b.takeIn(ctx, []*incoming{{data: data, bad: name}})
		}
	}
	return err
}
