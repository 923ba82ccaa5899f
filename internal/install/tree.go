package install

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/confedit"
)

// Edits of a JSON sheet. Each reads the text anew, so that offsets hold; files
// are small.

// root is the document, which has been understood before.
func (s *sheet) root() *confedit.JSON {
	if confedit.Blank(s.text.Bytes()) {
		text := s.text.Bytes()
		s.text.Apply(confedit.Edit{{At: 0, Del: len(text), Ins: "{}\n"}})
	}
	doc, err := confedit.ParseJSON(s.text.Bytes(), s.format.dialect())
	if err != nil {
		panic(broken{s.path, err})
	}
	return doc
}

// broken is the panic of an edit that left what cannot be understood. Nothing
// is written then: see once.
type broken struct {
	path string
	err  error
}

// place names where something stands, for records and people.
func place(keys []string) string { return strings.Join(keys, ".") }

// container gives the object or list at a path, and makes it and what it is in.
func (s *sheet) container(kind confedit.Kind, keys ...string) (*confedit.JSON, *confedit.Value, error) {
	for {
		doc := s.root()
		v := doc.Root
		for i, k := range keys {
			want := confedit.Object
			if i == len(keys)-1 {
				want = kind
			}
			child := v.Get(k)
			if child == nil {
				var empty any = confedit.Map{}
				if want == confedit.Array {
					empty = confedit.List{}
				}
				s.text.Apply(doc.Set(v, k, empty))
				s.new.make(place(keys[:i+1]))
				v = nil
				break
			}
			if child.Kind != want {
				return nil, nil, wrongKind(keys[:i+1], child.Kind, want)
			}
			v = child
		}
		if v != nil {
			return doc, v, nil
		}
	}
}

func wrongKind(keys []string, is, want confedit.Kind) error {
	return fmt.Errorf("%s is %s, not %s; the file was left alone", place(keys), is, want)
}

// look gives what stands at a path, nil where nothing does.
func (s *sheet) look(keys ...string) (*confedit.JSON, *confedit.Value) {
	if confedit.Blank(s.text.Bytes()) {
		return nil, nil
	}
	doc := s.root()
	return doc, doc.Root.At(keys...)
}

// isFlag reports whether a member is just this word.
func (s *sheet) isFlag(at, word string) bool {
	_, v := s.look(strings.Split(at, ".")...)
	return v != nil && string(s.text.Bytes()[v.Start:v.End]) == word
}

// addStrings puts into a list what of want is not in it.
func (s *sheet) addStrings(want []string, keys ...string) (added []string, err error) {
	at := place(keys)
	for _, w := range want {
		doc, list, err := s.container(confedit.Array, keys...)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(list.Elems, func(e *confedit.Value) bool { return e.Kind == confedit.String && e.Text == w }) {
			s.text.Apply(doc.Append(list, w))
			s.new.Values[at] = union(s.new.Values[at], []string{w})
			added = append(added, w)
		}
	}
	return added, nil
}

// dropStrings takes values of ours out of a list, and the containers with it
// that are empty then.
func (s *sheet) dropStrings(values []string, keys ...string) (dropped []string) {
	for {
		doc, list := s.look(keys...)
		if list == nil || list.Kind != confedit.Array {
			return dropped
		}
		i := slices.IndexFunc(list.Elems, func(e *confedit.Value) bool {
			return e.Kind == confedit.String && slices.Contains(values, e.Text)
		})
		if i < 0 {
			break
		}
		dropped = append(dropped, list.Elems[i].Text)
		s.text.Apply(doc.Remove(list, i))
	}
	if len(dropped) > 0 {
		s.prune(keys...)
	}
	return dropped
}

// setString gives a member a string.
func (s *sheet) setString(value string, keys ...string) (changed bool, err error) {
	last := len(keys) - 1
	doc, obj, err := s.container(confedit.Object, keys[:last]...)
	if err != nil {
		return false, err
	}
	at := place(keys)
	switch old := obj.Get(keys[last]); {
	case old == nil:
	case old.Kind != confedit.String:
		return false, wrongKind(keys, old.Kind, confedit.String)
	case old.Text == value:
		return false, nil
	default:
		if v, ok := s.old.values(at); !ok || len(v) == 0 {
			s.new.Was[at] = old.Text
		}
	}
	s.text.Apply(doc.Set(obj, keys[last], value))
	s.new.Values[at] = []string{value}
	return true, nil
}

// dropString takes back what setString did, unless somebody else has changed
// the member since.
func (s *sheet) dropString(keys ...string) bool {
	at := place(keys)
	values, _ := s.old.values(at)
	doc, v := s.look(keys...)
	if v == nil || v.Kind != confedit.String || !slices.Contains(values, v.Text) {
		return false
	}
	if was, ok := s.old.Was[at]; ok {
		s.text.Apply(doc.Replace(v, was))
		return true
	}
	s.dropMember(keys...)
	return true
}

// dropMember takes a member out, and the objects with it that are empty then.
func (s *sheet) dropMember(keys ...string) {
	last := len(keys) - 1
	doc, obj := s.look(keys[:last]...)
	for i := len(obj.Members) - 1; i >= 0; i-- {
		if obj.Members[i].Key == keys[last] {
			s.text.Apply(doc.Remove(obj, i))
			break
		}
	}
	s.prune(keys[:last]...)
}

// prune takes out a container that is empty, if we made it, and what it was in
// likewise.
func (s *sheet) prune(keys ...string) {
	if len(keys) == 0 || !s.old.made(place(keys)) {
		return
	}
	_, v := s.look(keys...)
	if v != nil && len(v.Elems)+len(v.Members) == 0 && (v.Kind == confedit.Array || v.Kind == confedit.Object) {
		s.dropMember(keys...)
	}
}
