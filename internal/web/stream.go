package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/agentteammail/atm/internal/room"
	"github.com/agentteammail/atm/wire"
)

const (
	gather    = 150 * time.Millisecond // changes within it are one event
	keepAlive = 30 * time.Second
)

// stream sends a browser an event for each change, with the version of the room's snapshot and the names of the agents
// whose screens have changed since the last event. The pages then load what they show. All pages of a browser share one
// connection. A page of an earlier server at this address is refused: its version says nothing here.
func (s *server) stream(w http.ResponseWriter, r *http.Request) {
	if !isSame(r.FormValue("csrf"), s.CSRF) {
		refuse(w, http.StatusGone, "this page comes from an earlier server: reload it")
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, "retry: 1000\n\n")
	for known := map[wire.Name]*room.Screen{}; ; {
		now, newer := s.Snapshot()
		screens := []wire.Name{}
		for _, m := range now.Members {
			if now.Screens[m.Name] != known[m.Name] {
				screens = append(screens, m.Name)
			}
		}
		known = now.Screens
		data, _ := json.Marshal(map[string]any{"version": now.Version, "screens": screens})
		fmt.Fprintf(w, "data: %s\n\n", data)
		http.NewResponseController(w).Flush()
		select {
		case <-newer:
		case <-time.After(keepAlive):
		case <-r.Context().Done():
			return
		}
		time.Sleep(gather)
	}
}
