package codex

import (
	"path/filepath"
	"testing"
)

func TestServerSocket(t *testing.T) {
	t.Parallel()
	for home, want := range map[string]string{"X=1": "/home/dev/.codex", "CODEX_HOME=/else": "/else"} {
		path, err := socket([]string{"HOME=/home/dev", home})
		if err != nil || path != filepath.Join(want, "app-server-control", "app-server-control.sock") {
			t.Error(path, err)
		}
	}
	if path, err := socket(nil); err == nil {
		t.Error(path)
	}
}
