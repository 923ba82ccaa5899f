package driver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/ptyrun/screen"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
)

func look(t *testing.T, file string) Look {
	t.Helper()
	s := screen.New(100, 30, 100)
	s.Write(recording(t, file))
	return LookAt(s)
}

// brief formats a dialog in a few lines, with the keys.
func brief(q *ask.Question) string {
	if q == nil {
		return "none"
	}
	var b strings.Builder
	b.WriteString(q.Dialog)
	for _, o := range q.Options {
		fmt.Fprintf(&b, "\n%s %q %s", o.ID, o.Keys, o.Label)
		if o.Kind != "" {
			b.WriteString(" " + o.Kind)
		}
	}
	return b.String()
}

func TestDialogsOfTheCaptures(t *testing.T) {
	for file, want := range map[string]string{
		"claude-confirming": `permission
1 "1" Yes allow_once
2 "2" Yes, and always allow access to proj/ from this project allow_always
3 "3" No reject_once`,
		"claude-2.1.332-permission": `permission
1 "1" Yes allow_once
2 "2" Yes, and switch to auto mode · auto mode handles these prompts for you allow_always
3 "3" No reject_once`,
		"claude-2.1.332-write": `permission
1 "1" Yes allow_once
2 "2" Yes, and switch to accept edits (auto-approve file edits and common file commands) for this
3 "3" No reject_once`,
		"claude-2.1.332-search": `permission
1 "1" Yes allow_once
2 "2" Yes, and don't ask again for Web Search commands in /tmp/nk/kit/work allow_always
3 "3" No reject_once`,
		"claude-2.1.332-plan-permission": `permission
1 "\r" No reject_once
2 "\x1b[B\r" Yes allow_once`,
		"claude-2.1.332-plan-exit": `question
1 "1" Yes, and switch to default (ask each time) for this session allow_always
2 "2" No reject_once`,
		"claude-2.1.332-trust": `trust
1 "\r" No, exit reject_once
2 "\x1b[B\r" Yes, I trust this folder allow_always`,
		"claude-2.1.332-bypass": `trust
1 "\r" No, exit reject_once
2 "\x1b[B\r" Yes, I accept allow_once`,
		"claude-2.1.332-auto":    "unknown",
		"claude-2.1.332-held":    "unknown",
		"claude-2.1.332-history": "unknown",
		"claude-2.1.332-nocolor-permission": `permission
1 "1" Yes allow_once
2 "2" Yes, and switch to auto mode · auto mode handles these prompts for you allow_always
3 "3" No reject_once`,
		"claude-2.1.332-reader-permission": `permission
1 "1\r" Yes allow_once
2 "2\r" Yes, and always allow access to /tmp/answers/kitnew/work from this project allow_always
3 "3\r" Yes, and switch to auto mode — · auto mode handles these prompts for you allow_always
4 "4\r" No reject_once`,
		"gemini-0.61-reader-permission": `permission
1 "\r" Allow once allow_once
2 "\x1b[B\r" Allow for this session allow_always
3 "\x1b" No, suggest changes reject_once`,
		"claude-trust": `trust
1 "1" Yes, I trust this folder allow_always
2 "2" No, exit reject_once`,
		"codex-confirming": `permission
1 "y" Yes, proceed allow_once
2 "p" Yes, and don't ask again for commands that start with ` + "`touch made.txt`" + ` allow_always
3 "\x1b" No, and tell Codex what to do differently reject_once`,
		"codex-trust": `trust
1 "\r" Trust and continue
2 "\x1b[B\r" Back to Agent Command Center`,
		"gemini-confirming": `permission
1 "\r" Allow once allow_once
2 "\x1b[B\r" Allow for this session allow_always
3 "\x1b" No, suggest changes reject_once`,
		"gemini-trust": `trust
1 "\r" Trust folder (p5)
2 "\x1b[B\r" Trust parent folder (dev)
3 "\x1b[B\x1b[B\r" Don't trust`,
		"copilot-confirming": `permission
1 "\r" Yes allow_once
2 "\x1b[B\r" Yes, and don't ask again for ` + "`touch`" + ` in this repo (/tmp/agentsa/k/work) allow_always
3 "\x1b" No, and tell Copilot what to do differently reject_once`,
		"copilot-path": `permission
1 "\x1b[A\r" Yes allow_once
2 "\r" Yes, and remember this path for this session allow_always
3 "\x1b" No reject_once`,
		"copilot-trust": `trust
1 "\r" Yes allow_once
2 "\x1b[B\r" Yes, and remember this folder for future sessions allow_always
3 "\x1b" No reject_once`,
		"pi-confirming": `permission
1 "\r" Yes allow_once
2 "\x1b[B\r" No reject_once`,
		"qwen-confirming": `permission
1 "\r" Yes, allow once allow_once
2 "\x1b[B\r" Always allow run 'touch *' commands in this project
3 "\x1b[B\x1b[B\r" Always allow run 'touch *' commands for this user
4 "\x1b" No, suggest changes reject_once`,
		"qwen-0.24-scrolled": `permission
1 "\r" Yes, allow once allow_once
2 "\x1b[B\r" Always allow run 'timeout *' commands in this project
3 "\x1b[B\x1b[B\r" Always allow run 'timeout *' commands for this user
4 "\x1b" No, suggest changes reject_once`,
		"qwen-trust": `trust
1 "\r" Trust folder (work)
2 "\x1b[B\r" Trust parent folder (qwen)
3 "\x1b" Don't trust`,
		"cline-confirming": `permission
y "y" Approve allow_once
n "n" Deny reject_once`,
		"continue-confirming": `permission
1 "\t" Continue allow_once
2 "\x1b[Z" Continue + don't ask again
3 "\x1b" No, and tell Continue what to do differently reject_once`,
		"kilo-always": `permission
confirm "\r" Confirm
cancel "\x1b[C\r" Cancel reject_once`,
		"kilo-confirming": `permission
allow-once "\r" Allow once allow_once
allow-always "\x1b[C\r" Allow always allow_always
reject "\x1b[C\x1b[C\r\r" Reject reject_once`,
		"kilo-question": `question
1 "1" Continue with snapshots
2 "2" Disable for this project`,
		"opencode-confirming": `permission
allow-once "\r" Allow once allow_once
allow-always "\x1b[C\r" Allow always allow_always
reject "\x1b[C\x1b[C\r" Reject reject_once`,
	} {
		if d := cmp.Diff(want, brief(driverOf(t, file).Read(look(t, file), Reading{}).Dialog)); d != "" {
			t.Errorf("%s (-want +got)\n%s", file, d)
		}
	}
}

// What asks for something that is not known, such as a menu that a person opened, is shown with its text, from its border
// on, and allows nothing.
func TestUnknownDialogs(t *testing.T) {
	for file, want := range map[string]string{
		"claude-2.1.197-config":      "Settings  Status   Config",
		"claude-2.1.197-model":       "Select model",
		"claude-2.1.197-permissions": "Permissions  Recently denied",
		"claude-2.1.197-resume":      "Resume session",
		"claude-2.1.197-theme":       "Theme",
		"claude-2.1.332-auto":        "Auto mode can't check actions in this session",
		"claude-2.1.332-config":      "Settings  Status   Config",
		"claude-2.1.332-held":        "Held message from another session",
		"claude-2.1.332-history":     "Search prompts",
		"claude-2.1.332-model":       "Select model",
		"claude-2.1.332-permissions": "Permissions  Recently blocked",
		"claude-2.1.332-resume":      "Resume session",
		"claude-2.1.332-theme":       "Theme",
		"codex-0.171-model":          "Select Model and Effort",
		"codex-0.171-resume":         "Resume a previous session",
		"codex-0.171-theme":          "Select Syntax Theme",
	} {
		q := driverOf(t, file).Read(look(t, file), Reading{}).Dialog
		if q == nil || q.Dialog != "unknown" || !strings.HasPrefix(q.Prompt, want) {
			t.Errorf("%s: %+v", file, q)
		} else if o, err := q.Pick(ask.Answer{}); err == nil {
			t.Errorf("%s allows %+v", file, o)
		}
	}
}

const claudeAsks = "\n Do you want to proceed?\n ❯ 1. Yes\n   2. Yes, and don't ask again for git commands\n   3. No, and tell Claude what to do differently (esc)\n\n Esc to cancel"

// On a small terminal the dialog of Claude Code loses a blank, an option or all of them.
func TestSmallDialogs(t *testing.T) {
	const foot = "\n\n Esc to cancel · Tab to amend · ctrl+e\n to explain\n"
	for screen, want := range map[string]string{
		"═40\n Bash command\n\n   git log\n\n Do you want to proceed?\n ❯ 1. Yes\n   2.Yes, and don't ask again for\n     similar commands in /tmp/a\n   3. No" + foot: `permission
1 "1" Yes allow_once
2 "2" Yes, and don't ask again for allow_always
3 "3" No reject_once`,
		"   git log\n\n Do you want to proceed?\n ❯ 1. Yes\n ↓ 2. Yes, and don't ask again for" + foot: `permission
1 "1" Yes allow_once
2 "2" Yes, and don't ask again for allow_always`,
		"   git log\n\n ↑ 2. Yes, and don't ask again\n ❯ 3. No" + foot: `unknown
2 "2" Yes, and don't ask again
3 "3" No`,
		"═24\n git log\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. Yes, and\n      always allow\n   3. Allow this sess…" + foot: `permission
1 "1" Yes allow_once
2 "2" Yes, and
3 "3" Allow this sess…`,
		"   git log\n\n Do you want to proceed?\n ❯ 1. Yes" + foot: "none",
		foot: "none",
	} {
		l := sketch("✳ Claude Code", screen)
		for _, before := range []reducer.Activity{"", reducer.Idle, reducer.Thinking, reducer.Confirming} {
			r := claude.Read(l, Reading{Activity: before})
			if d := cmp.Diff(want, brief(r.Dialog)); d != "" {
				t.Errorf("%s (-want +got)\n%s", screen, d)
			}
			if r.Activity != reducer.Confirming || r.Prompt || r.NotPromptReason != "dialog" {
				t.Errorf("%s: %+v", screen, r)
			}
		}
	}
}

func TestPrint(t *testing.T) {
	read := func(screen string) *ask.Question {
		q := claude.Read(sketch("", screen), Reading{}).Dialog
		if q == nil {
			t.Fatal("no dialog")
		}
		return q
	}
	same := read("● x\n\n✶ Wrangling… (2s)\n\n═100\n Bash command\n\n   git status\n" + claudeAsks)
	for _, other := range []string{
		"● x\n\n✢ Wrangling… (3s)\n\n═100\n Bash command\n\n   git status\n" + claudeAsks,
		"═40\n Bash command\n\n   git status\n" + claudeAsks,
		"═100\n Bash command\n\n   git status\n" + strings.Replace(strings.Replace(claudeAsks, "❯ 1", "  1", 1), "   2", " ❯ 2", 1),
	} {
		if q := read(other); q.Fingerprint != same.Fingerprint {
			t.Errorf("another print for the same dialog:\n%s", other)
		}
	}
	if q := read("═100\n Bash command\n\n   git stash\n" + claudeAsks); q.Fingerprint == same.Fingerprint {
		t.Error("the same print for another command")
	}
}

// An option that allows permanently is never the one that allows once.
func TestAllowing(t *testing.T) {
	q := claude.Read(sketch("", "═100\n Bash command\n\n   git status\n"+claudeAsks), Reading{}).Dialog
	yes, err := q.Pick(ask.Answer{})
	no, err2 := q.Pick(ask.Answer{Deny: true})
	if err != nil || err2 != nil || yes.ID != "1" || no.ID != "3" {
		t.Errorf("%+v, %+v", yes, no)
	}
	if _, err := (&ask.Question{Options: []ask.Option{{Kind: "allow_always"}}}).Pick(ask.Answer{}); err == nil {
		t.Error("always is not once")
	}
}

// The keys of `atm approve` and `atm reject` without an option.
func TestAnswersToQuestions(t *testing.T) {
	for _, c := range []struct{ name, driver, screen, want string }{
		{
			"an approach", "claude", "═100\n ☐ Approach\n\nWhich approach?\n\n❯ 1. Small steps\n  2. No steps\n  3. Type something.\n\nEnter to select · ↑/↓ to navigate · Esc to c\nancel",
			`- "\x1b" of 3, question: ☐ Approach|Which approach?`,
		},
		{
			"a plan", "claude", "═100\n Ready to code?\n\n Would you like to proceed?\n\n ❯ 1. Yes, and auto-accept edits\n   2. Yes, and manually approve edits\n   3. No, keep planning\n",
			`"2" "3" of 3, question: Ready to code?|Would you like to proceed?`,
		},
		{
			"a plan and auto mode", "claude", "═100\n Here is the plan:\n╌╌╌╌╌╌╌╌╌╌╌╌\n 1. do this\n╌╌╌╌╌╌╌╌╌╌╌╌\n═100\n Claude has written up a plan and is ready to execute. Would you like to proceed?\n\n ❯ 1. Yes, and use auto mode\n   2. Yes, manually approve edits\n   3. Tell Claude what to change\n      shift+tab to approve with this feedback\n\n ctrl+g to edit in  Vim  · ~/.claude/plans/x.md",
			`"2" - of 3, question: Claude has written up a plan and is ready to execute. Would you like to proceed?`,
		},
		{
			"two that begin like a yes", "claude", "═100\n ☐ Merge\n\nWhose?\n\n❯ 1. Accept ours\n  2. Accept theirs\n\nEnter to select · ↑/↓ to navigate · Esc to cancel",
			`- "\x1b" of 2, question: ☐ Merge|Whose?`,
		},
		{
			"a view of each answer", "claude", "═100\n ☐ Layout\n\nWhich layout?\n\n❯ 1. Yes                          ┌──────────────┐\n  2. Type A                       │ ❯ 1. x       │\n                                  │ foo          │\n                                  └──────────────┘\n\n                                  Notes: press n to add notes\n\n═100\n❯ Chat about this\n\nEnter to select · ↑/↓ to navigate · n to add notes · Esc to cancel",
			`"1" "\x1b" of 2, question: ☐ Layout|Which layout?`,
		},
		{
			"boxes to tick", "claude", "═100\n ☐ Colors\n\nWhich colors?\n\n❯ 1. [ ] Yes, red\n  like blood\n  2. [ ] Blue\n  like sky\n     Next\n═100\n  3. Chat about this\n\nEnter to select · Tab/Arrow keys to navigate · Esc to cancel",
			`- "\x1b" of 3, question: ☐ Colors|Which colors?`,
		},
		{
			"a description like an option", "claude", "═100\n ☐ Version\n\nWhich version?\n\n❯ 1. New\n     2.x is new\n  2. Old\n     1.x is old\n\nEnter to select · ↑/↓ to navigate · Esc to cancel",
			`- "\x1b" of 2, question: ☐ Version|Which version?`,
		},
		{
			"an answer to type", "claude", "═100\n ☐ Color\n\nWhich color?\n\n  1. Yes\n❯ 2. green stuff\n═100\n  3. Chat about this\n\nEnter to select · ↑/↓ to navigate · ctrl+g to edit in Vim · Esc to cancel",
			`"1" "\x1b" of 3, question: ☐ Color|Which color?`,
		},
		{
			"below a message of several rows", "codex", "› [atm b6b3c5 from lee, now]\n    do it\n\n\n  Question 1/1 (1 unanswered)\n  Which approach?\n\n› 1. Small steps\n  2. None of the above\n\n  tab to add notes | enter to submit answer | esc to interrupt",
			`- "\x1b" of 2, question: Question 1/1 (1 unanswered)|Which approach?`,
		},
		{
			"one that plays a permission", "codex", "• Ran x\n\n  Question 1/1 (1 unanswered)\n  Would you like to run the following command?\n\n  $ ls\n\n› 1. Yes, proceed\n  2. No\n\n  tab to add notes | enter to submit answer | esc to interrupt",
			`"\r" "\x1b" of 2, question: Question 1/1 (1 unanswered)|Would you like to run the following command?|$ ls`,
		},
		{
			"the key is an option's", "gemini", "╭──────────────────────────────────────╮\n│ ?  A potential loop was detected     │\n│                                      │\n│ ● 1. Keep loop detection enabled (esc) │\n│   2. Disable loop detection          │\n╰──────────────────────────────────────╯",
			`- "\x1b" of 2, question: ?  A potential loop was detected`,
		},
		{
			"in a frame", "gemini", "╭────────────────────────────────╮\n│ Answer Questions               │\n│                                │\n│ Really?                        │\n│                                │\n│ ● 1.  Yes                      │\n│   2.  No                       │\n│                                │\n│ Enter to select · Esc to cancel│\n╰────────────────────────────────╯",
			`"\r" "\x1b" of 2, question: Answer Questions|Really?`,
		},
		{
			"a plan", "gemini", "╭────────────────────────────────╮\n│ Ready to start implementation? │\n│                                │\n│ Plan                           │\n│  1. do                         │\n│                                │\n│ ● 1.  Yes, automatically accept edits │\n│       Approves plan and allows tools to run automatically │\n│   2.  Yes, manually accept edits │\n│       Approves plan but requires confirmation for each tool │\n│   3.  Type your feedback...    │\n│                                │\n│ Enter to select · Ctrl+G to edit plan · Esc to cancel │\n╰────────────────────────────────╯",
			`"\x1b[B\r" "\x1b" of 3, question: Ready to start implementation?|Plan|1. do`,
		},
		{
			"numbered, without a selector", "opencode", "     text\n  ┃\n  ┃  Which of 2. or 3.?\n  ┃\n  ┃  1. Small steps\n  ┃     as before\n  ┃  2. All at once\n  ┃  3. Type your own answer\n  ┃\n  ┃  ↑↓ select  enter submit  esc dismiss\n  ┃",
			`- "\x1b" of 3, question: Which of 2. or 3.?`,
		},
	} {
		d, _ := Named(c.driver)
		q := d.Read(sketch("", c.screen), Reading{}).Dialog
		if q == nil {
			t.Errorf("%s, %s: no dialog", c.driver, c.name)
			continue
		}
		keys := func(o ask.Option, err error) string {
			if err != nil {
				return "-"
			}
			return fmt.Sprintf("%q", o.Keys)
		}
		got := fmt.Sprintf("%s %s of %d, %s: %s", keys(q.Pick(ask.Answer{})), keys(q.Pick(ask.Answer{Deny: true})), len(q.Options), q.Dialog, strings.ReplaceAll(q.Prompt, "\n", "|"))
		if got != c.want {
			t.Errorf("%s, %s: %s, want %s", c.driver, c.name, got, c.want)
		}
	}
}
