package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The pictures of the documents are as old as what they show: docs/pictures.sum has what that was when they were made.
func TestPictures(t *testing.T) {
	t.Parallel()
	top := filepath.Join("..", "..")
	sums, err := os.ReadFile(filepath.Join(top, "docs", "pictures.sum"))
	must(t, err)
	for _, line := range strings.Split(strings.TrimSpace(string(sums)), "\n") {
		_, name, _ := strings.Cut(line, "  ")
		text, err := os.ReadFile(filepath.Join(top, filepath.FromSlash(name)))
		if now := fmt.Sprintf("%x  %s", sha256.Sum256(text), name); err != nil || now != line {
			t.Errorf("%s has changed since the pictures were made: make pictures", name)
		}
	}
}
