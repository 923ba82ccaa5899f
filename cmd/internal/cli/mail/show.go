package mail

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/filestore"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/wire"
)

var showCommand = &cli.Command{
	Name: "show", Category: "cat view open get print", ArgsUsage: "ID",
	Usage: "show a whole message",
	UsageText: `atm show 9f3a1c
atm show 9f3a1c --raw
atm show 9f3a1c --save .`,
	Description: `Marks nothing as read. "escaped": invisible characters and tags that a model could mistake are shown
as \u200b and <\tag>; --raw prints the exact text.
--save DIR writes DIR/_9f3a1c/1-NAME, so that no program obeys what somebody sent.
It overwrites nothing.`,
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "raw", Usage: "print only the bytes of the body"},
		&cli.StringFlag{Name: "save", Usage: "save its attachments in `DIR`, created if missing"},
	},
	Action: command.With(app.OpenMeIfGiven, show),
}

func show(c *cli.Context, s *app.Scope, p *command.Printer) error {
	if err := cmdline.NotBoth(c, "raw json", "raw save"); err != nil {
		return err
	}
	dir, saves := c.String("save"), c.IsSet("save")
	it, box, err := s.Find(c.Args().First())
	if err != nil {
		return err
	}
	if c.Bool("raw") {
		_, err := io.WriteString(p.Out, it.Body)
		return err
	}
	m := message{Item: it}
	if it.State == "" || it.State == wire.Later { // as it was sent
		m.trace(s, post.AnswersTo(c.Context, s.Root, m.Message))
		if m.slowest == wire.Withdrawn {
			it.State = wire.Withdrawn
		}
	}
	if saves {
		return saveAttachments(p, m, box.Store(), dir)
	}
	r := p.RendererFor(s, box)
	r.Whole = true
	text := command.Letters(r, []*wire.Item{it}, nil)[0]
	for _, a := range it.Attachments {
		text = fmt.Appendf(text, "attached: %s, %s\n", letter.Quote(a.Name, 200), letter.Size(a.Size))
	}
	if it.State == wire.Unread && s.Me != nil && box.Address() == s.Me.Address() {
		text = fmt.Appendf(text, "still unread: %s\n", p.Command("atm read "+r.Short(it.ID)))
	}
	if m.comes != "" {
		text = fmt.Appendf(text, "later: %s; to take it back: %s\n", m.comes, p.Command("atm withdraw "+r.Short(it.ID)))
	}
	return p.PrintAs(map[string]message{"message": m}, string(text))
}

// saveAttachments saves a message's attachments in a directory of its own in the named one. It overwrites no file, follows
// no link in there, and no name leads out of the directory.
func saveAttachments(p *command.Printer, m message, store *maildir.Store, name string) error {
	dir, err := p.MakeDir("--save", name)
	if _, isRefused := errors.AsType[*failure.Error](err); isRefused {
		return err
	} else if err != nil {
		return failure.Usage("--save: %v", err).WithHint("`atm show %s --save attachments`", m.ID.Short(6))
	}
	defer dir.Close()
	if len(m.Attachments) == 0 {
		p.Warn("%s has no attachments", m.ID.Short(6))
	}
	own := "_" + m.ID.Short(6)
	saved := []string{}
	var failed error
	for _, a := range m.Attachments {
		if file, err := saveAs(dir, own, store, a); err == nil {
			saved = append(saved, filepath.Join(name, file))
		} else if failed == nil {
			failed = fmt.Errorf("save %s: %w", letter.Escape(a.Name), err)
		}
	}
	return p.Confirming().PrintDone(map[string]any{"message": m, "saved": saved}, strings.Join(saved, "\n"), failed)
}

// saveAs saves an attachment as own/1-NAME. Programs obey files by their names: in the directory that they work in, some
// in all below it (CLAUDE.md, conftest.py), and go test runs what is in any directory without a "_". No list of such
// names is whole, so none of them is kept.
func saveAs(dir *os.Root, own string, store *maildir.Store, a wire.Attachment) (string, error) {
	from, err := filestore.Open(store.Dir(), a)
	if err != nil {
		return "", err
	}
	defer from.Close()
	dir.Mkdir(own, 0o700)
	if info, err := dir.Lstat(own); err != nil || !info.IsDir() { // a link may lead to where programs look
		return "", cmp.Or(err, fmt.Errorf("%s is not a directory", own))
	}
	for n := 1; ; n++ {
		name := fmt.Sprintf("%s/%d-%s", own, n, notInNames().ReplaceAllString(letter.Clip(letter.Escape(a.Name), 80), "_"))
		f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			_, err = io.Copy(f, from)
			err = errors.Join(err, f.Close())
		}
		return name, err
	}
}

var notInNames = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[\x00-\x1f/\\:]`) })
