//go:build linux || darwin

package acp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/coder/acp-go-sdk"
)

// maxFile is how large a file may be that the agent has read for it.
const maxFile = 4 << 20

// local is a path of the agent's within the member's directory. os.Root follows its links, and none out of
// it.
func (f *front) local(path string) (string, error) {
	for _, dir := range []string{f.Dir, f.realIn} {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsAbs(path) && filepath.IsLocal(rel) {
			return rel, nil
		}
	}
	return "", fmt.Errorf("%s is not in %s", path, f.Dir)
}

// refusal is an error as the agent gets it.
func refusal(what string, err error) error {
	e := acp.NewInvalidParams(map[string]any{"error": fmt.Sprintf("%s: %v", what, err)})
	if errors.Is(err, fs.ErrNotExist) {
		e.Code, e.Message = -32002, "Resource not found"
	}
	return e
}

// ReadTextFile reads a file, or some of its lines.
func (f *front) ReadTextFile(_ context.Context, p acp.ReadTextFileRequest) (r acp.ReadTextFileResponse, err error) {
	rel, err := f.local(p.Path)
	if err != nil {
		return r, refusal("read", err)
	}
	info, err := f.files.Stat(rel)
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = errors.New("no file")
	case info.Size() > maxFile:
		err = fmt.Errorf("%d bytes are more than %d", info.Size(), maxFile)
	}
	if err != nil {
		return r, refusal("read "+p.Path, err)
	}
	data, err := f.files.ReadFile(rel)
	if err != nil {
		return r, refusal("read "+p.Path, err)
	}
	r.Content = lines(strings.ToValidUTF8(string(data), "\uFFFD"), p.Line, p.Limit)
	return r, nil
}

// lines are at most limit lines of a text from a line on, which counts from 1; nil: all.
func lines(text string, from, limit *int) string {
	all := strings.SplitAfter(text, "\n")
	all = all[min(max(value(from)-1, 0), len(all)):]
	if limit != nil {
		all = all[:min(max(*limit, 0), len(all))]
	}
	return strings.Join(all, "")
}

// WriteTextFile writes a file, and makes the directories that it needs.
func (f *front) WriteTextFile(_ context.Context, p acp.WriteTextFileRequest) (r acp.WriteTextFileResponse, err error) {
	rel, err := f.local(p.Path)
	if err != nil {
		return r, refusal("write", err)
	}
	info, err := f.files.Stat(rel)
	if err == nil && !info.Mode().IsRegular() {
		return r, refusal("write "+p.Path, errors.New("no file"))
	}
	if err := f.files.MkdirAll(filepath.Dir(rel), 0o755); err != nil {
		return r, refusal("write "+p.Path, err)
	}
	if err := f.files.WriteFile(rel, []byte(p.Content), 0o644); err != nil {
		return r, refusal("write "+p.Path, err)
	}
	return r, nil
}
