package command

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// commit is set by the linker: -X github.com/agentteammail/atm/cmd/internal/cli/command.commit=HASH.
var commit string

// Version returns the version that the linker set or, after `go install`, the module's.
func Version(linked string) string {
	if linked != "dev" {
		return linked
	}
	info, _ := debug.ReadBuildInfo()
	if info.Main.Version == "" || info.Main.Version == "(devel)" {
		return linked
	}
	return info.Main.Version
}

// Build says what the running program was built from, and with what.
type Build struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"` // "": not known, as after go install of a version
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// BuildOf returns the Build of the running program, whose version is known.
func BuildOf(version string) Build {
	b := Build{version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH}
	if b.Commit == "" {
		info, _ := debug.ReadBuildInfo()
		b.Commit = revision(info.Settings)
	}
	return b
}

// revision returns the commit that Go recorded, if it built in a checkout.
func revision(settings []debug.BuildSetting) string {
	for _, s := range settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}

func (b Build) String() string {
	text := fmt.Sprintf("%s %s/%s", b.Go, b.OS, b.Arch)
	if b.Commit != "" {
		text = fmt.Sprintf("commit %.12s, %s", b.Commit, text)
	}
	return fmt.Sprintf("%s (%s)", b.Version, text)
}
