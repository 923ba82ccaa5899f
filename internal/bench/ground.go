package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// ground is the directory that a run works in. Its subdirectories lie far apart
// on the disk, and nothing in it is deleted before the run ends.
type ground struct {
	path string
	best time.Duration // of the medians of making a file, in the directories seen
	made int
}

// polluted is how many times slower than elsewhere it may be to make a file.
const polluted = 3

func newGround(parent string) (*ground, error) {
	path, err := os.MkdirTemp(parent, "atm-bench-")
	if err != nil {
		return nil, err
	}
	// Files deleted there by others make it slow to create beside it, not below.
	g := &ground{path: path}
	spread(path)
	for range 3 {
		_, p50, err := g.make("probe")
		if err != nil {
			g.clean()
			return nil, err
		}
		if g.best == 0 || p50 < g.best {
			g.best = p50
		}
	}
	return g, nil
}

// dir makes a directory in which files are made as quickly as anywhere.
func (g *ground) dir(name string) (string, error) {
	var p50 time.Duration
	for range 8 {
		path, took, err := g.make(name)
		if err != nil {
			return "", err
		}
		if p50 = took; p50 <= polluted*g.best {
			return path, nil
		}
	}
	return "", fmt.Errorf("making a file in %s takes %s, against %s elsewhere: many were deleted here lately; wait a minute",
		g.path, precision(p50), precision(g.best))
}

// make makes a subdirectory and two hundred files in it, and tells the median.
func (g *ground) make(name string) (path string, p50 time.Duration, err error) {
	g.made++
	path = filepath.Join(g.path, name+"-"+strconv.Itoa(g.made))
	probe := filepath.Join(path, "probe")
	if err := os.MkdirAll(probe, 0o700); err != nil {
		return "", 0, err
	}
	took := make([]time.Duration, 200)
	for i := range took {
		began := time.Now()
		f, err := os.Create(filepath.Join(probe, strconv.Itoa(i)))
		took[i] = time.Since(began)
		if err != nil {
			return "", 0, err
		}
		f.Close()
	}
	slices.Sort(took)
	return path, took[len(took)/2], nil
}

// settle has what preparing wrote written out, so that it is not in the way.
func (g *ground) settle() { syncAll(g.path) }

func (g *ground) clean() error { return os.RemoveAll(g.path) }
