package bridge

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/mailbox"
)

// badDir holds envelopes that were not accepted: each under its own SHA-256, with the reason beside it. One
// without a reason is to be tried again.
var badDir = path.Join(mailbox.BridgeDir, "bad")

const reasonSuffix = ".reason"

func nameOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// setAside keeps an envelope that is not accepted, durably, and says why.
func (b *Bridge) setAside(in *incoming) error {
	dir, name := b.Team.Dir(), cmp.Or(in.bad, nameOf(in.data))
	data := in.data[:min(len(in.data), maxEnvelope+1)] // one that is larger will never be accepted
	err := dir.MkdirAll(badDir)
	if there, e := dir.Exists(path.Join(badDir, name)); err == nil && !there && e == nil {
		err = dir.Replace(path.Join(badDir, name), data, true)
	}
	if err == nil {
		err = dir.Replace(path.Join(badDir, name+reasonSuffix), []byte(in.err.Error()+"\n"), true)
	}
	if err != nil {
		return fmt.Errorf("set aside %s: %w", name, errors.Join(err, in.err))
	}
	b.report(Transfer{Kind: "bad", Title: name[:12], Reason: in.err.Error()})
	return nil
}

func (b *Bridge) dropBad(name string) error { return b.Team.Dir().Remove(path.Join(badDir, name)) }

// takeAgain takes in what Retry asked for.
func (b *Bridge) takeAgain(ctx context.Context) error {
	names, err := badNames(b.Team.Dir(), false)
	for _, name := range names {
		data, e := b.Team.Dir().ReadFile(path.Join(badDir, name), maxEnvelope+1)
		if err = errors.Join(err, e); e == nil && ctx.Err() == nil {
			b.takeIn(ctx, []*incoming{{data: data, bad: name}})
		}
	}
	return err
}

// badNames are the envelopes in bad, with a reason or without.
func badNames(team *durable.Root, withReason bool) (names []string, err error) {
	all, err := team.Names(badDir)
	has := map[string]bool{}
	for _, name := range all {
		has[name] = true
	}
	for _, name := range all {
		if name[0] != '.' && !strings.HasSuffix(name, reasonSuffix) && has[name+reasonSuffix] == withReason {
			names = append(names, name)
		}
	}
	return names, err
}

// Retry has the bridge that runs, or the next one, try again what lies in a team's bad, and says how many these
// are.
func Retry(team *durable.Root) (n int, err error) {
	names, err := badNames(team, true)
	for _, name := range names {
		if e := team.Remove(path.Join(badDir, name+reasonSuffix)); e != nil {
			err = errors.Join(err, e)
		} else {
			n++
		}
	}
	return n, err
}
