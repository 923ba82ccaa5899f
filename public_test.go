package layout

import (
	"encoding/json"
	"errors"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// What a package outside cmd and internal has can be used by anybody: no type of an internal package is in it.
func TestPublicPackagesNameNoInternalTypes(t *testing.T) {
	// The Makefile's flags: what is compiled for this serves the other tests as well.
	list := exec.Command("go", "list", "-trimpath", "-buildvcs=false", "-tags=urfave_cli_no_docs", "-export", "-deps", "-json=ImportPath,Export,Name", "./...")
	list.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{} // the file with a package's types
	var public []string
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct{ ImportPath, Export, Name string }
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		if strings.HasPrefix(p.ImportPath, module) && !isInternal(p.ImportPath) && p.Export != "" && p.Name != "main" {
			public = append(public, p.ImportPath)
		}
	}
	gc := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, path := range public {
		p, err := gc.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range p.Scope().Names() {
			if object := p.Scope().Lookup(n); object.Exported() {
				for _, use := range internalTypes(object) {
					if use.where == "Options.Host" { // one part of ptyrun's, for atm's own runner
						continue
					}
					t.Errorf("package %s: %s shows a type of %s", strings.TrimPrefix(path, module), use.where, use.of)
				}
			}
		}
	}
}

func isInternal(path string) bool {
	return slices.Contains(strings.Split(path, "/"), "internal")
}

// use is a place in what a package exports that names a type of an internal package.
type use struct{ where, of string }

// internalTypes lists the types of our internal packages that somebody who uses an object gets to see.
func internalTypes(object types.Object) (found []use) {
	seen := map[types.Type]bool{}
	var look func(where string, t types.Type)
	members := func(where string, t *types.Named) {
		for m := range t.Methods() {
			if m.Exported() {
				look(where+"."+m.Name(), m.Type())
			}
		}
	}
	look = func(where string, t types.Type) {
		if seen[t] {
			return
		}
		if _, isTuple := t.(*types.Tuple); !isTuple {
			seen[t] = true
			defer delete(seen, t)
		}
		switch t := t.(type) {
		case *types.Alias:
			look(where, types.Unalias(t))
		case *types.Named:
			o := t.Obj()
			for a := range t.TypeArgs().Types() {
				look(where, a)
			}
			switch {
			case o.Pkg() == nil || !strings.HasPrefix(o.Pkg().Path(), module):
			case isInternal(o.Pkg().Path()):
				found = append(found, use{where, strings.TrimPrefix(o.Pkg().Path(), module)})
			case o == object || o.Pkg() == object.Pkg() && !o.Exported():
				look(where, t.Underlying())
				members(where, t)
			}
		case *types.Pointer:
			look(where, t.Elem())
		case *types.Slice:
			look(where, t.Elem())
		case *types.Array:
			look(where, t.Elem())
		case *types.Chan:
			look(where, t.Elem())
		case *types.Map:
			look(where, t.Key())
			look(where, t.Elem())
		case *types.Tuple:
			for v := range t.Variables() {
				look(where, v.Type())
			}
		case *types.Signature:
			look(where, t.Params())
			look(where, t.Results())
		case *types.Struct:
			for f := range t.Fields() {
				if f.Exported() || f.Embedded() {
					look(where+"."+f.Name(), f.Type())
				}
			}
		case *types.Interface:
			for m := range t.Methods() {
				look(where+"."+m.Name(), m.Type())
			}
		}
	}
	look(object.Name(), object.Type())
	return found
}
