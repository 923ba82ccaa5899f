//go:build linux || darwin

package acp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/coder/acp-go-sdk"
)

// maxFile is how large a file may be that the agent has read or replaced for it.
const maxFile = 4 << 20

// local is a path of the agent's within the member's directory. os.Root follows its links, and none out of it.
func (f *front) local(path string) (string, error) {
	for _, dir := range []string{f.Dir, f.realIn} {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsAbs(path) && filepath.IsLocal(rel) {
			return rel, nil
		}
	}
	return "", fmt.Errorf("it is not in %s", f.Dir)
}

func refusal(what string, err error) error {
	e := acp.NewInvalidParams(map[string]any{"error": fmt.Sprintf("%s: %v", what, err)})
	if errors.Is(err, fs.ErrNotExist) {
		e.Code, e.Message = -32002, "Resource not found"
	}
	return e
}

// regular is a file of the agent's within the member's directory, if it is one: a pipe would keep us waiting.
func (f *front) regular(path string) (rel string, err error) {
	if rel, err = f.local(path); err != nil {
		return "", err
	}
	info, err := f.files.Stat(rel)
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = errors.New("no file")
	case info.Size() > maxFile:
		err = fmt.Errorf("%d bytes are more than %d", info.Size(), maxFile)
	}
	return rel, err
}

// ReadTextFile reads a file, or some of its lines.
func (f *front) ReadTextFile(_ context.Context, p acp.ReadTextFileRequest) (r acp.ReadTextFileResponse, err error) {
	rel, err := f.regular(p.Path)
	var data []byte
	if err == nil {
		data, err = f.files.ReadFile(rel)
	}
	if err == nil && !utf8.Valid(data) {
		err = errors.New("it is not UTF-8 text")
	}
	if err != nil {
		return r, refusal("read "+p.Path, err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	lines = lines[min(max(value(p.Line)-1, 0), len(lines)):]
	if p.Limit != nil {
		lines = lines[:min(max(*p.Limit, 0), len(lines))]
	}
	r.Content = strings.Join(lines, "")
	return r, nil
}

// WriteTextFile writes a file, and makes the directories that it needs.
func (f *front) WriteTextFile(_ context.Context, p acp.WriteTextFileRequest) (r acp.WriteTextFileResponse, err error) {
	rel, err := f.regular(p.Path)
	if errors.Is(err, fs.ErrNotExist) {
		err = f.files.MkdirAll(filepath.Dir(rel), 0o755)
	}
	if err == nil {
		err = f.files.WriteFile(rel, []byte(p.Content), 0o644)
	}
	if err != nil {
		err = refusal("write "+p.Path, err)
	}
	return r, err
}
