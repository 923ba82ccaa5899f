package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
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
	dir, err := durable.Open(filepath.Dir(e.Args[0]), nil)
	if err != nil {
		return err
	}
	defer dir.Close()
	name := filepath.Base(e.Args[0])
	taken := cmdline.Refused("%s is there already", e.Args[0]).WithHint("take another name")
	if there, err := dir.Exists(name); there || err != nil {
		return errors.Join(taken, err)
	}
	var total mailbox.Moved
	temp := fmt.Sprintf(".%s.%s.tmp", name, wire.NewID())
	err = dir.CreateFrom(temp, func(w io.Writer) error {
		var n atomic.Int64
		stop := e.progress("files backed up", &n)
		defer stop()
		total, err = e.root.Backup(ctx, w, func() { n.Add(1) })
		return err
	})
	if err != nil {
		return err
	}
	defer dir.Remove(temp)
	if err := dir.Link(temp, name); errors.Is(err, fs.ErrExist) {
		return taken
	} else if err != nil {
		return err
	}
	if err := dir.Sync("."); err != nil {
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
