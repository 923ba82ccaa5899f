package driver

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/agentteammail/atm/ptyrun/driver/agents"
	"github.com/agentteammail/atm/ptyrun/screen"
)

// unrecorded matches the comment of a rule that no recording needs: it names the version that does.
var unrecorded = regexp.MustCompile(`# (?:.*; )?not recorded: .*\d`)

// Every rule of a built-in file holds for some recorded screen, or says which version needs it: a rule that nothing needs
// is deleted.
func TestEveryRuleIsNeeded(t *testing.T) {
	t.Parallel()
	seen := map[string]*seenScreens{}
	files, err := filepath.Glob(filepath.Join(recordings, "*.bin"))
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("testdata/*.bin")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(files, more...) {
		file := strings.TrimSuffix(filepath.Base(path), ".bin")
		d := driverOf(t, file)
		if seen[d.Name] == nil {
			seen[d.Name] = &seenScreens{texts: map[string]bool{}, bars: map[screen.Progress]bool{}, rules: map[*agents.Row]bool{}}
		}
		s := screen.New(100, 30, 100)
		for piece := range slices.Chunk(recording(t, file), 1000) {
			s.Write(piece)
			seen[d.Name].add(d, LookAt(s))
		}
	}
	for _, f := range agents.BuiltIn() {
		if f.Plain || f.Protocol != "" || f.Unproven { // no recordings
			continue
		}
		if seen[f.Name] == nil {
			t.Errorf("%s.toml: no recording of it: record its screens into testdata/screens/%s-WHAT.bin (CONTRIBUTING.md), or say unproven = true", f.Name, f.Name)
			continue
		}
		lines := strings.Split(string(f.Text), "\n")
		for what, isNeeded := range seen[f.Name].rulesOf(builtIn(f.Name)) {
			at := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, what) })
			if line, err := strconv.Atoi(what); err == nil {
				at, what = line-1, "the rule"
			}
			if !isNeeded && (at < 0 || !unrecorded.MatchString(lines[at])) {
				t.Errorf("%s.toml:%d: no recording needs %s", f.Name, at+1, what)
			}
		}
	}
}

// seenScreens is what recordings of one program show.
type seenScreens struct {
	texts map[string]bool // rows, and "\x00" and titles
	bars  map[screen.Progress]bool
	rules map[*agents.Row]bool
}

func (s *seenScreens) add(d *Driver, l Look) {
	s.texts["\x00"+strings.TrimSpace(l.Title)] = true
	s.bars[l.Progress] = true
	look := d.lookFor(&l)
	for y, line := range l.Lines {
		s.texts[line] = true
		s.rules[look.ruleOf(&l, y)] = true
	}
}

// rulesOf returns the rules of both looks, as they stand in the file, and whether the recordings need each.
func (s *seenScreens) rulesOf(d *Driver) map[string]bool {
	needed := map[string]bool{}
	shows := func(has func(text string) bool) bool {
		for text := range s.texts {
			if has(text) {
				return true
			}
		}
		return false
	}
	text := func(want string) {
		needed[fmt.Sprintf("%q", want)] = shows(func(row string) bool { return strings.Contains(row, want) })
	}
	for _, look := range []*Driver{d, d.spoken} {
		if look == nil {
			continue
		}
		sc := look.screen
		for i := range sc.Rows {
			needed[fmt.Sprintf("%d", sc.Rows[i].Line)] = s.rules[&sc.Rows[i]]
		}
		for _, title := range sc.Titles {
			needed[fmt.Sprintf("%d", title.Line)] = shows(func(s string) bool {
				rest, isTitle := strings.CutPrefix(s, "\x00")
				return isTitle && title.Pattern.MatchString(rest)
			})
		}
		for _, mode := range slices.Concat(sc.Box.Modes, sc.Dialog.Choose) {
			needed[fmt.Sprintf("%d", mode.Line)] = shows(func(s string) bool { return fits(s, &mode.Pattern) })
		}
		for state := range sc.Progress {
			needed[state+" ="] = s.bars[screen.Progress(state)]
		}
		for _, list := range [][]agents.Phrase{sc.Box.Below, sc.Dialog.Kinds} {
			for _, p := range list {
				text(p.Text)
			}
		}
		for _, list := range [][]string{sc.Box.Placeholders, sc.Box.Pasted, sc.Box.NeverBelow, sc.Dialog.Hints} {
			for _, want := range list {
				text(want)
			}
		}
	}
	return needed
}
