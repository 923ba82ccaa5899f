package realagents

import (
	"flag"
	"fmt"
	"go/version"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	vendors "github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/agents/all"
	"github.com/agentteammail/atm/internal/driver/agents"
)

var update = flag.Bool("update", false, "write docs/capabilities.md")

const capabilitiesFile = "../../../docs/capabilities.md"

// docs/capabilities.md is made of the drivers' files and of the results of the real programs: make capabilities.
func TestCapabilities(t *testing.T) {
	all, err := readResults()
	if err != nil {
		t.Fatal(err)
	}
	page := capabilities(all)
	if *update {
		if err := os.WriteFile(capabilitiesFile, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(capabilitiesFile); err != nil || string(got) != page {
		t.Errorf("docs/capabilities.md is not what the drivers and %s say: make capabilities (%v)", resultsFile, err)
	}
}

// An ability is a column: the test that proves it, and how the program's file says that it is there; "": it is not. Only what
// is proven is shown.
type ability struct {
	name, test string
	how        func(f *agents.File) string
	moment     string // of vendors.Moments, of which the versions without a way are left out; "": none are
}

var startedByHand = []ability{
	{"mail while idle", "TestByHand/*/idle", doorsAt(vendors.AtIdle), vendors.AtIdle},
	{"mail while busy", "TestByHand/*/tool", doorsAt(vendors.AtBusy), vendors.AtBusy},
	{"mail at the end of a turn", "TestByHand/*/end", doorsAt(vendors.AtEnd), vendors.AtEnd},
	{"a half-written line stays", "TestByHand/*/draft", doorsAt(vendors.AtIdle), vendors.AtIdle},
	{"a script's output stays", "TestByHand/*/headless", func(f *agents.File) string { return yesIf(len(waysOf(f)) > 0) }, ""},
	{"questions answered from outside", "TestByHand/*/answer", doorsAt(vendors.AtQuestion), vendors.AtQuestion},
}

var runByAtm = []ability{
	{"mail, answers, interrupts", "TestDay/*", func(f *agents.File) string { return keys(f.Keys.Interrupt) }, ""},
	{"mail by atm's plugin, not typed", "TestDayWithPlugin/*", func(f *agents.File) string { return yesIf(hasWay(f, vendors.ByPlugin)) }, ""},
	{"over the Agent Client Protocol", "TestDayByACP/*", func(f *agents.File) string { return yesIf(slices.Contains([]string{"gemini", "opencode"}, f.Name)) }, ""},
	{"a conversation goes on by its id", "TestResumeByID/*", func(f *agents.File) string { return yesIf(len(f.Resume.ID) > 0 && len(waysOf(f)) > 0) }, ""},
	{"declares its state", "TestDeclared/*", func(f *agents.File) string { return yesIf(f.Screen.DeclaresAs != "") }, ""},
	{"hooks tell its state", "TestHooks/*", func(f *agents.File) string { return yesIf(len(waysOf(f)) > 0) }, ""},
}

func yesIf(is bool) string {
	if is {
		return "yes"
	}
	return ""
}

func waysOf(f *agents.File) []vendors.Way { return all.Of(f.Name).Ways }

func hasWay(f *agents.File, by string) bool {
	return slices.ContainsFunc(waysOf(f), func(w vendors.Way) bool { return w.By == by })
}

// canGet reports whether a version of a program has one of the ways at a moment: those from the first on that it was tried with.
func canGet(ways []vendors.Way, v, moment string) bool {
	return slices.ContainsFunc(ways, func(w vendors.Way) bool {
		return slices.Contains(w.At, moment) && len(w.Proven) > 0 && version.Compare("go"+v, "go"+w.Proven[0]) >= 0 // as numbers, which Go's have, too
	})
}

// keys says by which keys a turn is ended.
func keys(k agents.Keystrokes) string {
	if len(k) == 0 {
		return "by Esc"
	}
	return "by " + strings.NewReplacer("\x1b", "Esc", "\x03", "Ctrl-C", "\r", "Enter").Replace(strings.Join(k, " "))
}

// doorsAt says by which ways mail or an answer gets into a program that a person has started, the best first.
func doorsAt(moment string) func(*agents.File) string {
	return func(f *agents.File) string {
		var doors []string
		for _, w := range waysOf(f) {
			if slices.Contains(w.At, moment) && len(w.Proven) > 0 {
				doors = append(doors, w.By)
			}
		}
		return strings.Join(doors, ", else ")
	}
}

// proven returns the versions with which a program has passed a test. A version with a failure is none.
func (a ability) proven(all []result, program string) (versions []string) {
	var failed []string
	for _, r := range all {
		if is, _ := path.Match(a.test, r.Test); !is || r.Program != program {
			continue
		}
		if versions = append(versions, r.Version); !r.Pass {
			failed = append(failed, r.Version)
		}
	}
	slices.Sort(versions)
	return slices.DeleteFunc(slices.Compact(versions), func(v string) bool { return slices.Contains(failed, v) })
}

func (a ability) cell(all []result, f *agents.File) string {
	how, versions := a.how(f), a.proven(all, f.Name)
	if a.moment != "" {
		versions = slices.DeleteFunc(versions, func(v string) bool { return !canGet(waysOf(f), v, a.moment) })
	}
	if how == "" || len(versions) == 0 {
		return "-"
	}
	return strings.TrimPrefix(how+": ", "yes: ") + strings.Join(versions, ", ")
}

func table(b *strings.Builder, abilities []ability, files []*agents.File, all []result) {
	fmt.Fprint(b, "| program |")
	for _, a := range abilities {
		fmt.Fprintf(b, " %s |", a.name)
	}
	fmt.Fprint(b, "\n|---|", strings.Repeat("---|", len(abilities)), "\n| tried by |")
	for _, a := range abilities {
		fmt.Fprintf(b, " `%s` |", a.test)
	}
	for _, f := range files {
		fmt.Fprintf(b, "\n| %s |", f.Name)
		for _, a := range abilities {
			fmt.Fprintf(b, " %s |", a.cell(all, f))
		}
	}
	fmt.Fprint(b, "\n")
}

// capabilities is the page.
func capabilities(all []result) string {
	var named, installed []*agents.File
	var untried []string
	var first, last string
	for _, r := range all {
		if first == "" || r.Date < first {
			first = r.Date
		}
		last = max(last, r.Date)
	}
	for _, f := range agents.BuiltIn() {
		if f.Plain || f.Protocol != "" {
			continue
		}
		if f.Unproven {
			untried = append(untried, f.Name)
			continue
		}
		named = append(named, f)
		if len(waysOf(f)) > 0 {
			installed = append(installed, f)
		}
	}
	days := first
	if last != first {
		days += " to " + last
	}
	var b strings.Builder
	fmt.Fprintf(&b, `# What each program can do

A version stands where a test with that version of the real program, and a fake model, has passed; "-": there is no such way, or
nobody has shown it. Last run: %s, on Linux. Other versions may work as well.

Made by `+"`make capabilities`"+` from the programs' files ([drivers.md](drivers.md)) and the results of `+"`make real-agents RESULTS=1`"+`;
the tests named below are in cmd/internal/realagents.

## You start it yourself

After `+"`atm install PROGRAM`"+`, with `+"`ATM_AGENT=bob PROGRAM`"+`. Where there is no way at a moment, mail waits for the next turn, and a
question for its person. Programs that are not in this table read their mail themselves (`+"`atm read`"+`).

`, days)
	table(&b, startedByHand, installed, all)
	fmt.Fprint(&b, "\nBefore the versions stands the way that the mail takes, the best first. What a way needs, and what shows that mail has arrived:\n\n| program | way | at | needs | mail counts as read with |\n|---|---|---|---|---|\n")
	for _, f := range installed {
		for _, w := range waysOf(f) {
			needs := w.Needs
			if needs == "" {
				needs = "its hooks"
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", f.Name, w.By, strings.Join(w.At, ", "), needs, w.Receipt)
		}
	}
	fmt.Fprint(&b, "\n## atm runs it\n\nWith `atm run bob -- PROGRAM`. The state of all is read from their screens as well. Nothing needs to be installed: the hooks of\nclaude and opencode come along with the run, and those of gemini where root runs it.\n\n")
	table(&b, runByAtm, named, all)
	fmt.Fprintf(&b, "\nNot tried, since they need an account: %s. To these atm types nothing ([drivers.md](drivers.md#a-program-without-a-driver)).\n", strings.Join(untried, ", "))
	return b.String()
}
