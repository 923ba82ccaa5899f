package cli

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
)

// The manual page has every command with its example and flags.
func TestManual(t *testing.T) {
	program := newApp("1.2.3")
	sections := map[string]string{}
	for section := range strings.SplitSeq(manual(program), "\n.SS ") {
		name, text, _ := strings.Cut(section, "\n")
		sections[name] = text
	}
	for heading, name := range map[string]string{"EXIT STATUS": "exit-codes", "ENVIRONMENT": "environment", "FILES": "files", "EXAMPLES": "examples"} {
		if !strings.Contains(manual(program), ".SH "+heading+"\n"+roffText(topicText(name))) {
			t.Errorf("%s is not the topic %s", heading, name)
		}
	}
	for _, c := range withSubs(program.VisibleCommands()) {
		section := sections[roff(cmdline.Synopsis(c))]
		want := []string{c.Usage, c.UsageText}
		for _, f := range c.VisibleFlags() {
			typed, usage := cmdline.FlagUsage(f)
			want = append(want, typed+"\n"+usage)
		}
		for _, text := range want {
			if !strings.Contains(section, roff(text)) {
				t.Errorf("%s: %q is not there", c.HelpName, text)
			}
		}
	}
}

// Formatters have nothing to complain about, and show the last flag of the last command.
func TestManualIsShown(t *testing.T) {
	for _, formatter := range []string{"mandoc -Tutf8", "groff -ww -Kutf8 -Tutf8 -man", "groff -ww -Kutf8 -Tascii -man"} {
		args := strings.Fields(formatter)
		cmd := exec.Command(args[0], args[1:]...)
		if cmd.Err != nil {
			t.Log(cmd.Err)
			continue
		}
		var complaints strings.Builder
		cmd.Stdin, cmd.Stderr = strings.NewReader(manual(newApp("1.2.3"))), &complaints
		out, err := cmd.Output()
		if err != nil || complaints.Len() > 0 || !strings.Contains(string(out), "print the completion script") {
			t.Errorf("%s: %v\n%s", formatter, err, &complaints)
		}
	}
}
