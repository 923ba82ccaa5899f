package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// ground is the directory that a run works in. Its subdirectories lie far apart
// on the disk, and nothing in it is deleted before the run ends.
type ground struct {
	path     string
	best     time.Duration // of the medians of making a file, in the directories seen
	made     int
	ctx      context.Context
	progress io.Writer
	patience time.Duration
}

// polluted is how many times slower than elsewhere it may be to make a file.
const polluted = 3

func newGround(ctx context.Context, c Config, progress io.Writer) (*ground, error) {
	path, err := os.MkdirTemp(c.Dir, "atm-bench-")
	if err != nil {
		return nil, err
	}
	g := &ground{path: path, ctx: ctx, progress: progress, patience: c.Patience}
	spread(path)
	for range 5 {
		dir, err := g.make("probe")
		if err == nil {
			var p50 time.Duration
			if p50, err = probe(dir); g.best == 0 || p50 < g.best {
				g.best = p50
			}
		}
		if err != nil {
			return nil, errors.Join(err, g.clean())
		}
	}
	return g, nil
}

// dir makes a subdirectory and has build make others in it. Files are made as
// quickly in those that build names as anywhere: they were tried, and others
// taken where they failed.
func (g *ground) dir(name string, build func(path string) (busy []string, err error)) (string, error) {
	for n, began := 0, time.Now(); ; n++ {
		path, err := g.make(name)
		if err != nil {
			return "", err
		}
		busy, err := build(path)
		if err != nil {
			return "", err
		}
		worst := time.Duration(0)
		for i := 0; i < len(busy) && worst <= polluted*g.best; i++ {
			if worst, err = probe(busy[i]); err != nil {
				return "", err
			}
		}
		switch {
		case worst <= polluted*g.best || g.patience == 0:
			return path, nil
		case time.Since(began) > g.patience:
			return "", fmt.Errorf("making a file in %s takes %s, against %s elsewhere: many were deleted on this disk lately",
				path, precision(worst), precision(g.best))
		case n%10 == 9:
			fmt.Fprintf(g.progress, "making a file takes %s, against %s elsewhere: many were deleted lately; waiting\n", precision(worst), precision(g.best))
			select {
			case <-time.After(10 * time.Second):
			case <-g.ctx.Done():
				return "", g.ctx.Err()
			}
		}
	}
}

func (g *ground) make(name string) (path string, err error) {
	g.made++
	path = filepath.Join(g.path, name+"-"+strconv.Itoa(g.made))
	return path, os.Mkdir(path, 0o700)
}

// probe makes some empty files in a directory and tells the median time.
func probe(dir string) (time.Duration, error) {
	took := make([]time.Duration, 40)
	for i := range took {
		began := time.Now()
		f, err := os.Create(filepath.Join(dir, ".probe"+strconv.Itoa(i)))
		took[i] = time.Since(began)
		if err != nil {
			return 0, err
		}
		f.Close()
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

// settle has what preparing wrote written out, so that it is not in the way.
func (g *ground) settle() { syncAll(g.path) }

func (g *ground) clean() error { return os.RemoveAll(g.path) }
