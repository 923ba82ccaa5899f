package web

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/room"
	"github.com/agentteammail/atm/mailbox/letter"
)

// export writes what the pages show to me now as files that need no server and no script.
func export(ctx context.Context, c *cli.Context, s *command.Scope) error {
	dir := c.String("export")
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		err = command.Refused("export: %s is not empty", dir).WithHint("--export NEWDIR")
	} else if os.IsNotExist(err) {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return err
	}
	command.Warn(c, "screens and mail may hold secrets: look at %s before you show it to others", dir)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := room.Open(s)
	go func() { cancel(r.Run(ctx)) }()
	pages := &server{stream: newStream(ctx, r), scope: s}

	write := func(name string, data []byte) error { return os.WriteFile(filepath.Join(dir, name), data, 0o600) }
	threads, written := map[string]bool{}, 0
	one := func(kind, about string) error {
		p := pages.newPage(ctx, kind)
		p.Static, p.threads = true, threads
		if err := cmp.Or(context.Cause(ctx), p.fill(ctx, about)); err != nil {
			return err
		}
		data, err := p.render("page")
		if err != nil {
			return err
		}
		written++
		return write(p.Path, data)
	}
	for _, name := range []string{"style.css", "icon.svg"} {
		if err := write(name, []byte(file(name))); err != nil {
			return err
		}
	}
	for _, kind := range []string{"team", "mail", "timeline", "search"} {
		if err := one(kind, ""); err != nil {
			return err
		}
	}
	for _, name := range s.Names() {
		if err := one("agent", string(name)); err != nil {
			return err
		}
	}
	for _, thread := range slices.Sorted(maps.Keys(threads)) {
		if err := one("thread", thread); err != nil {
			return err
		}
	}
	first := filepath.Join(dir, "index.html")
	return command.PrintAs(c, map[string]any{"file": first, "pages": written}, fmt.Sprintf("%s: %s", first, letter.Many(written, "page")))
}
