package mail

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

var showCommand = &cli.Command{
	Name: "show", Aliases: []string{"cat", "view", "open", "get"}, ArgsUsage: "ID", Usage: "show one message whole",
	UsageText:   "atm show 9f3a1c\natm show 9f3a1c --save .",
	Description: "Marks nothing.",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "raw", Aliases: []string{"body"}, Usage: "the bytes of the body alone"},
		&cli.StringFlag{Name: "save", Usage: "save its attachments in `DIR`, under their names"},
		hidden("full", "no-mark", "peek"),
	},
	Action: show,
}

type shown struct {
	Message command.Message `json:"message"`

	text string
}

func (s shown) String() string { return s.text }

func show(c *cli.Context) error {
	if err := command.NotBoth(c, "raw", "save"); err != nil {
		return err
	}
	s, err := command.OpenMeIfSaid(c)
	if err != nil {
		return err
	}
	it, box, err := s.Find(c.Context, c.Args().First(), false)
	if err != nil {
		return err
	}
	if c.IsSet("save") {
		saved, err := saveAttachments(it, box, c.String("save"))
		if err != nil {
			return err
		}
		return command.Print(c, saved)
	}
	if c.Bool("raw") {
		_, err := os.Stdout.WriteString(it.Body)
		return err
	}
	r := s.Renderer()
	r.To = true
	var b strings.Builder
	b.Write(r.Render(it.Message, command.HeaderFlags([]*mailbox.Item{it}, nil)[0]))
	for _, a := range it.Attachments {
		fmt.Fprintf(&b, "attached: %s, %s\n", letter.Escape(a.Name), letter.Size(a.Size))
	}
	if it.State == mailbox.Unread && it.Lease == nil && s.Me != nil && box.Address() == s.Me.Address() {
		fmt.Fprintf(&b, "still unread: atm read %s%s\n", it.ID.Short(6), s.Flags())
	}
	return command.Print(c, shown{command.Message{Item: it}, b.String()})
}

type savedFile struct {
	Name string `json:"name"`
	Path string `json:"path"`
	Size int64  `json:"size"`
}

type savedFiles struct {
	Saved []savedFile `json:"saved"`

	id wire.ID
}

func (s savedFiles) String() string {
	var b strings.Builder
	for _, f := range s.Saved {
		fmt.Fprintf(&b, "%s (%s)\n", f.Path, letter.Size(f.Size))
	}
	if len(s.Saved) == 0 {
		fmt.Fprintf(&b, "message %s has no attachments", s.id.Short(6))
	}
	return b.String()
}

// saveAttachments writes a message's attachments into a directory: never over a
// file that is there, and never outside of it, whatever their names say.
func saveAttachments(it *mailbox.Item, box *mailbox.Box, into string) (savedFiles, error) {
	saved := savedFiles{Saved: []savedFile{}, id: it.ID}
	dir, err := os.OpenRoot(into)
	if err != nil {
		return saved, command.Usage("--save: %v", err).WithHint("mkdir -p %s", into)
	}
	defer dir.Close()
	for _, a := range it.Attachments {
		f, err := box.Store().Attachment(a)
		if err != nil {
			return saved, err
		}
		name, err := saveAs(dir, safeName(a), f)
		f.Close()
		if err != nil {
			return saved, fmt.Errorf("save %s: %w", letter.Escape(a.Name), err)
		}
		saved.Saved = append(saved.Saved, savedFile{name, filepath.Join(into, name), a.Size})
	}
	return saved, nil
}

// safeName is an attachment's name as one component of a path.
func safeName(a wire.Attachment) string {
	name := strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || strings.ContainsRune(`/\:`, r) {
			return '_'
		}
		return r
	}, letter.Escape(a.Name))
	name = strings.TrimLeft(name, ".")
	if len(name) > 200 {
		name = strings.ToValidUTF8(name[:200], "")
	}
	if name == "" || !filepath.IsLocal(name) {
		name = "attachment-" + a.SHA256[:8]
	}
	return name
}

// saveAs writes a new file; a name that is taken gets a number.
func saveAs(dir *os.Root, name string, from io.Reader) (string, error) {
	ext := filepath.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	for n := 1; ; n++ {
		f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) && n < 1000 {
			name = fmt.Sprintf("%s-%d%s", stem, n+1, ext)
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = io.Copy(f, from)
		return name, errors.Join(err, f.Close())
	}
}
