package wire

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

var validCases = []string{
	``, ` `, `{}`, `[]`, ` { } `, `[1,2]`, `[1,]`, `{"a":1,}`, `{"a"}`, `{"a":}`, `{a:1}`, `{"a":1 "b":2}`, `{,}`, `[,]`, `{}{}`, `{} x`,
	`"x"`, `"x`, `"\u12G4"`, `"\u12"`, `"\ud800"`, `"\x"`, `"\"`, "\"\x00\"", "\"\x1f\"", "\"\x7f\"", "\"\n\"", "\"\xff\"", `"\/\b\f\n\r\t\\\""`,
	`0`, `-0`, `-`, `01`, `1.`, `.5`, `1.5`, `1e5`, `1E+5`, `1e-`, `1e`, `-1.25e+10`, `+1`, `1.e5`, `0x10`, `1 2`, `Infinity`, `NaN`, `-a`,
	`true`, `false`, `null`, `tru`, `nul`, `True`, `truefalse`, `[true,false,null]`,
	"\ufeff{}", "{\"a\":\u00a01}", "{}\x00", "\t{\r\n}\n",
	strings.Repeat("[", 9999) + strings.Repeat("]", 9999), strings.Repeat("[", 10000) + strings.Repeat("]", 10000),
	strings.Repeat("[", 10001) + strings.Repeat("]", 10001), strings.Repeat(`{"a":`, 10001) + "1" + strings.Repeat("}", 10001),
	`[{"a":[1,{"b":"c"}]},"d"]`, `{"a":{"b":[}]}`, `[}`, `{]`, `[1}`, `{"a":1]`,
}

// What is JSON is what encoding/json says it is.
func TestValidJSON(t *testing.T) {
	for _, s := range validCases {
		if got, want := validJSON([]byte(s)), json.Valid([]byte(s)); got != want {
			t.Errorf("%.60q: %v", s, got)
		}
	}
}

func FuzzValidJSON(f *testing.F) {
	for _, s := range validCases {
		if len(s) < 1000 {
			f.Add([]byte(s))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if got, want := validJSON(data), json.Valid(data); got != want {
			t.Fatalf("%q: %v, and encoding/json says %v", data, got, want)
		}
	})
}

func BenchmarkValidJSON(b *testing.B) {
	data := bytes.Repeat([]byte(`{"seq":1,"at":"2026-11-20T09:46:47.635359455Z","kind":"turn_started","wire":{"a":[1,2.5,true]}},`), 10)
	data = append(append([]byte{'['}, data[:len(data)-1]...), ']')
	b.Run("ours", func(b *testing.B) {
		for b.Loop() {
			validJSON(data)
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		for b.Loop() {
			json.Valid(data)
		}
	})
}
