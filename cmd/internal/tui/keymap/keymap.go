// Package keymap is the table of the keys of atm tui. The view's lines and page of keys are made from it, and so is
// `atm help tui`, for which atm need not link the view.
package keymap

import (
	"fmt"
	"strings"

	"charm.land/bubbles/v2/key"
)

var (
	Down     = bind("j k", "move", "j", "down")
	Up       = bind("", "", "k", "up")
	First    = bind("g G", "first and last", "g", "home")
	Last     = bind("", "", "G", "end")
	PageDown = bind("PgUp PgDn", "a page", "pgdown", "ctrl+f")
	PageUp   = bind("", "", "pgup", "ctrl+b")
	HalfDown = bind("Ctrl-U Ctrl-D", "half a page", "ctrl+d")
	HalfUp   = bind("", "", "ctrl+u")
	Right    = bind("h l", "sideways", "l", "right")
	Left     = bind("", "", "h", "left")

	Next     = bind("Tab", "next pane", "tab")
	Previous = bind("", "", "shift+tab")
	Open     = bind("Enter", "open", "enter")
	Back     = bind("q Esc", "back; q leaves mail", "q", "esc")
	Search   = bind("/", "search", "/")
	Command  = bind(":", "member, mail, keys", ":")
	Keys     = bind("?", "keys", "?")
	Quit     = bind("", "", "q", "ctrl+c")

	Approve = bind("a", "approve", "a")
	Option  = bind("1-9", "option", "1", "2", "3", "4", "5", "6", "7", "8", "9")
	Reject  = bind("x", "reject", "x")
	Answer  = bind("r", "answer", "r")

	Reply   = bind("r", "reply", "r")
	Ack     = bind("c", "ack", "c")
	Read    = bind("Space", "read", "space")
	ReadAll = bind("R", "read all", "R")
	Undo    = bind("u", "undo read, or withdraw", "u")

	NextMail     = bind("n p", "next or previous", "n")
	PreviousMail = bind("", "", "p")

	Write     = bind("s", "write", "s")
	Attach    = bind("t", "attach", "t")
	Detach    = bind(`Ctrl-\ d`, "come back", `ctrl+\`) // which attach reads
	Interrupt = bind("i", "interrupt", "i")
	StartStop = bind("o", "start or stop", "o")

	Send       = bind("Ctrl-S", "send", "ctrl+s")
	Close      = bind("Esc", "keep the draft", "esc", "ctrl+c")
	EditDraft  = bind("Ctrl-E", "$EDITOR", "ctrl+e")
	Recipients = bind("Tab S-Tab", "to, file", "tab")
	File       = bind("", "", "shift+tab")
	Suggested  = bind("Right", "take the name", "right", "tab")
)

// bind makes a binding; one that is shown with another one has no help.
func bind(shown, does string, keys ...string) key.Binding {
	return key.NewBinding(key.WithKeys(keys...), key.WithHelp(shown, does))
}

// As is a binding that is shown with other words.
func As(b key.Binding, shown, does string) key.Binding {
	b.SetHelp(shown, does)
	return b
}

var groups = []struct {
	title string
	keys  []key.Binding
}{
	{"Move", []key.Binding{Down, First, PageDown, HalfDown, Right}},
	{"Go", []key.Binding{Next, Open, Back, Search, Command, Keys}},
	{"Question", []key.Binding{Approve, Option, Reject, Answer}},
	{"Message", []key.Binding{Reply, Ack, Read, ReadAll, Undo, NextMail}},
	{"Member", []key.Binding{Write, Attach, Detach, Interrupt, StartStop}},
	{"Writing", []key.Binding{Send, Close, EditDraft, Recipients, Suggested}},
}

// Page is a line for each key.
func Page() string {
	var text strings.Builder
	for _, g := range groups {
		fmt.Fprintf(&text, "%s:\n", g.title)
		for _, b := range g.keys {
			fmt.Fprintf(&text, "  %-14s%s\n", b.Help().Key, b.Help().Desc)
		}
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// Help is a line for each group of keys.
func Help() string {
	var lines []string
	for _, g := range groups {
		lines = append(lines, g.title+": "+Line(", ", g.keys...))
	}
	return strings.Join(lines, "\n")
}

// Line is the keys and what they do, in one line.
func Line(separator string, keys ...key.Binding) string {
	var parts []string
	for _, b := range keys {
		parts = append(parts, b.Help().Key+" "+b.Help().Desc)
	}
	return strings.Join(parts, separator)
}
