package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
)

var backupVerb = &cmdline.Verb{
	Name: "backup", Args: "F", Summary: "the whole root in one file",
	Examples: []string{"atm backup atm-2026-05-01.tar"},
	Notes:    []string{"May be taken while others send. A file that is there is not replaced."},
	MinArgs:  1, MaxArgs: 1,
	Run: long(backup),
}

var restoreVerb = &cmdline.Verb{
	Name: "restore", Args: "F", Summary: "bring back what a backup holds",
	Examples: []string{"atm restore atm-2026-05-01.tar", "atm restore F --root NEWDIR"},
	Notes:    []string{"A message whose id is there already stays as it is. --root may name a new root."},
	MinArgs:  1, MaxArgs: 1,
	Run: long(restore),
}

func backup(ctx context.Context, e *env) error {
	if err := e.openRoot(); err != nil {
		return err
	}
	dir, err := atomicfile.Open(filepath.Dir(e.Args[0]), nil)
	if err != nil {
		return err
	}
	defer dir.Close()
	name := filepath.Base(e.Args[0])
	if has, err := dir.Has(name); has || err != nil {
		return errors.Join(cmdline.Refused("%s is there already", e.Args[0]).WithHint("take another name"), err)
	}
	f, err := dir.Draft(fmt.Sprintf(".%s.%d", name, os.Getpid()))
	if err != nil {
		return err
	}
	defer f.Close()
	var n atomic.Int64
	stop := e.progress("files backed up", &n)
	total, err := e.root.Backup(ctx, f, func() { n.Add(1) })
	stop()
	if err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Link(dir, name); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return cmdline.Refused("%s is there already", e.Args[0]).WithHint("take another name")
		}
		return err
	}
	if err := dir.Sync(); err != nil {
		return err
	}
	if err := os.Chmod(e.Args[0], 0o600); err != nil {
		return err
	}
	return e.sayMoved("backed up", total, "vanished meanwhile")
}

func restore(ctx context.Context, e *env) error {
	f, err := os.Open(e.Args[0])
	if err != nil {
		return cmdline.Usage("%v", err)
	}
	defer f.Close()
	place := e.place()
	if named := place.Flag != "" || place.Env != ""; named {
		dir, _, _, err := teams.InitDir(place, false)
		if err != nil {
			return err
		}
		made, err := teams.Make(dir)
		if err != nil {
			return err
		}
		if made {
			if err := teams.Accept(place, dir); err != nil {
				e.Warn("the root could not be noted as yours: %v", err)
			}
		}
	}
	if err := e.openRoot(); err != nil {
		return err
	}
	var n atomic.Int64
	stop := e.progress("files restored", &n)
	total, err := e.root.Restore(ctx, f, func() { n.Add(1) })
	stop()
	if err != nil {
		return err
	}
	return e.sayMoved("restored", total, "there already")
}

func (e *env) sayMoved(word string, m mailbox.Moved, skipped string) error {
	if e.JSON() {
		return e.PrintJSON(m)
	}
	if m.Skipped > 0 {
		return e.print("%s %d messages, %s; %d %s", word, m.Messages, letter.Size(m.Bytes), m.Skipped, skipped)
	}
	return e.print("%s %d messages, %s", word, m.Messages, letter.Size(m.Bytes))
}
