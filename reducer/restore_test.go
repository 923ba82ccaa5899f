package reducer

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// fill puts something into everything that a snapshot holds.
func fill(v reflect.Value) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Date(2026, 5, 1, 12, 0, 0, 123456789, time.UTC)))
		return
	case time.Duration:
		v.SetInt(int64(7 * time.Millisecond))
		return
	case json.RawMessage:
		v.SetBytes([]byte(`["yes"]`))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x\n\"é<" + v.Type().Name())
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(-3)
	case reflect.Uint64:
		v.SetUint(1<<48 - 7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	default:
		panic(v.Type().String())
	}
}

// TestRestoredWhole: no member that is written is forgotten when it is read.
func TestRestoredWhole(t *testing.T) {
	var s State
	fill(reflect.ValueOf(&s).Elem())
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	got, err := restored(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, got, cmpopts.IgnoreUnexported(State{})); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{
		"", "[]", "3", `{"seq":-1}`, `{"seq":1.0}`, `{"seq":"1"}`, `{"team":3}`, `{"turns":{}}`, `{"turns":[3]}`, `{"turns":[null]}`, `{"run":[]}`,
		`{"run":{"code":true}}`, `{"heard":"2026-05-01T12:00:00+02:00"}`, `{"heard":"2026-05-01T1:00:00Z"}`, `{"heard":"2026-05-01T12:00:00,5Z"}`,
		`{"heard":3}`, `{"recent":"AAA"}`, `{"recent":"AAAA"}`, `{"recent":["a"]}`, `{"turns":[{"own":1}]}`, `{"dropped":3}`, "{\"team\":\"\xff\"}",
	} {
		if _, err := restored([]byte(bad)); err == nil {
			t.Errorf("%s: taken", bad)
		}
	}
	if s, err := restored([]byte(`{"seq":1,"run":null,"turns":null,"heard":null,"team":null,"more":[{}]}`)); err != nil || !cmp.Equal(s, State{Seq: 1}, cmpopts.IgnoreUnexported(State{})) {
		t.Error(s, err)
	}
	if _, err := restored([]byte(strings.Repeat(`{"turns":[`, 9))); err == nil {
		t.Error("a torn one was taken")
	}
}

// BenchmarkRestored reads a state.json as large as they become.
func BenchmarkRestored(b *testing.B) {
	var s State
	fill(reflect.ValueOf(&s).Elem())
	s.Recent = make(marks, keptRecent)
	data, _ := json.Marshal(s)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := restored(data); err != nil {
			b.Fatal(err)
		}
	}
}
