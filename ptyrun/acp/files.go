//go:build linux || darwin

package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/coder/acp-go-sdk"
)

// maxFile is the limit in bytes for a file that the agent reads or replaces.
const maxFile = 4 << 20

// local makes a path relative to the member's directory. The error says that it is outside. os.Root checks the links.
func (f *front) local(path string) (string, error) {
	for _, dir := range []string{f.Dir, f.realDir} {
		if rel, _ := filepath.Rel(dir, path); filepath.IsLocal(rel) { // "" for a relative path is not
			return rel, nil
		}
	}
	return "", fmt.Errorf("it is outside %s", f.Dir)
}

// invalidParams is the error response for a file or terminal request.
func invalidParams(operation string, err error) error {
	e := acp.NewInvalidParams(map[string]any{"error": fmt.Sprintf("%s: %v", operation, err)})
	if errors.Is(err, fs.ErrNotExist) {
		e.Code, e.Message = -32002, "Resource not found"
	}
	return e
}

// regular is local for regular files of at most maxFile bytes: a pipe could block.
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
		err = fmt.Errorf("it has %d bytes; the limit is %d", info.Size(), maxFile)
	}
	return rel, err
}

// ReadTextFile reads a file or some of its lines.
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
		return r, invalidParams("read "+p.Path, err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	lines = lines[min(max(value(p.Line)-1, 0), len(lines)):]
	if p.Limit != nil {
		lines = lines[:min(max(*p.Limit, 0), len(lines))]
	}
	r.Content = strings.Join(lines, "")
	return r, nil
}

// WriteTextFile writes a file and makes its directories.
func (f *front) WriteTextFile(_ context.Context, p acp.WriteTextFileRequest) (r acp.WriteTextFileResponse, err error) {
	rel, err := f.regular(p.Path)
	if errors.Is(err, fs.ErrNotExist) {
		err = f.files.MkdirAll(filepath.Dir(rel), 0o755)
	}
	if err == nil {
		err = f.files.WriteFile(rel, []byte(p.Content), 0o644)
	}
	if err != nil {
		err = invalidParams("write "+p.Path, err)
	}
	return r, err
}

// HandleExtensionMethod writes an empty file.
func (f *front) HandleExtensionMethod(ctx context.Context, method string, params json.RawMessage) (any, error) {
	var p acp.WriteTextFileRequest
	json.Unmarshal(params, &p)
	if method != emptyFile {
		return nil, acp.NewMethodNotFound(method)
	}
	return f.WriteTextFile(ctx, p)
}
