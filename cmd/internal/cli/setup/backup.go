package setup

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/backup"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/lockfile"
)

var backupCommand = &cli.Command{
	Name: "backup", Category: "export dump save", ArgsUsage: "FILE", Usage: "save the whole root in one file",
	UsageText:   "atm backup atm-2026-05-01.tar",
	Description: "Safe while others send. Never replaces a file. Leaves out worktrees and what runners have.",
	Action:      command.With(app.OpenRoot, runBackup),
}

// runBackup writes a temp file beside the target, and renames it when it is complete.
func runBackup(c *cli.Context, s *app.Scope, p *command.Printer) error {
	path := c.Args().First()
	if path == "-" {
		return failure.Usage("atm backup writes a file, not to stdout").WithHint("`atm backup atm.tar`")
	}
	exists := failure.Refused("%s already exists", path).WithHint("use another name")
	if _, err := os.Lstat(path); err == nil {
		return exists
	}
	removeAbandoned(filepath.Dir(path))
	temp, err := os.CreateTemp(filepath.Dir(path), backupTemp+"*")
	if err != nil {
		return failure.Failed("backup %s: %w", path, errors.Unwrap(err)).WithHint("name a file in a directory that you can write to")
	}
	defer os.Remove(temp.Name())
	temp.Chmod(0o600) // under any umask; exFAT, which has no rights, refuses
	release, _ := lockfile.HoldFile(temp.Name())
	defer release()
	ctx, stop := app.Interruptible(c.Context)
	defer stop()
	messages, missing, err := backup.Write(ctx, s.Root, temp, p.Progress("backing up: %d messages"))
	if err == nil {
		err = temp.Sync()
	}
	size := backup.Size{Messages: messages}
	if info, statErr := temp.Stat(); statErr == nil {
		size.Bytes = info.Size()
	}
	if err = cmp.Or(err, temp.Close()); err != nil {
		return err
	}
	dir, err := durable.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	if runtime.GOOS == "windows" {
		release() // it renames no file that is open
	}
	if err := publish(dir, filepath.Base(temp.Name()), filepath.Base(path)); errors.Is(err, fs.ErrExist) {
		return exists
	} else if err != nil {
		return err
	}
	return p.Confirming().PrintDone(size, fmt.Sprintf("backed up %s, %s", letter.Many(size.Messages, "message"), letter.Size(size.Bytes)), missing)
}

// publish gives a file its name, durably. It makes no second name, which exFAT does not have.
func publish(dir *durable.Root, temp, name string) error {
	return cmp.Or(dir.Move(temp, name), dir.Sync("."))
}

const backupTemp = ".atm-backup-"

// removeAbandoned removes what killed backups have left in a directory. One that has just begun is not locked yet.
func removeAbandoned(dir string) {
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		info, err := f.Info()
		if !strings.HasPrefix(f.Name(), backupTemp) || err != nil || !info.Mode().IsRegular() || time.Since(info.ModTime()) < time.Second {
			continue
		}
		path := filepath.Join(dir, f.Name())
		if release, isAbandoned := lockfile.HoldFile(path); isAbandoned {
			os.Remove(path)
			release()
		}
	}
}
