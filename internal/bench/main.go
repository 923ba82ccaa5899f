// Command bench measures what atm does against the limit of the machine that it
// runs on: `make bench`.
//
// A case is an operation of ours and a reference: the system calls that nobody
// can do without, or our own simpler way. Both are measured in turns within the
// same tenths of a second, and only their ratio counts: a machine that others
// use as well slows both. Cases come in rounds, in another order each round,
// and the result is the median of the rounds. Loops are measured by their
// throughput, processes and events by the median of one.
//
// A case with a goal that is missed is measured again, twice at most, and passes
// on its best median. The program's exit code is 1 when a goal is missed.
//
// Where files are deleted in bulk, ext4 makes new ones up to fifty times slower
// for a minute. So every run works in a fresh directory whose subdirectories lie
// far apart (chattr +T), refuses those that are slow, and deletes nothing until
// it has ended.
//
//	-quick      fewer rounds, smaller mailboxes, a goal missed is no failure
//	-only RE    only cases whose name fits
//	-dir DIR    on the file system of DIR; else of the temporary directory
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"
)

func main() {
	if os.Getenv(writerMark) != "" {
		writer(os.Stdin, os.Stdout)
		return
	}
	if played() {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Config is how much is measured.
type Config struct {
	Dir     string         // where the run's directory is made
	Only    *regexp.Regexp // nil: all cases
	Gate    bool           // a goal that is missed is an error
	Tries   int
	Round   int           // rounds of a try
	Cell    time.Duration // of either side of a case, in a round
	Sizes   [3]int        // of mailboxes, in messages
	Events  int           // of a long log
	Flood   int           // bytes that a program writes to its terminal
	Runners int           // that are idle
	Build   []string      // flags of go build

	// Patience is how long a disk is waited for on which files were deleted
	// lately; 0: it is taken as it is.
	Patience time.Duration
}

// full takes four minutes on two cores, and six when goals are missed.
var full = Config{
	Gate: true, Patience: 3 * time.Minute, Tries: 3, Round: 9, Cell: 150 * time.Millisecond, Sizes: [3]int{10, 10_000, 100_000}, Events: 1_000_000, Flood: 60 << 20, Runners: 20,
	Build: []string{"-trimpath", "-ldflags", "-s -w"},
}

var quick = Config{
	Tries: 1, Round: 3, Cell: 40 * time.Millisecond, Sizes: [3]int{10, 1_000, 10_000}, Events: 50_000, Flood: 15 << 20, Runners: 20,
	Build: []string{"-trimpath", "-ldflags", "-s -w"},
}

var errMissed = errors.New("goals were missed")

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	short := flags.Bool("quick", false, "fewer rounds, smaller mailboxes, a goal missed is no failure")
	only := flags.String("only", "", "only cases whose name fits this regular `expression`")
	dir := flags.String("dir", os.TempDir(), "on the file system of this `directory`")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		return 2
	}
	c := full
	if *short {
		c = quick
	}
	c.Dir = *dir
	if *only != "" {
		var err error
		if c.Only, err = regexp.Compile(*only); err != nil {
			fmt.Fprintln(stderr, "bench:", err)
			return 2
		}
	}
	if err := c.Run(ctx, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 1
	}
	return 0
}

// Run measures the cases and prints their table; on progress, what it is about
// to do.
func (c Config) Run(ctx context.Context, table, progress io.Writer) error {
	b, err := open(ctx, c, progress)
	if err != nil {
		return err
	}
	cases := b.cases()
	if len(cases) == 0 {
		return errors.Join(errors.New("no case has such a name"), b.close())
	}
	err = b.measure(cases)
	if err == nil {
		err = printTable(table, machine(c.Dir), cases)
	}
	if err == nil && c.Gate && missed(cases) > 0 {
		err = errMissed
	}
	return errors.Join(err, b.close())
}
