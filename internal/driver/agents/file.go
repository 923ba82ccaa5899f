// Package agents describes what agent programs look like in a terminal, as data: a TOML file for each program, which is
// embedded. docs/drivers.md explains the keys. A person's own files, in a directory that Load is given, win over the
// embedded ones of the same name, and add others.
//
// A file is checked when it is read: each mistake names its place, and a file with mistakes is not used. Patterns are those of
// package regexp, whose time is in proportion to the text, so no file can make reading a screen take for ever.
//
// Begin with Load. What is read from a screen by these files is package driver's.
package agents

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// A File describes one program.
type File struct {
	Name string `toml:"-"` // the file's, without .toml
	Text []byte `toml:"-"`

	Extends  string            // the built-in driver that this one changes; "": none
	Versions []string          // that it was tried with
	Unproven bool              // it was tried with none: others have described the program
	Plain    bool              // it gets the bare text, like a shell or REPL
	Protocol string            // "acp": it speaks that protocol, and Screen does not count
	Parts    map[string]string // {{NAME}} in a pattern stands for the part of that name
	Command  Command
	Keys     Keys
	Resume   Resume
	Typing   *Typing // nil: unknown
	Screen   Screen
}

// A Command tells how the program is called.
type Command struct {
	Names      []string // of the program
	Unshared   string   // flag: no server that all sessions share, with the environment of the first
	IsUnshared []string `toml:"is_unshared"` // beginnings of arguments with which it shares none anyway
}

// Keys are the keys that the program takes.
type Keys struct {
	Interrupt Keystrokes // end a turn; Esc if the file does not say
	Forgets   bool       `toml:"interrupt_forgets"` // before the first word of the answer it removes the prompt from the conversation
}

// Resume are the arguments with which a conversation goes on, right after the program's name. {id} stands for its id.
type Resume struct {
	ID       []string
	Fork     []string // a copy of it
	IsChosen []string `toml:"is_chosen"` // arguments with which the command chooses one itself, or draws none
}

// Typing says on what the program acts in a submitted text, beside giving it to the model: it attaches the file behind an
// @, loads a skill, thinks harder. It is what the program's code says, tried with the versions of the file.
type Typing struct {
	Escapes []Escape
	Refused []Pattern // what the program acts on in any form
	AsIs    bool      `toml:"as_is"` // takes a text for one even without bracketed paste, with its line breaks
	// It tells its model that a paste of several lines, or of more bytes than this, is not the user's own text, and so gets
	// lines one by one, and long ones in parts. 0: it does not.
	MaxPaste int `toml:"max_paste"`
}

// An Escape is the form in which a program leaves a trigger alone. Its typed form must not come from anything else, so
// that who knows the legend can restore the exact text.
type Escape struct {
	Pattern Pattern
	Typed   string // a template of package regexp
	Legend  string
}

// A Screen says what the program's screen shows, in three patterns, the first of which counts: what it asks, that it works,
// that it waits for a text. What none of them fits is no opinion: nothing is typed.
type Screen struct {
	DeclaresAs string `toml:"declares_as"` // its name where it says outright what it does; "": it does not
	Asks       Asks
	Busy       Area
	Prompt     Area // the group draft has the text in its box
}

// An Area is a part of the screen, and what it shows in a certain state.
type Area struct {
	Title   *Pattern // matches the terminal's title; nil: none does
	Last    int      // how many rows Pattern sees, up to the lowest filled one; 0: all
	Pattern *Pattern // matches these rows, with line breaks between them; nil: none does
}

// Asks is what the program asks in place of its input box. A group of the pattern that is named as one of DialogKinds says
// what kind it is, and what is shown of it; without one only its terminal can answer. A group tool names the tool.
type Asks struct {
	Area
	Option *Pattern // matches an option in a row, with the groups label, key, number and selected
}

// A Pattern is a regular expression. One of the screen may be written in several lines, whose breaks and indents do not
// count; ^ and $ in it are at the ends of a row.
type Pattern struct {
	*regexp.Regexp

	text string // with {{NAME}} for the parts
}

// UnmarshalText implements encoding.TextUnmarshaler. The pattern is compiled when all parts of the file are known.
func (p *Pattern) UnmarshalText(text []byte) error {
	p.text = string(text)
	return nil
}

func (p *Pattern) compile(ofScreen bool, parts *strings.Replacer) (err error) {
	if p.text == "" {
		return errors.New("a pattern is needed, in quotes")
	}
	text := parts.Replace(p.text)
	if len(text) > maxPattern {
		return fmt.Errorf("the pattern has more than %d bytes", maxPattern)
	}
	if ofScreen {
		text = "(?m)" + lineBreak().ReplaceAllString(strings.TrimSpace(text), "")
	}
	p.Regexp, err = regexp.Compile(text)
	return err
}

var lineBreak = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\s*\n\s*`) })

// Keystrokes are keys, as the bytes that a terminal sends for each.
type Keystrokes []string

// UnmarshalText implements encoding.TextUnmarshaler. Keys are written "Esc", "Enter", "Tab", "Ctrl-C", with blanks between
// several.
func (k *Keystrokes) UnmarshalText(text []byte) error {
	*k = nil
	for _, word := range strings.Fields(string(text)) {
		letter, isCtrl := strings.CutPrefix(word, "Ctrl-")
		switch {
		case word == "Esc":
			*k = append(*k, "\x1b")
		case word == "Enter":
			*k = append(*k, "\r")
		case word == "Tab":
			*k = append(*k, "\t")
		case isCtrl && len(letter) == 1 && letter[0] >= 'A' && letter[0] <= 'Z':
			*k = append(*k, string(letter[0]-'A'+1))
		default:
			return fmt.Errorf("%q is not a key: Esc, Enter, Tab, Ctrl-A to Ctrl-Z", word)
		}
	}
	if len(*k) == 0 || len(*k) > 4 {
		return errors.New("one to four keys are needed")
	}
	return nil
}
