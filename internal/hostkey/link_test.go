package hostkey

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A link is known from the root that made it only, and counts for mail once there is one back.
func TestLinks(t *testing.T) {
	d := Dir(t.TempDir())
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(d.AddLink("/app/.atm", Link{"web", "/web/.atm"}))
	links, err := d.Links("/app/.atm")
	if err != nil || len(links) != 1 || links[0].Name != "web" || links[0].Root != "/web/.atm" {
		t.Fatalf("%+v, %v", links, err)
	}
	if of, err := d.Links("/web/.atm"); err != nil || len(of) != 0 {
		t.Errorf("the other root has %+v, %v", of, err)
	}
	if _, err := d.Back("/app/.atm", links[0]); !errors.Is(err, ErrNoLink) {
		t.Errorf("no link back: %v", err)
	}
	must(d.AddLink("/web/.atm", Link{"app", "/app/.atm"}))
	back, err := d.Back("/app/.atm", links[0])
	if err != nil || back.Name != "app" {
		t.Errorf("%+v, %v", back, err)
	}

	file := filepath.Join(d.links("/app/.atm"), "docs")
	must(os.WriteFile(file, []byte(`{"name":"docs"}`), 0o600))
	if links, err = d.Links("/app/.atm"); err == nil || len(links) != 1 {
		t.Errorf("with a damaged one: %+v, %v", links, err)
	}
	must(d.RemoveLink("/app/.atm", "docs"))
	must(d.RemoveLink("/app/.atm", "web"))
	if links, err = d.Links("/app/.atm"); err != nil || len(links) != 0 {
		t.Errorf("removed: %+v, %v", links, err)
	}
	if d.RemoveLink("/app/.atm", "../x") == nil {
		t.Error("removed a file elsewhere")
	}
}
