package web

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
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
	pages, ctx, cancel := newServer(ctx, s)
	defer cancel(nil)

	write := func(name string, data []byte) error { return os.WriteFile(filepath.Join(dir, name), data, 0o600) }
	if err := cmp.Or(write("style.css", []byte(file("style.css"))), write("icon.svg", []byte(file("icon.svg")))); err != nil {
		return err
	}
	pages.newPage(ctx, "team")
	if now, newer := pages.Snapshot(); now.Version == 1 { // the second one has the drafts as well, where there are any
		select {
		case <-newer:
		case <-time.After(time.Second):
		}
	}
	list, threads := [][2]string{{"team"}, {"mail"}, {"timeline"}, {"search"}}, map[string]bool{}
	for _, m := range pages.newPage(ctx, "team").Room.Members {
		list = append(list, [2]string{"agent", string(m.Name)})
	}
	for i := 0; i < len(list); i++ {
		p := pages.newPage(ctx, list[i][0])
		p.Static, p.threads = true, threads
		if err := cmp.Or(context.Cause(ctx), p.fill(ctx, list[i][1])); err != nil {
			return err
		}
		data, err := p.render("page")
		if err = cmp.Or(err, write(p.Path, data)); err != nil {
			return err
		}
		if i == len(list)-1 { // the threads that those lead to
			for thread := range threads {
				list = append(list, [2]string{"thread", thread})
			}
			clear(threads)
		}
	}
	first := filepath.Join(dir, "index.html")
	return command.PrintAs(c, map[string]any{"file": first, "pages": len(list)}, fmt.Sprintf("%s: %s", first, letter.Many(len(list), "page")))
}
