package web

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
)

// export writes the present pages as files that need no server and no script.
func export(ctx context.Context, s *app.Scope, p *command.Printer, dir string) error {
	if dir == "" {
		return failure.Usage("--export needs a directory").WithHint("--export NEWDIR")
	}
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		err = failure.Refused("export: %s is not empty", dir).WithHint("--export NEWDIR")
	} else if os.IsNotExist(err) {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return err
	}
	p.Warn("screens and mail may contain secrets: check %s before you share it", dir)
	pages := newServer(ctx, s)
	write := func(name string, data []byte) error { return os.WriteFile(filepath.Join(dir, name), data, 0o600) }
	if err := cmp.Or(write("style.css", staticFile("style.css")), write("icon.svg", staticFile("icon.svg"))); err != nil {
		return err
	}
	list := [][2]string{{"team"}, {"mail"}, {"timeline"}, {"search"}} // kinds, and what the page is about
	for _, m := range pages.newPage("team").Room.Members {
		list = append(list, [2]string{"agent", string(m.Name)})
	}
	for i := 0; i < len(list); i++ {
		page := pages.newPage(list[i][0])
		page.Static = true
		if err := cmp.Or(context.Cause(pages.ctx), page.fill(ctx, list[i][1])); err != nil {
			return err
		}
		data, err := page.render()
		if err == nil {
			err = write(page.Path, data)
		}
		if err != nil {
			return err
		}
		for _, id := range page.threads { // the page has links to them
			if thread := [2]string{"thread", string(id)}; !slices.Contains(list, thread) {
				list = append(list, thread)
			}
		}
	}
	first := filepath.Join(dir, "index.html")
	return p.PrintAs(map[string]any{"file": first, "pages": len(list)}, fmt.Sprintf("%s: %s", first, letter.Many(len(list), "page")))
}
