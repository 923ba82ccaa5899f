package mail

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
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
	},
	Action: show,
}

type shown struct {
	Message command.Message `json:"message"`
	text    string
}

func (s shown) String() string { return s.text }

func show(c *cli.Context) error {
	s, it, box, err := findNamed(c, command.OpenMeIfSaid)
	if err != nil {
		return err
	}
	if c.IsSet("save") {
		return saveAttachments(c, it, box)
	}
	if c.Bool("raw") {
		_, err := os.Stdout.WriteString(it.Body)
		return err
	}
	r := s.Renderer()
	r.To = true
	text := rendered(r, []*mailbox.Item{it}, "").text
	for _, a := range it.Attachments {
		text += fmt.Sprintf("attached: %s, %s\n", letter.Escape(a.Name), letter.Size(a.Size))
	}
	if it.State == mailbox.Unread && s.Me != nil && box.Address() == s.Me.Address() {
		text += fmt.Sprintf("still unread: atm read %s%s\n", it.ID.Short(6), s.Flags())
	}
	return command.Print(c, shown{command.Message{Item: it}, text})
}

type savedFiles struct {
	Saved []string `json:"saved"`
}

func (s savedFiles) String() string { return strings.Join(s.Saved, "\n") }

// saveAttachments writes a message's attachments into a directory: never over a
// file that is there, and never outside of it, whatever their names say.
func saveAttachments(c *cli.Context, it *mailbox.Item, box *mailbox.Box) error {
	dir, err := os.OpenRoot(c.String("save"))
	if err != nil {
		return command.Usage("--save: %v", err).WithHint("mkdir -p %s", c.String("save"))
	}
	defer dir.Close()
	saved := savedFiles{[]string{}}
	for _, a := range it.Attachments {
		name, err := saveAs(dir, box.Store(), a)
		if err != nil {
			return fmt.Errorf("save %s: %w", letter.Escape(a.Name), err)
		}
		saved.Saved = append(saved.Saved, filepath.Join(c.String("save"), name))
	}
	return command.Print(c, saved)
}

// notInNames is what has no place in a file's name.
var notInNames = regexp.MustCompile(`^\.+|[\x00-\x1f/\\:]`)

// saveAs writes a new file; a name that is taken gets a number.
func saveAs(dir *os.Root, store *mailbox.Store, a wire.Attachment) (string, error) {
	from, err := store.Attachment(a)
	if err != nil {
		return "", err
	}
	defer from.Close()
	name := notInNames.ReplaceAllString(letter.Clip(letter.Escape(a.Name), 60), "_")
	if !filepath.IsLocal(name) {
		name = "attachment"
	}
	ext := filepath.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	for n := 2; ; n++ {
		f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			name = fmt.Sprintf("%s-%d%s", stem, n, ext)
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = io.Copy(f, from)
		return name, errors.Join(err, f.Close())
	}
}
