package agents

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/agentteammail/atm/internal/tomlfile"
)

//go:embed *.toml
var embedded embed.FS

// MaxSize is how large a file may be.
const MaxSize = tomlfile.MaxSize

// An Entry is a driver that Load has found.
type Entry struct {
	Name      string
	Path      string   // the file; "": built in
	Overrides bool     // the file takes the place of a built-in one
	File      *File    // to be used; nil: none, for it has mistakes
	Mistakes  []string // of the file at Path, which is not used then
	Err       error    // why it could not be read
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

// isName reports whether a driver may have a name. "auto" stands for choosing one.
func isName(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	return name != "auto" && name != "" && len(name) < 64 && strings.Contains(letters, name[:1]) && strings.Trim(name, letters+"0123456789_-") == ""
}

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

// None is the driver of a program that nobody has described.
const None = "none"

// isOurs reports whether the driver is for what atm itself counts on: a shell, an unknown program, or a protocol.
func (f *File) isOurs() bool { return f.Plain || f.Protocol != "" }

// Fault says why the file at Path is not used, and what is used instead; nil: it is used.
func (e *Entry) Fault() error {
	err := e.Err
	if len(e.Mistakes) > 0 {
		err = fmt.Errorf("%s: %s", e.Path, tomlfile.Mistakes(e.Mistakes))
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
func ReadFile(path string) (*File, []string, error) {
	name := strings.TrimSuffix(filepath.Base(path), ".toml")
	if !isName(name) {
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
	if f.Protocol != "" {
		mistakes = append(mistakes, "protocol: it is for the built-in driver acp: run your program with --driver acp")
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
