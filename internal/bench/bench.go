package main

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
)

// bench is a run.
type bench struct {
	Config
	ctx      context.Context
	progress io.Writer
	ground   *ground
	null     *os.File // /dev/null
	turns    int      // of singles, at least

	programs map[string]string // built, by name
	texts    map[string][]byte // of those, by path
	filled   map[int]*root     // by size
	closers  []func() error
}

func open(ctx context.Context, c Config, progress io.Writer) (*bench, error) {
	b := &bench{Config: c, ctx: ctx, progress: progress, turns: 3, programs: map[string]string{}, texts: map[string][]byte{}, filled: map[int]*root{}}
	if c.Round == 1 {
		b.turns = 1
	}
	var err error
	if b.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		return nil, err
	}
	b.later(b.null.Close)
	b.ground, err = newGround(ctx, c, progress)
	return b, err
}

// later is for what close does first, the last before the first.
func (b *bench) later(f func() error) { b.closers = append(b.closers, f) }

func (b *bench) close() error {
	var errs []error
	for i := len(b.closers) - 1; i >= 0; i-- {
		errs = append(errs, b.closers[i]())
	}
	return errors.Join(append(errs, b.ground.clean())...)
}

// cases are the lines of the table, in its order.
func (b *bench) cases() []*Case {
	var out []*Case
	for _, list := range [][]*Case{b.deliveries(), b.processes(), b.growth(), b.watching(), b.searching(), b.events(), b.terminals()} {
		for _, c := range list {
			if b.Only == nil || b.Only.MatchString(c.Name) {
				out = append(out, c)
			}
		}
	}
	return out
}

func (b *bench) shuffle(n int, swap func(i, j int)) { rand.Shuffle(n, swap) }

// eitherFirst is 0 and 1 in any order.
func (b *bench) eitherFirst() [2]int {
	first := rand.IntN(2)
	return [2]int{first, 1 - first}
}
