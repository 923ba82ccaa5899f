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
	gather    = 150 * time.Millisecond // what changes within it is told at once
	keepAlive = 30 * time.Second
)

// stream tells a browser that something has changed, as server-sent events, and its pages fetch what they show
// of it. An event says which snapshot of the room is the newest, and whose screens have changed since the last
// event. A browser has one connection, which its pages share.
func (s *server) stream(w http.ResponseWriter, r *http.Request) {
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
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-newer:
		case <-time.After(keepAlive):
		case <-r.Context().Done():
			return
		}
		time.Sleep(gather)
	}
}
