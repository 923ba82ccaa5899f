package cli

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
)

// manualTemplate is the manual page atm(1), in the macros of man(7): what help, help all and the help of each command say.
const manualTemplate = `.TH ATM 1 "" "{{roff .Version}}" "agent team mail"
.\" what a terminal without UTF-8 shows for an ellipsis
.fchar \[u2026] ...
.SH NAME
atm \- mail between coding agents and the people they work with
.SH SYNOPSIS
.B atm
.I command
.RI [ words " ...] [" flags " ...]"
.SH DESCRIPTION
{{text main}}.SH FLAGS
Of every command:
{{template "flags" .VisibleFlags}}.SH COMMANDS
{{range commands .}}.SS {{roff (synopsis .)}}
{{roff .Usage}}.
.PP
.RS
.nf
{{roff .UsageText}}
.fi
.RE
{{with .Description}}.PP
{{text .}}{{end}}{{template "flags" .VisibleFlags}}{{end -}}
.SH EXIT STATUS
{{text (topic "exit-codes")}}.SH ENVIRONMENT
{{text (topic "environment")}}.SH FILES
{{text (topic "files")}}.SH EXAMPLES
{{text (topic "examples")}}.SH SEE ALSO
.BR git\-worktree (1),
.BR ssh (1),
.BR asciinema (1).
.B atm help
also explains json, team.toml and states. The guide is at https://github.com/agentteammail/atm.
{{- define "flags"}}{{if .}}.PP
.PD 0
{{range .}}.TP 24
.B {{typed .}}
{{usage .}}
{{end}}.PD
{{end}}{{end}}`

func manual(app *cli.App) string {
	var page strings.Builder
	cli.HelpPrinterCustom(&page, manualTemplate, app, map[string]any{
		"main":     func() string { return mainHelp },
		"topic":    topicText,
		"roff":     roff,
		"text":     roffText,
		"synopsis": cmdline.Synopsis,
		"commands": func(app *cli.App) []*cli.Command { return withSubs(app.VisibleCommands()) },
		"typed":    func(f cli.Flag) string { typed, _ := cmdline.FlagUsage(f); return roff(typed) },
		"usage":    func(f cli.Flag) string { _, usage := cmdline.FlagUsage(f); return roff(usage) },
	})
	return page.String()
}

func withSubs(commands []*cli.Command) (all []*cli.Command) {
	for _, c := range commands {
		all = append(append(all, c), withSubs(c.VisibleCommands())...)
	}
	return all
}

var roffEscapes = strings.NewReplacer("\\", `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, "\n.", "\n\\&.")

// roff escapes a text, so that no line of it is a request.
func roff(text string) string { return roffEscapes.Replace("\n" + text)[1:] }

// roffText makes paragraphs of a text; one with columns keeps its lines.
func roffText(text string) (out string) {
	for i, p := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			out += ".PP\n"
		}
		if strings.Contains(p, "  ") {
			out += ".nf\n" + roff(p) + "\n.fi\n"
		} else {
			out += roff(p) + "\n"
		}
	}
	return out
}
