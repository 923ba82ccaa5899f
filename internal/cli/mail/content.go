package mail

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/cli/failure"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/policy"
)

// bodyText takes the text from --file, --message, the words or stdin. With a payload or an attachment it may be empty.
func bodyText(c *cli.Context, words []string) (string, error) {
	file := c.String("file")
	if file != "" && len(words) > 0 {
		return "", command.TextTwice(words[0]).WithHint("leave one out; to send the file with the text: --attach %s", policy.Quote(file))
	}
	if file == "-" || file == "/dev/stdin" {
		return command.MessageText(c, []string{"-"})
	}
	if file != "" {
		return textOfFile(file)
	}
	if len(words) > 0 && c.IsSet("attach") {
		if info, err := os.Stat(words[0]); err == nil && info.Mode().IsRegular() {
			return "", failure.Usage("--attach takes one file, and %s is another", words[0]).
				WithHint("repeat it: --attach %s; if that is the text: --message", policy.Quote(words[0]))
		}
	}
	mayBeEmpty := c.IsSet("payload") || c.IsSet("attach")
	if mayBeEmpty && len(words) == 0 && !c.IsSet("message") {
		text, err := command.StdinText(c, nil)
		if _, isReadError := errors.AsType[*fs.PathError](err); text == "" && !isReadError {
			err = nil
		}
		return text, err
	}
	return command.MessageText(c, words)
}

func textOfFile(file string) (text string, err error) {
	if err := command.NotPiped(); err != nil {
		return "", err
	}
	f, err := os.Open(file)
	if err == nil {
		defer f.Close()
		text, err = command.ReadText(f)
	}
	if readErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = failure.Usage("--file: %v", readErr).WithHint("--file reads the text from a file, --attach FILE sends a file")
	}
	return text, err
}

// attach stores the attached files with every team that gets the message. All are checked before one is stored: a FIFO
// or a device may never end.
func attach(c *cli.Context, o *teams.Outgoing) error {
	names := c.StringSlice("attach")
	for _, name := range names {
		if info, err := os.Stat(name); err != nil {
			return failure.Usage("--attach: %v", err)
		} else if !info.Mode().IsRegular() {
			return failure.Usage("--attach: %s is not a regular file", name).
				WithHint("cat or tar it into one; a text can come from a pipe: atm send NAME -")
		}
	}
	stored := map[*mailbox.Store]bool{}
	for _, box := range o.Post.To {
		if stored[box.Store()] {
			continue
		}
		stored[box.Store()], o.Message.Attachments = true, nil
		for _, name := range names {
			f, err := os.Open(name)
			if err != nil {
				return failure.Usage("--attach: %v", err)
			}
			a, err := box.Store().Attach(filepath.Base(name), f)
			f.Close()
			if err != nil {
				return err
			}
			o.Message.Attachments = append(o.Message.Attachments, a)
		}
	}
	return nil
}
