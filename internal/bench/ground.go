package main

import (
	"errors"
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
	g := &ground{path: path}
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
// quickly in those that build names as anywhere: they were tried.
func (g *ground) dir(name string, build func(path string) (busy []string, err error)) (string, error) {
	var worst time.Duration
	for range 10 {
		path, err := g.make(name)
		if err != nil {
			return "", err
		}
		busy, err := build(path)
		if err != nil {
			return "", err
		}
		worst = 0
		for _, d := range busy {
			p50, err := probe(d)
			if err != nil {
				return "", err
			}
			worst = max(worst, p50)
		}
		if worst <= polluted*g.best {
			return path, nil
		}
	}
	return "", fmt.Errorf("making a file in %s takes %s, against %s elsewhere: many were deleted here lately; wait a minute",
		g.path, precision(worst), precision(g.best))
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
