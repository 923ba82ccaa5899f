package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// printTable prints the cases that were measured, as Markdown.
func printTable(w io.Writer, machine string, cases []*Case) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n| what | against | ours | reference | ratio | goal | |\n|---|---|--:|--:|--:|--:|---|\n", machine)
	for _, c := range cases {
		if len(c.results) == 0 {
			continue
		}
		r, verdict := c.best(), ""
		if c.Goal.gated() {
			verdict = "pass"
			if !c.met() {
				verdict = "**miss**"
			}
			if n := len(c.results); n > 1 {
				verdict += fmt.Sprintf(" (%d tries)", n)
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %.2f | %s | %s |\n",
			c.Name, c.Against, precision(r.ours), precision(r.reference), r.ratio, c.Goal, verdict)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// count is a number for people: 100,000.
func count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// machine says on what was measured.
func machine(dir string) string {
	parts := []string{fmt.Sprintf("%d cores", runtime.NumCPU())}
	system := runtime.GOOS + "/" + runtime.GOARCH
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		system += " " + strings.TrimSpace(string(release))
	}
	parts = append(parts, system)
	if fs := fileSystem(dir); fs != "" {
		parts = append(parts, fs)
	}
	return strings.Join(append(parts, runtime.Version(), time.Now().Format(time.DateOnly)), ", ")
}

// fileSystem is the type and the mount options of the file system that dir, a
// path without links, lies on; "" where that cannot be known.
func fileSystem(dir string) string {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	found, at := "", ""
	for line := range strings.Lines(string(mounts)) {
		// 36 35 98:0 / /mnt rw,noatime master:1 - ext4 /dev/root rw,errors=continue
		before, after, _ := strings.Cut(line, " - ")
		f, kind := strings.Fields(before), strings.Fields(after)
		if len(f) < 6 || len(kind) < 3 {
			continue
		}
		if mount := f[4]; len(mount) >= len(at) && (mount == "/" || dir == mount || strings.HasPrefix(dir, mount+"/")) {
			options := strings.TrimPrefix(strings.TrimPrefix(kind[2], "rw"), ",")
			if options != "" {
				options = "," + options
			}
			found, at = fmt.Sprintf("%s (%s%s)", kind[0], f[5], options), mount
		}
	}
	return found
}
