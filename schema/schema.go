// Package schema holds the JSON Schema of a queues.yaml.
//
// It is one file with two readers: editors, which complete and check while the
// user types, and package spec, which validates with the very same bytes. What
// a schema cannot say (a cycle of dead letters, a limit without a dead-letter
// queue) is said by the rules of package spec.
package schema

import _ "embed"

// Queues is queues.schema.json, JSON Schema draft 2020-12. Callers must not
// change it.
//
//go:embed queues.schema.json
var Queues []byte
