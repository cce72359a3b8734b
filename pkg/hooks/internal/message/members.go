package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// A member is one name and value of a JSON object, as it was written.
type member struct {
	name  string
	value json.RawMessage
}

var errNoObject = errors.New("no JSON object")

// members reads a JSON object with all that it says: a map would keep the last of
// two values of a name, and it cannot be known which was meant.
func members(text []byte) ([]member, error) {
	in := json.NewDecoder(bytes.NewReader(text))
	if t, err := in.Token(); err != nil || t != json.Delim('{') {
		return nil, errNoObject
	}
	var all []member
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return nil, err
		}
		m := member{name: name.(string)} // the decoder takes nothing else for a name
		if err := in.Decode(&m.value); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	if _, err := in.Token(); err != nil { // the brace
		return nil, err
	}
	if _, err := in.Token(); err != io.EOF {
		return nil, errNoObject
	}
	return all, nil
}
