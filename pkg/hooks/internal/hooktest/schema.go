package hooktest

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// Validator compiles one of the schemas that workers are written against.
func Validator(t testing.TB, text []byte) func(line []byte) error {
	t.Helper()
	s, err := jsonschema.CompileString("worker.json", string(text))
	if err != nil {
		t.Fatal(err)
	}
	return func(line []byte) error {
		in := json.NewDecoder(bytes.NewReader(line))
		in.UseNumber()
		var v any
		if err := in.Decode(&v); err != nil {
			return err
		}
		return s.Validate(v)
	}
}
