package agentconfig

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/agentteammail/atm/internal/agents/all"
)

// called matches where a text has the path of the atm that a hook or a server's entry runs.
var called = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"'?([^"'\n]*/atm(?:\.exe)?)'?( hook |")`) })

// Fault says what keeps atm's hooks from running in a tool that has them, as far as files show it, and the command that mends it;
// "": nothing does, or the tool has none. The atm that they run may be another one.
func (p *Installer) Fault(tool string) (fault, fix string) {
	if p.Home == "" {
		return "", ""
	}
	v, again := all.Find(tool), "atm install "+tool
	isWritten, has := v.Plugin != nil && p.IsWritten(tool), p.HasPlugin(tool)
	files := slices.DeleteFunc(p.ownFiles(v, p.of(tool), false), func(f *file) bool { return f.err != nil || f.before == "" })
	if isWritten {
		files = append(files, p.folder(v)...)
	}
	if len(files) == 0 && !has {
		return "", ""
	}
	if why := p.obstacle(tool); why != "" {
		return tool + " runs no hooks here: " + why, ""
	}
	for _, f := range files {
		if program := called().FindStringSubmatch(f.before); program != nil && filepath.IsAbs(program[1]) {
			if _, err := os.Stat(program[1]); err != nil {
				return fmt.Sprintf("%s runs %s, which does not exist", tool, program[1]), again
			}
		}
		if called().ReplaceAllString(f.before, "atm$2") != called().ReplaceAllString(f.after, "atm$2") {
			return "what " + tool + " has of atm is from another version of it", again
		}
	}
	switch {
	case v.Plugin != nil && !has:
		return tool + " does not have atm's plugin any more, or has it switched off", again
	case has && !isWritten && p.onPath() == "":
		return tool + " has atm's plugin, which runs the atm on PATH, and there is another one or none", again
	}
	return "", ""
}

// obstacle returns the setting that has a tool run no hooks; "": none is known.
func (p *Installer) obstacle(tool string) (why string) {
	v, pointer := all.Find(tool), ""
	if v.Obstacles == nil {
		return ""
	}
	for _, o := range v.Obstacles(p.of(tool)) {
		if o.Pointer != pointer && why != "" {
			return why
		}
		pointer = o.Pointer
		if value := lookUp(o.File, o.Pointer); strings.Contains(value, o.Value) {
			why = fmt.Sprintf("%s is %s in %s", dotted(o.Pointer), value, o.File)
		} else if value != "" {
			why = ""
		}
	}
	return why
}
