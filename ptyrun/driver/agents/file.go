// Package agents describes what agent programs look like in a terminal, as data: a TOML file for each program, which is
// embedded. docs/drivers.md explains the keys. A person's own files, in a directory that Load is given, win over the
// embedded ones of the same name, and add others.
//
// A file is checked when it is read: each mistake has a line, and a file with mistakes is not used. Patterns are those of
// package regexp, whose time is in proportion to the text, so no file can make reading a screen take for ever.
//
// Begin with Load. What is read from a screen by these files is package driver's.
package agents

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A File describes one program.
type File struct {
	Name string `toml:"-"` // the file's, without .toml
	Text []byte `toml:"-"`

	Extends  string            // the built-in driver that this one changes; "": none
	Versions []string          // that it was tried with
	Unproven bool              // it was tried with none: others have described the program
	Plain    bool              // it gets the bare text, like a shell or REPL: Screen does not count
	Protocol string            // "acp": it speaks that protocol, and Screen does not count
	Parts    map[string]string // {{NAME}} in a pattern stands for the part of that name
	Command  Command
	Keys     Keys
	Resume   Resume
	Ways     []Way
	Typing   *Typing // nil: unknown
	Screen   Screen
	Reader   *Screen // the look for a screen reader; nil: as always
}

// A Command tells how the program is called.
type Command struct {
	Names       []string // of the program
	Unshared    string   // flag: no server that all sessions share, with the environment of the first
	IsUnshared  []string `toml:"is_unshared"` // beginnings of arguments with which it shares none anyway
	Subcommands []string // that draw no session
	ValueFlags  []string `toml:"value_flags"` // flags that take the next argument
}

// Keys are the keys that the program takes.
type Keys struct {
	Submit    Keystrokes // send the text in the box; Enter if the file does not say
	Interrupt Keystrokes // end a turn; Esc if the file does not say
	Forgets   bool       `toml:"interrupt_forgets"` // before the first word of the answer it removes the prompt from the conversation
}

// Resume are the arguments with which a conversation goes on, right after the program's name. {id} stands for its id.
type Resume struct {
	ID       []string
	Fork     []string // a copy of it
	IsChosen []string `toml:"is_chosen"` // arguments, or a first one, with which the command chooses one itself
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

// A Screen says how the program draws.
type Screen struct {
	Shown      *Pattern          // of Reader: matches the screen that is drawn for one
	DeclaresAs string            `toml:"declares_as"` // its name where it says outright what it does; "": it does not
	Titles     []Meaning         // the first match counts
	Progress   map[string]string // states of its progress bar, of ProgressStates, and what each shows
	Box        Box
	ScrollBar  string                `toml:"scroll_bar"` // characters that it draws in the last column beside its transcript
	Indent     int                   // of an answer's rows
	EveryRow   bool                  `toml:"message_marks_every_row"` // each row of a message has the mark of the first
	Rows       []Row                 // of the transcript; the first match counts
	Conditions map[string]*Condition // that rows name with "is"
	Tools      map[string]string     // what a row calls a tool, and the tool
	Dialog     Dialog
}

// A Phrase is a text on the screen and what it means.
type Phrase struct {
	Line  int `toml:"-"`
	Text  string
	Means string
}

// A Meaning is a pattern and what it means that it matches.
type Meaning struct {
	Line    int `toml:"-"`
	Pattern Pattern
	Means   string
}

// A Box describes the input box.
type Box struct {
	Top          *Pattern  // the row above the text: its upper edge; nil: there is none
	Cut          *Pattern  // an upper edge that says that the beginning of the text is not shown
	Text         *Pattern  // the first row of the text, which is in its group; nil: the box is not known, and nothing is typed
	More         *Pattern  // any other row of the text, likewise; nil: they begin in the column of the first
	Bottom       *Pattern  // the row below the text, or several: its lower edge; nil: there is none
	DrawsCursor  bool      `toml:"draws_cursor"` // in the text, while the terminal's is hidden or elsewhere
	Modes        []Meaning // other forms of Text, and the gate that each shows
	Placeholders []string  // beginnings of texts that an empty box shows, not dim
	Pasted       []string  // beginnings of what it shows for a long paste
	MaxBelow     int       `toml:"max_below"` // how many rows below the box may be filled; 0: 8
	Below        []Phrase  // texts below the box or in its upper edge, and the gate of each; the first in the file counts
	NeverBelow   []string  `toml:"never_below"` // texts that are never below a box
	Starting     string    // the text below the box while the program starts, with an empty title
}

// A Row recognizes rows of one kind.
type Row struct {
	Line      int    `toml:"-"`
	Kind      string // one of Kinds
	Condition        // a group of its pattern names the tool, or counts the retries
	Prefix    string // what comes before the text, if it is more than one character
	Detail    string // busy, retry: what it says beside that
	MayAnswer bool   `toml:"may_be_answer"` // error: an answer that begins so is drawn alike
}

// A Condition holds for a row if all that it names does.
type Condition struct {
	Pattern      *Pattern    // matches the row
	Styled       *bool       // whether the program draws with styles at all
	Ink          *bool       // whether any visible cell of the row is ink
	First        *Style      // of the cell in the first column
	Mark         *Style      // of the first cell that is not blank
	Gap          *Style      // of the cell behind the mark
	Letter       *Style      // of the first letter or digit
	Above, Below *Condition  // hold for the row above or below it
	Is           string      // the name of a condition that holds, too
	All, Any     []Condition // all or any of them hold
	Not          *Condition  // does not hold

	Named *Condition `toml:"-"` // the one that Is names
}

// A Dialog describes what the program asks in place of its input box.
type Dialog struct {
	Top      *Pattern  // the row above it: its upper edge; nil: there is none
	Row      *Pattern  // each of its rows, as one between the sides of a frame; nil: they may be any
	Bottom   *Pattern  // the row below it: its lower edge; nil: there is none
	Heading  *Pattern  // its first row, where it has no edge, or only one that ends the transcript
	Option   *Pattern  // an option that has no number, with the groups label, key, selected and twice
	Digits   bool      // the digit of an option chooses it at once
	Choose   []Meaning // what the rows below a numbered list say of the keys that choose, although none is selected: of chosenBy
	FreeHint string    `toml:"free_hint"` // below options of which none need be selected
	Answers  []Meaning // labels of options, and the kind of each: of foreign.OptionKind
	Hints    []string  // keys that are named below a dialog, by which one without edges is known
	Kinds    []Phrase  // beginnings of the first row or the question, or texts below the options, and the dialog's kind
}

// A Pattern is a regular expression.
type Pattern struct {
	*regexp.Regexp
	Rows int // that it matches, where it is for several: one more than it has \n

	text string // with {{NAME}} for the parts
}

// Matches reports whether a row matches; a nil pattern matches none.
func (p *Pattern) Matches(row string) bool { return p != nil && p.MatchString(row) }

// UnmarshalText implements encoding.TextUnmarshaler. The pattern is compiled when all parts of the file are known.
func (p *Pattern) UnmarshalText(text []byte) error {
	p.text = string(text)
	if p.text == "" {
		return errors.New("the pattern is empty")
	}
	return nil
}

func (p *Pattern) compile(parts *strings.Replacer) (err error) {
	text := parts.Replace(p.text)
	if len(text) > maxPattern {
		return fmt.Errorf("the pattern has more than %d bytes", maxPattern)
	}
	p.Rows = 1 + strings.Count(text, `\n`)
	p.Regexp, err = regexp.Compile(text)
	return err
}

// A Style says how a cell is drawn.
type Style struct {
	Name string // one of styles
	Not  bool   // it is drawn in another way
}

// Of every visible cell one of Ink, Muted and Coloured holds.
const (
	Ink      = "ink"      // the colour of the theme's text
	Muted    = "muted"    // dim or a medium grey, as hints and explanations
	Coloured = "coloured" // anything else
	Dim      = "dim"
	Bold     = "bold"
	Hidden   = "hidden"   // in the colour of the background at the first column
	AsFirst  = "as first" // in the colour of the first column
	Filled   = "filled"   // with a background
)

var styles = []string{Ink, Muted, Coloured, Dim, Bold, Hidden, AsFirst, Filled}

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Style) UnmarshalText(text []byte) error {
	s.Name, s.Not = strings.CutPrefix(string(text), "not ")
	return oneOf(s.Name, styles)
}

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

func oneOf(word string, known []string) error {
	if !slices.Contains(known, word) {
		return fmt.Errorf("%q is not one of %s", word, strings.Join(known, ", "))
	}
	return nil
}
