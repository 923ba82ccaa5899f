// Package agents describes what agent programs look like in a terminal, as data: a TOML file for each program, which is
// embedded. docs/drivers.md explains the keys. A person's own files, in a directory that Load is given, win over the
// embedded ones of the same name, and add others.
//
// A file is checked when it is read: each mistake has a line, and a file with mistakes is not used. Patterns are those of
// package regexp, whose time is in proportion to the text, so no file can make reading a screen take for ever.
package agents

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/agentteammail/atm/internal/tomlfile"
)

//go:embed *.toml
var embedded embed.FS

// A File describes one program.
type File struct {
	Name string `toml:"-"` // the file's, without .toml
	Text []byte `toml:"-"`

	Versions  []string          // that it was tried with
	Plain     bool              // a shell or REPL: Screen does not count
	OwnEvents bool              `toml:"own_events"` // it logs all events itself, as package ptyrun/acp does
	Parts     map[string]string // {{NAME}} in a pattern stands for the part of that name
	Command   Command
	Keys      Keys
	Resume    Resume
	Typing    *Typing // nil: unknown
	Screen    Screen
	Reader    *Screen // the look for a screen reader; nil: as always
}

// A Command tells how the program is called.
type Command struct {
	Names       []string // of the program
	Packages    []string // of npm
	Unshared    string   // flag: no server that all sessions share, with the environment of the first
	IsUnshared  []string `toml:"is_unshared"` // beginnings of arguments with which it shares none anyway
	Subcommands []string // that draw no session and share nothing
	ValueFlags  []string `toml:"value_flags"` // flags that take the next argument
}

// Keys are the keys that the program takes.
type Keys struct {
	Submit    Keystrokes // send the text in the box; Enter if the file does not say
	Interrupt Keystrokes // end a turn; Esc if the file does not say
	Forgets   bool       `toml:"interrupt_forgets"` // before the first word of the answer it removes the prompt from the conversation
}

// Resume are the arguments with which a conversation goes on. {id} stands for its id.
type Resume struct {
	Last []string
	ID   []string
}

// Typing says on what the program acts in a submitted text, beside giving it to the model: it attaches the file behind an
// @, loads a skill, thinks harder. It is what the program's code says, tried with the versions of the file.
type Typing struct {
	Escapes []Escape
	Refused []Pattern // what the program acts on in any form
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
	Shown      *Pattern // matches a title, a line break and a screen that only this program shows; of Reader, the screen
	DeclaresAs string   `toml:"declares_as"` // its name where it says outright what it does; "": it does not
	Titles     []Title  // the first match counts
	Box        Box
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

// A Title is a pattern for titles and the state that it shows.
type Title struct {
	Line    int `toml:"-"`
	Pattern Pattern
	Means   string
}

// A Box describes the input box.
type Box struct {
	Shape        string   // one of BoxShapes
	Glyph        string   // before the text
	NeedsGlyph   bool     `toml:"needs_glyph"` // rest: always; else only some versions draw it
	Indent       int      // columns before the glyph
	Column       int      // of the text, counted from the glyph
	TailRows     int      `toml:"tail_rows"` // bars: rows at the end of the box without text
	Modes        []Phrase // other glyphs, each with a blank, and the gate that each shows
	Placeholders []string // beginnings of texts that an empty box shows, not dim
	Pasted       []string // beginnings of what it shows for a long paste
	MaxBelow     int      `toml:"max_below"` // how many rows below the box may be filled; 0: 8
	Below        []Phrase // texts below the box and the gate of each; the first in the file counts
	NeverBelow   []string `toml:"never_below"` // texts that are never below a box
	Starting     string   // the text below the box while the program starts, with an empty title
	Above        *Pattern // rest: the rows above the box, in which the program says something about itself
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
	Shape       string   // one of DialogShapes; "": only lists with numbers are found
	Outright    bool     // it is also told as JSON, in a sequence of atm's own
	Digits      bool     // the digit of an option chooses it at once
	Selected    string   // the mark of the selected one among options without numbers; "": there are none
	Buttons     []string // labels of options side by side
	Hints       []string // the keys that are named below buttons
	DigitsHint  string   `toml:"digits_hint"`  // below options of which a digit chooses one, although none is selected
	NumbersHint *Pattern `toml:"numbers_hint"` // below options of which a number and Enter choose one
	FreeHint    string   `toml:"free_hint"`    // below options of which none need be selected
	Kinds       []Phrase // beginnings of the first row or the question, or texts below the options, and the dialog's kind
	Headings    []Phrase // beginnings of the row that names the tool, and the tool
	Views       []string // texts of what is drawn in place of the box but asks nothing
	Request     string   // one of Requests: how tool and input of a permission request are read; "": a person answers
}

// A Pattern is a regular expression.
type Pattern struct{ *regexp.Regexp }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Pattern) UnmarshalText(text []byte) (err error) {
	switch {
	case len(text) == 0:
		return errors.New("the pattern is empty")
	case len(text) > maxPattern:
		return fmt.Errorf("the pattern has more than %d bytes", maxPattern)
	}
	p.Regexp, err = regexp.Compile(string(text))
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
)

var styles = []string{Ink, Muted, Coloured, Dim, Bold, Hidden, AsFirst}

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

// MaxSize is how large a file may be.
const MaxSize = 64 << 10

// An Entry is a driver that Load has found.
type Entry struct {
	Name      string
	Path      string             // the file; "": built in
	Overrides bool               // the file takes the place of a built-in one
	File      *File              // to be used; nil: none, for it has mistakes
	Mistakes  []tomlfile.Mistake // of the file at Path, which is not used then
	Err       error              // why it could not be read
}

// BuiltIn returns the embedded files, by name.
var BuiltIn = sync.OnceValue(func() (files []*File) {
	for _, name := range builtInNames() {
		text, err := embedded.ReadFile(name + ".toml")
		f, mistakes := Parse(name, text)
		if err != nil || len(mistakes) > 0 {
			panic(fmt.Sprint(name, ".toml: ", err, mistakes)) // a test reads them all
		}
		files = append(files, f)
	}
	return files
})

// BuiltInNamed returns an embedded file by its name; nil: there is none.
func BuiltInNamed(name string) *File {
	for _, f := range BuiltIn() {
		if f.Name == name {
			return f
		}
	}
	return nil
}

func builtInNames() (names []string) {
	entries, _ := embedded.ReadDir(".")
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".toml"))
	}
	return names
}

// fileName matches the name of a driver. "auto" is none: it stands for choosing one.
var fileName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)

// Dir is where a person keeps own files: drivers in atm's part of the configuration directory, the same on every system;
// "" without a home directory. The root of a team is no place for them, because a repository must not bring any.
func Dir() string {
	dir := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) { // its specification has us ignore a relative one
		home, _ := os.UserHomeDir()
		if dir = filepath.Join(home, ".config"); !filepath.IsAbs(dir) {
			return ""
		}
	}
	return filepath.Join(dir, "atm", "drivers")
}

// ownNames returns the names of the files in a person's directory ("": none), sorted.
func ownNames(dir string) (names []string) {
	if dir == "" {
		return nil
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".toml"); ok && !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	return names
}

// Names returns the names of all drivers, sorted, without reading a file.
func Names(dir string) []string {
	names := append(builtInNames(), ownNames(dir)...)
	slices.Sort(names)
	return slices.Compact(names)
}

// Own returns the drivers in a person's directory, by name.
func Own(dir string) (entries []Entry) {
	for _, name := range ownNames(dir) {
		e := Entry{Name: name, Path: filepath.Join(dir, name+".toml"), Overrides: slices.Contains(builtInNames(), name)}
		e.File, e.Mistakes, e.Err = ReadFile(e.Path)
		if e.Overrides {
			builtIn := BuiltInNamed(name)
			if builtIn.isOurs() {
				e.File, e.Err = nil, fmt.Errorf("read driver %s: %s is atm's own and stays as it is", e.Path, name)
			}
			if e.File == nil {
				e.File = builtIn
			}
		}
		entries = append(entries, e)
	}
	return entries
}

// Load returns all drivers by name: those in a person's directory, and the built-in ones that these do not replace.
func Load(dir string) []Entry {
	entries := Own(dir)
	for _, f := range BuiltIn() {
		if !slices.ContainsFunc(entries, func(e Entry) bool { return e.Name == f.Name }) {
			entries = append(entries, Entry{Name: f.Name, File: f})
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	return entries
}

// isOurs reports whether the driver is for what atm itself counts on: a shell, or the front for ACP.
func (f *File) isOurs() bool { return f.Plain || f.OwnEvents || f.Screen.Dialog.Outright }

// Fault says why the file at Path is not used, and what is used instead; nil: it is used.
func (e *Entry) Fault() error {
	err := e.Err
	if len(e.Mistakes) > 0 {
		err = fmt.Errorf("%s: %s", e.Path, e.Mistakes[0])
		if more := len(e.Mistakes) - 1; more > 0 {
			err = fmt.Errorf("%w, and %d more", err, more)
		}
	}
	switch {
	case err == nil:
		return nil
	case e.File != nil:
		return fmt.Errorf("%w; the built-in driver %s is used", err, e.Name)
	}
	return fmt.Errorf("%w; there is no driver %s", err, e.Name)
}

// ReadFile reads a file. With mistakes it returns no File.
func ReadFile(path string) (*File, []tomlfile.Mistake, error) {
	name := strings.TrimSuffix(filepath.Base(path), ".toml")
	if !fileName.MatchString(name) || name == "auto" {
		return nil, nil, fmt.Errorf("read driver %s: %q is no name for a driver: lower-case letters, digits, - and _", path, name)
	}
	info, err := os.Stat(path) // opening a pipe would wait
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a file")
	}
	var text []byte
	if err == nil {
		text, err = readUpTo(path, MaxSize)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read driver %s: %w", path, err)
	}
	f, mistakes := Parse(name, text)
	if f.OwnEvents || f.Screen.Dialog.Outright {
		mistakes = append(mistakes, tomlfile.Mistake{Line: 1, Text: "own_events and outright are for atm's own front"})
	}
	if len(mistakes) > 0 {
		return nil, mistakes, nil
	}
	return f, nil, nil
}

func readUpTo(path string, size int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, size+1))
	if err == nil && int64(len(text)) > size {
		err = fmt.Errorf("it has more than %d bytes", size)
	}
	return text, err
}
