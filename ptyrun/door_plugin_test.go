package ptyrun

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/agentteammail/atm/ptyrun/control"
)

// A text is the plugin's from when it takes it on, and only until then the runner's.
func TestPluginDoor(t *testing.T) {
	t.Parallel()
	const text = "[atm 9f3a1c from alice, now]\n  ping\n[/atm]"
	peek, take := control.PluginRequest{}, control.PluginRequest{Takes: true}
	shown, other := control.PluginRequest{Shown: "> " + text}, control.PluginRequest{Shown: "[atm 000000 from alice, now]"}
	for name, c := range map[string]struct {
		asks       []control.PluginRequest
		got        string // by all
		err        string
		isReceived bool
	}{
		"nobody asks":   {nil, "", "the plugin did not ask for it", false},
		"it looks":      {[]control.PluginRequest{peek, shown}, "", "the plugin did not ask for it", false},
		"it takes it":   {[]control.PluginRequest{peek, take, take}, text, "", false},
		"another":       {[]control.PluginRequest{take, other}, text, "", false},
		"the model has": {[]control.PluginRequest{take, shown, shown}, text, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &pluginDoor{&plugin{}, newRig(t).bob}
			must(t, errors.Join(d.box.Store().Dir().Mkdir("bob/run"), d.box.Store().Dir().Mkdir("bob"+pushDir)))
			if d.look(t.Context(), nil) == nil {
				t.Error("it is open before anybody has asked")
			}
			d.answer(peek)
			must(t, d.look(t.Context(), nil))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			done := make(chan error)
			go func() { done <- d.push(ctx, pushText{text: text}) }()
			for d.stageNow() != pushWanted {
				time.Sleep(time.Millisecond)
			}
			got := ""
			for _, ask := range c.asks {
				got += d.answer(ask).Text
			}
			cancel()
			failed := ""
			if err := <-done; err != nil {
				failed = err.Error()
			}
			if got != c.got || failed != c.err || d.isReceived() != c.isReceived {
				t.Errorf("got %q, %q, %v", got, failed, d.isReceived())
			}
			if late := d.answer(take); late.Text != "" || late.Waiting {
				t.Errorf("later it gets %+v", late)
			}
		})
	}
}
