package agentconfig

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// A drawer makes random configuration files that a tool takes: relevant and other members in any order and layout, with
// comments and malformed hooks if the tool reads them.
type drawer struct {
	r        *rand.Rand
	comments bool
	nl       string
	unit     string
	flat     bool
	out      strings.Builder
}

func (w *drawer) pick(of ...string) string { return of[w.r.IntN(len(of))] }

// gap writes the white space between two tokens.
func (w *drawer) gap(depth int) {
	if w.flat {
		w.out.WriteString(w.pick("", " "))
		return
	}
	if w.comments && w.r.IntN(6) == 0 {
		w.out.WriteString(w.pick(" /* { [ */", " // note, \"", ""))
	}
	w.out.WriteString(w.nl + strings.Repeat(w.unit, depth))
}

func (w *drawer) in(brackets string, depth int, children ...func()) {
	w.out.WriteString(brackets[:1])
	w.r.Shuffle(len(children), func(i, j int) { children[i], children[j] = children[j], children[i] })
	children = children[:w.r.IntN(len(children)+1)]
	for i, c := range children {
		w.gap(depth + 1)
		c()
		if i < len(children)-1 {
			w.out.WriteString(",")
		}
	}
	if len(children) > 0 || w.r.IntN(4) == 0 {
		w.gap(depth)
	}
	w.out.WriteString(brackets[1:])
}

func (w *drawer) member(key string, value func()) func() {
	return func() {
		w.out.WriteString(`"` + key + `":` + w.pick("", " "))
		value()
	}
}

func (w *drawer) text(s ...string) func() { return func() { w.out.WriteString(w.pick(s...)) } }

func (w *drawer) hooks(depth int) {
	handler := w.text(`{"type": "command", "command": "say done"}`, `{"command":"x | y","type":"command","timeout":3}`, `{"type":"prompt","prompt":"ok?"}`, `{"type":"command","command":"atm hook other"}`)
	group := func() {
		w.in("{}", depth+2, w.member("matcher", w.text(`"Bash"`, `"*"`)), w.member("hooks", func() { w.in("[]", depth+3, handler, handler) }))
	}
	another := w.text("null")
	if !w.comments {
		group = w.text(`{"hooks": [{"type": "prompt", "prompt": "ok?"}], "matcher": "*"}`, `{ "hooks": [] }`)
		another = group
	}
	event := func(name string) func() {
		return w.member(name, func() { w.in("[]", depth+1, group, group, another) })
	}
	w.in("{}", depth, event("Stop"), event("SessionStart"), event("AfterTool"), event("Mine"), event("BeforeAgent"))
}

func (w *drawer) document(tool string) string {
	if tool == "codex" {
		w.in("{}", 0, w.member("hooks", func() { w.hooks(1) }), w.member("description", w.text(`"mine"`)))
		return w.out.String()
	}
	if w.comments && w.r.IntN(4) == 0 {
		w.out.WriteString("// mine" + w.nl)
	}
	strs := func(depth int) { w.in("[]", depth, w.text(`"a"`), w.text(`"Bash(ls:*)"`), w.text(`"/x"`)) }
	other := w.text("1", `"é"`, "null", "[1, [2]]", `{"hooks": {"Stop": [{}]}}`, "1e400")
	ask := func() { strs(2) }
	if w.comments {
		ask = other
	}
	w.in("{}", 0,
		w.member("hooks", func() { w.hooks(1) }),
		w.member("permissions", func() {
			w.in("{}", 1, w.member("allow", func() { strs(2) }), w.member("deny", func() { strs(2) }), w.member("ask", ask))
		}),
		w.member("sandbox", func() {
			w.in("{}", 1, w.member("enabled", w.text("true")), w.member("filesystem", func() { w.in("{}", 2, w.member("allowWrite", func() { strs(3) })) }))
		}),
		w.member("tools", func() { w.in("{}", 1, w.member("sandboxAllowedPaths", func() { strs(2) }), w.member("x", other)) }),
		w.member("env", func() { w.in("{}", 1, w.member("A", w.text(`"b"`)), w.member("ATM_AGENT", w.text(`"carol"`))) }),
		w.member("other", other), w.member("other2", other),
	)
	w.out.WriteString(w.pick("", w.nl, w.nl+w.nl))
	return w.out.String()
}

// files are the requests, and the file of each that a drawer makes.
var files = []struct {
	r        Request
	name     string
	comments bool
}{
	{Request{Tool: "claude"}, "home/.claude/settings.json", false},
	{Request{Tool: "claude", Local: true, Agent: "bob"}, "repo/.claude/settings.local.json", false},
	{Request{Tool: "codex"}, "home/.codex/hooks.json", false},
	{Request{Tool: "gemini"}, "home/.gemini/settings.json", true},
	{Request{Tool: "gemini", Local: true, Agent: "bob"}, "repo/.gemini/settings.json", true},
}

// Uninstall undoes install, whatever a file looks like; installing again changes nothing; and an addition by somebody
// else stays.
func TestInstallAndUninstallAreNothing(t *testing.T) {
	h := newSetup(t)
	for seed := range uint64(12 * len(files)) {
		f := files[seed%uint64(len(files))]
		r := rand.New(rand.NewPCG(seed, 3))
		w := &drawer{r: r, comments: f.comments, nl: "\n", unit: []string{"  ", "\t", "    "}[r.IntN(3)], flat: r.IntN(4) == 0}
		if r.IntN(5) == 0 {
			w.nl = "\r\n"
		}
		src := w.document(f.r.Tool)
		if _, err := parseJSON([]byte(src)); err != nil {
			t.Fatalf("seed %d: the drawer is wrong: %v\n%s", seed, err, src)
		}
		fresh := func() {
			t.Helper()
			for _, dir := range []string{"home", "repo/.claude", "repo/.gemini", "repo/.opencode"} {
				must(t, os.RemoveAll(h.at(dir)))
			}
			h.write(f.name, src)
		}
		fail := func(format string, args ...any) {
			t.Helper()
			t.Fatalf("seed %d, %+v: %s\nfrom\n%s", seed, f.r, fmt.Sprintf(format, args...), src)
		}
		fresh()
		before := h.tree(".")
		if _, err := h.Install(f.r); err != nil {
			fail("%v", err)
		}
		after := h.read(f.name)
		doc, err := parseJSON([]byte(after))
		if err != nil || json.Valid([]byte(src)) != json.Valid([]byte(after)) {
			fail("%v in\n%s", err, after)
		}
		if again := h.install(f.r); len(again.Files) > 0 {
			fail("again changes %v in\n%s", again.Files, after)
		}
		h.uninstall(f.r)
		if now := h.tree("."); !maps.Equal(before, now) {
			h.same("uninstall", before, now)
			fail("uninstall is not exact")
		}

		// Somebody adds a member in between.
		fresh()
		h.install(f.r)
		if err := put(doc, "/added", `"in between"`); err != nil {
			fail("%v", err)
		}
		h.write(f.name, string(doc.Pack()))
		h.uninstall(f.r)
		left := h.read(f.name)
		got, err := parseJSON([]byte(left))
		if err != nil {
			fail("%v in\n%s", err, left)
		}
		was, _ := parseJSON([]byte(src))
		if stringOf(got.Find("/added")) != "in between" {
			fail("what was added is lost:\n%s", left)
		}
		remove(got, "/added")
		was.Minimize()
		got.Minimize()
		if was.String() != got.String() {
			fail("uninstall left\n%s\n%s\n%s", left, was, got)
		}
	}
}
