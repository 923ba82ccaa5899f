package command

import (
	"runtime/debug"
	"testing"
)

func TestBuild(t *testing.T) {
	if got := revision([]debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "0a1b"}}); got != "0a1b" {
		t.Errorf("the revision is %q", got)
	}
	for want, b := range map[string]Build{
		"v0.1.0 (commit 0a1b2c3d4e5f, go1.26.8 linux/arm64)": {"v0.1.0", "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567", "go1.26.8", "linux", "arm64"},
		"v0.1.0 (go1.26.8 darwin/arm64)":                     {"v0.1.0", "", "go1.26.8", "darwin", "arm64"},
	} {
		if got := b.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
