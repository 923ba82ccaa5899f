package mail

import "testing"

// An attachment is saved under its name, unless that leads elsewhere, is hidden, is a flag, or is looked for by programs.
func TestSafeName(t *testing.T) {
	for name, want := range map[string]string{
		"build.log": "build.log", "a-b.tar.gz": "a-b.tar.gz", "README.md": "README.md", "makefile.txt": "makefile.txt",
		"": "attachment", "..": "_", ".envrc": "_envrc", "-rf": "_rf", "--help": "_help",
		"../../etc/passwd": "__.._etc_passwd", `C:\x`: "C__x", "a\nb": "a_b",
		"CLAUDE.md": "_CLAUDE.md", "claude.local.md": "_claude.local.md", "Agents.md": "_Agents.md", "GNUmakefile": "_GNUmakefile", "Makefile": "_Makefile", "justfile": "_justfile",
		"conftest.py": "_conftest.py", "package.json": "_package.json", "claudette.md": "claudette.md",
	} {
		if got := safeName(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
