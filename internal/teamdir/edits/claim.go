package edits

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/wire"
)

// MaxClaim is how long a claim may last.
const MaxClaim = 24 * time.Hour

// Claim says that a member is about to edit a file, or what is in a directory, until a time.
type Claim struct {
	Path  string    `json:"path"` // real and absolute
	By    wire.Name `json:"by"`
	At    time.Time `json:"at"`
	Until time.Time `json:"until"`
}

func (c Claim) holds(now time.Time) bool {
	return now.Before(c.Until) && c.Until.Sub(now) <= MaxClaim && wire.IsName(string(c.By))
}

// ClaimedBy returns the claim of another member on a file, or on a directory that has it.
func ClaimedBy(t *teamdir.Team, path string, me wire.Name) (Claim, bool) {
	path, err := editable(t, path)
	for now := time.Now(); err == nil && path != ""; path = filepath.Dir(path) {
		f, _ := readEdits(t, editsName(path))
		if c := f.Claim; c != nil && c.holds(now) && c.By != me {
			return *c, true
		}
		if path == filepath.Dir(path) {
			break
		}
	}
	return Claim{}, false
}

// ClaimedError says that another member has claimed a file, or something in a directory.
type ClaimedError struct{ Claim }

func (e *ClaimedError) Error() string {
	return fmt.Sprintf("%s has claimed %s until %s", e.By, letter.Quote(e.Path, 300), letter.Stamp(e.Until))
}

// NewClaim is a claim that a member has made, with what others edited there within EditWindow.
type NewClaim struct {
	Claim
	Edits []Edit `json:"edits,omitempty"`
}

// ClaimPaths claims files or directories for a member, or extends its claims. If another member has claimed one of them,
// or something in one, or a directory that has it, none is claimed, and the error is a *ClaimedError. With another error
// those are claimed that it returns.
func ClaimPaths(ctx context.Context, t *teamdir.Team, me wire.Name, paths []string, d time.Duration) (all []NewClaim, err error) {
	var wanted []string
	for _, path := range paths {
		if path, err = editable(t, path); err == nil && path == "" {
			err = errors.New("what is in the root is not claimed: each member has its own there")
		}
		if err != nil {
			return nil, err
		}
		wanted = append(wanted, path)
	}
	err = lockEdits(ctx, t, func() error { // over the look and all writes: of two that exclude each other one comes second
		claimed, err := Claims(t)
		if err != nil {
			return err
		}
		for _, c := range claimed {
			isIn := func(path string) bool { return isWithin(path, c.Path) || isWithin(c.Path, path) }
			if c.By != me && slices.ContainsFunc(wanted, isIn) {
				return &ClaimedError{c}
			}
		}
		now := time.Now().UTC()
		for _, path := range wanted {
			c := NewClaim{Claim: Claim{Path: path, By: me, At: now, Until: now.Add(d)}}
			err = writeEdits(t, path, func(f *fileEdits) {
				f.Claim = &c.Claim
				c.Edits = slices.DeleteFunc(slices.Clone(f.Edits), func(e Edit) bool { return e.By == me })
			})
			if err != nil {
				return err
			}
			all = append(all, c)
		}
		return nil
	})
	return all, err
}

// ReleaseClaim ends the claim on a path: of one member, or whose it is if by is "". It returns who had it; "": nobody.
func ReleaseClaim(ctx context.Context, t *teamdir.Team, by wire.Name, path string) (had wire.Name, err error) {
	path, err = editable(t, path)
	if err != nil || path == "" {
		return "", err
	}
	err = changeEdits(ctx, t, path, func(f *fileEdits) {
		if f.Claim != nil && (by == "" || f.Claim.By == by) {
			had, f.Claim = f.Claim.By, nil
		}
	})
	return had, err
}

// ReleaseAll ends the claims of a member who leaves.
func ReleaseAll(ctx context.Context, t *teamdir.Team, by wire.Name) error {
	all, err := Claims(t)
	for _, c := range all {
		if c.By == by {
			_, failed := ReleaseClaim(ctx, t, by, c.Path)
			err = errors.Join(err, failed)
		}
	}
	return err
}

// Claims returns the claims that hold, by path.
func Claims(t *teamdir.Team) (all []Claim, err error) {
	err = eachEdits(t, func(f fileEdits) {
		if f.Claim != nil {
			all = append(all, *f.Claim)
		}
	})
	slices.SortFunc(all, func(a, b Claim) int { return cmp.Compare(a.Path, b.Path) })
	return all, err
}
