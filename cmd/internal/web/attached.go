package web

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir/filestore"
	"github.com/agentteammail/atm/teams"
)

// attached opens the files that come with a form, and writes them to its hash, too.
func attached(r *http.Request, hash io.Writer) (files []teams.File, closeFiles func(), err error) {
	var open []io.Closer
	closeFiles = func() {
		for _, f := range open {
			f.Close()
		}
	}
	if r.MultipartForm == nil {
		return nil, closeFiles, nil
	}
	for _, part := range r.MultipartForm.File["file"] {
		f, err := part.Open()
		if err != nil {
			return nil, closeFiles, err
		}
		open, files = append(open, f), append(files, teams.File{Name: strings.ToValidUTF8(part.Filename, "_"), Content: f})
		fmt.Fprintf(hash, "&%q %d ", part.Filename, part.Size)
		if _, err := io.Copy(hash, f); err != nil {
			return nil, closeFiles, err
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return nil, closeFiles, err
		}
	}
	return files, closeFiles, nil
}

// download sends a file that is attached to a message. A browser saves it and never shows it: a page or a picture that
// somebody sent would be one of this site.
func (s *server) download(w http.ResponseWriter, r *http.Request) {
	fail := func(err error) {
		p := s.newPage("error")
		p.write(w, r, p.fail(err))
	}
	it, box, err := s.Scope.Find(r.PathValue("id"))
	if err != nil {
		fail(err)
		return
	}
	n, err := strconv.Atoi(r.PathValue("number"))
	if err != nil || n < 1 || n > len(it.Attachments) {
		fail(failure.NotFound("%s has no attachment %s", it.ID.Short(6), letter.Quote(r.PathValue("number"), 20)))
		return
	}
	a := it.Attachments[n-1]
	file, err := filestore.Open(box.Store().Dir(), a)
	if err != nil {
		fail(err)
		return
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil { // so that a browser knows when it has not got all
		w.Header().Set("Content-Length", fmt.Sprint(info.Size()))
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": downloadName(n, a.Name)}))
	limits := http.NewResponseController(w)
	for err == nil {
		limits.SetWriteDeadline(time.Now().Add(writeTimeout))
		_, err = io.CopyN(w, file, 1<<20)
	}
}

// downloadName is a name that leads into no other directory, is hidden nowhere, and is none that a program obeys.
func downloadName(n int, name string) string {
	return fmt.Sprintf("%d-%s", n, notInNames().ReplaceAllString(letter.Clip(letter.Escape(name), 80), "_"))
}

var notInNames = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[\x00-\x1f/\\:"<>|?*]`) })
