package backup

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/wire"
)

// A backup may come from anybody. What is restored takes about as much as the file has bytes, and little memory.
const (
	maxName    = 4096 // bytes of a path
	maxPending = 64   // files that are synced together
)

// isMessage matches the path of a message, below a team's directory.
var isMessage = onUse(`^([a-z0-9_-]+/inbox|\.bridge/[^/]+)/(new|held/[^/]+|cur|done/[^/]+|withdrawn)/[^/]+\.json$`)

type restorer struct {
	ctx      context.Context
	dir      *durable.Root
	total    Size
	progress func(messages int)

	pending []*os.File      // that are not synced yet
	made    map[string]bool // the directories
}

// Restore restores a backup as a root of that name in a directory. If aside is set, the root that has the name is renamed
// to it first; else only an empty directory may have the name, or the error is fs.ErrExist. The root appears whole: after
// an error, or if Restore is killed, nothing of it is there, and a root that was set aside has either of its two names.
// Nothing in the new root acts until somebody has accepted it. progress is called with the number of its messages.
func Restore(ctx context.Context, in *durable.Root, name, aside string, from io.ReadSeeker, progress func(messages int)) (total Size, err error) {
	temp := "." + name + "."
	for _, killed := range in.Stale(".", time.Now().Add(-keep.TempAge)) {
		if strings.HasPrefix(killed, temp) {
			in.RemoveAll(killed)
		}
	}
	temp += rand.Text() + ".making"
	defer in.RemoveAll(temp)
	if total, err = restoreAs(ctx, in, temp, from, progress); err != nil {
		return total, err
	}
	if aside != "" {
		err = in.Move(name, aside)
	} else if in.IsDir(name) == nil {
		in.Remove(name) // if it is empty
	}
	if err != nil {
		return total, err
	}
	if err = in.Move(temp, name); err != nil && aside != "" {
		err = errors.Join(err, in.Move(aside, name))
	}
	if err == nil {
		if err = in.Sync("."); err != nil {
			err = fmt.Errorf("%s is there, but may not survive a power cut: %w", name, err)
		}
	}
	return total, err
}

// restoreAs writes a root under a name that nobody looks for.
func restoreAs(ctx context.Context, in *durable.Root, temp string, from io.ReadSeeker, progress func(messages int)) (Size, error) {
	r := &restorer{ctx: ctx, progress: progress, made: map[string]bool{".": true}}
	err := in.Mkdir(temp)
	if err == nil {
		err = os.Chmod(in.Join(temp), 0o700) // without the group rights of the directory above
	}
	if err == nil {
		r.dir, err = in.Sub(temp)
	}
	if err != nil {
		return r.total, err
	}
	defer r.dir.Close()                                           // Windows renames no directory that is open
	err = cmp.Or(rootdir.Hide(in.Join(temp)), r.restoreAll(from)) // git shall see nothing of it
	each(r.pending, (*os.File).Close)
	return r.total, cmp.Or(ctx.Err(), err)
}

func (r *restorer) restoreAll(from io.ReadSeeker) error {
	size, err := from.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = from.Seek(0, io.SeekStart)
	}
	files := tar.NewReader(durable.ReadUntil(r.ctx, from))
	if err == nil {
		err = r.restoreFormat(files)
	}
	for err == nil {
		var h *tar.Header
		if h, err = files.Next(); err == nil {
			size -= h.Size
			err = r.restoreEntry(h, files, size >= 0)
		} else if err != io.EOF {
			err = fmt.Errorf("%w: %w", ErrNotBackup, err)
		}
	}
	if err == io.EOF {
		err = checkEnd(from)
	}
	if err == nil {
		err = cmp.Or(r.write(rootdir.RestoredFile, strings.NewReader("")), r.sync())
	}
	if err == nil {
		err = each(slices.Collect(maps.Keys(r.made)), r.dir.Sync)
	}
	return err
}

// ErrNotBackup says that a file is not a backup, or that a part of it is missing or was changed.
var ErrNotBackup = errors.New("not an atm backup, or a damaged one")

// restoreFormat restores the first file of a backup.
func (r *restorer) restoreFormat(files *tar.Reader) error {
	h, err := files.Next()
	if err != nil || h.Name != rootdir.FormatFile {
		return fmt.Errorf("%w: it does not begin with %s", ErrNotBackup, rootdir.FormatFile)
	}
	format, _ := io.ReadAll(io.LimitReader(files, 64))
	if err = rootdir.CheckFormat(format); err != nil {
		return fmt.Errorf("the backup has %w", err)
	}
	return r.write(rootdir.FormatFile, bytes.NewReader(format))
}

// checkEnd returns an error unless a file ends as a tar does, in zeros: else a backup that was cut off between two files
// would pass for a whole one.
func checkEnd(from io.ReadSeeker) error {
	_, err := from.Seek(-1024, io.SeekEnd)
	end, bad := io.ReadAll(from)
	if err = cmp.Or(err, bad); err != nil || len(bytes.Trim(end, "\x00")) > 0 {
		err = fmt.Errorf("%w: it has no end", ErrNotBackup)
	}
	return err
}

// restoreEntry restores a file or a directory, and refuses what no backup has.
func (r *restorer) restoreEntry(h *tar.Header, content io.Reader, isCredible bool) error {
	name := strings.TrimSuffix(h.Name, "/")
	if len(name) > maxName {
		return fmt.Errorf("%w: a name is too long", ErrNotBackup)
	}
	team, below, _ := strings.Cut(name, "/")
	isDir := h.Typeflag == tar.TypeDir
	isOurs := fs.ValidPath(name) && wire.IsName(team) && (below == "" && isDir || belongs(below)) && (isDir || h.Typeflag == tar.TypeReg)
	var err error
	switch {
	case !isOurs:
		err = fmt.Errorf("%w: a backup has no such file", ErrNotBackup)
	case !isCredible:
		err = fmt.Errorf("%w: it is larger than the backup", ErrNotBackup)
	case isDir:
		err = r.makeDir(name)
	default:
		err = cmp.Or(r.makeDir(path.Dir(name)), r.write(name, content))
		r.total.Bytes += h.Size
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("%w: %w", ErrNotBackup, err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", letter.Escape(name), err)
	}
	if !isDir && isMessage().MatchString(below) {
		r.total.Messages++
		r.progress(r.total.Messages)
	}
	return nil
}

func (r *restorer) makeDir(name string) error {
	if r.made[name] {
		return nil
	}
	for dir := name; !r.made[dir]; dir = path.Dir(dir) {
		r.made[dir] = true
	}
	return r.dir.MkdirAll(name)
}

func (r *restorer) write(name string, content io.Reader) error {
	f, err := r.dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if r.pending = append(r.pending, f); err == nil && len(r.pending) >= maxPending {
		err = r.sync()
	}
	return err
}

// sync syncs the files that were written.
func (r *restorer) sync() error {
	all := r.pending
	r.pending = nil
	return each(all, func(f *os.File) error { return cmp.Or(r.dir.SyncFile(f), f.Close()) })
}

// each calls f for all side by side, and returns one of the errors.
func each[T any](all []T, f func(T) error) (err error) {
	var mu sync.Mutex
	maildir.InParallel(all, func(x T) {
		if failed := f(x); failed != nil {
			mu.Lock()
			defer mu.Unlock()
			err = failed
		}
	})
	return err
}
