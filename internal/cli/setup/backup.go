package setup

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var backupCommand = &cli.Command{
	Name: "backup", ArgsUsage: "FILE", Usage: "the whole root in one file",
	UsageText:   "atm backup atm-2026-05-01.tar",
	Description: "May be taken while others send. A file that is there is not replaced.",
	Action:      backup,
}

var restoreCommand = &cli.Command{
	Name: "restore", ArgsUsage: "FILE", Usage: "bring back what a backup holds",
	UsageText:   "atm restore atm-2026-05-01.tar\natm restore atm-2026-05-01.tar --root NEWDIR",
	Description: "A message whose id is there already stays as it is. --root may name a new root.",
	Action:      restore,
}

// copied is what backup and restore print.
type copied struct {
	mailbox.Moved
	verb, skipped string
}

func (t copied) String() string {
	text := fmt.Sprintf("%s %d messages, %s", t.verb, t.Messages, letter.Size(t.Bytes))
	if t.Skipped > 0 {
		text += fmt.Sprintf("; %d %s", t.Skipped, t.skipped)
	}
	return text
}

// backup writes beside the file and links it into place when it is whole.
func backup(c *cli.Context) error {
	s, err := command.OpenRoot(c)
	if err != nil {
		return err
	}
	path := c.Args().First()
	dir, err := durable.Open(filepath.Dir(path), nil)
	if err != nil {
		return err
	}
	defer dir.Close()
	name := filepath.Base(path)
	taken := command.Refused("%s is there already", path).WithHint("use another name")
	if there, err := dir.Exists(name); there || err != nil {
		return errors.Join(err, taken)
	}
	ctx, stop := command.Interruptible(c.Context)
	defer stop()
	done := copied{verb: "backed up", skipped: "vanished meanwhile"}
	temp := fmt.Sprintf(".%s.%s.tmp", name, wire.NewID())
	err = dir.CreateFrom(temp, func(w io.Writer) error {
		done.Moved, err = s.Root.Backup(ctx, w)
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
	if err := os.Chmod(path, 0o600); err != nil {
		return err
	}
	return command.Print(c, done)
}

func restore(c *cli.Context) error {
	f, err := os.Open(c.Args().First())
	if err != nil {
		return command.Usage("%v", err).WithHint("atm restore FILE, as atm backup wrote it; a member: atm team restore NAME")
	}
	defer f.Close()
	if err := makeNamedRoot(c); err != nil {
		return err
	}
	s, err := command.OpenRoot(c)
	if err != nil {
		return err
	}
	ctx, stop := command.Interruptible(c.Context)
	defer stop()
	moved, err := s.Root.Restore(ctx, f)
	if err != nil {
		return err
	}
	return command.Print(c, copied{moved, "restored", "there already"})
}

// makeNamedRoot makes the root that --root or ATM_ROOT names, unless there is one.
func makeNamedRoot(c *cli.Context) error {
	place := command.Place(c)
	if place.Flag == "" && place.Env == "" {
		return nil
	}
	dir, _, _, err := teams.InitDir(place, false)
	if err != nil {
		return err
	}
	made, err := teams.Make(dir)
	if err != nil || !made {
		return err
	}
	if err := teams.Accept(place, dir); err != nil {
		command.Warn(c, "the root could not be noted as yours: %v", err)
	}
	return nil
}
