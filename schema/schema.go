// Package schema holds the JSON Schemas of a queues.yaml and of the lines that
// rsctl and a worker exchange.
//
// The first is one file with two readers: editors, which complete and check
// while the user types, and package spec, which validates with the very same
// bytes. What a schema cannot say (a cycle of dead letters, a limit without a
// dead-letter queue) is said by the rules of package spec. The others are for
// those who write a worker; tests hold what rsctl sends and takes against them.
package schema

import _ "embed"

// Queues is queues.schema.json, JSON Schema draft 2020-12. Callers must not
// change it.
//
//go:embed queues.schema.json
var Queues []byte

// WorkerRequest is worker-request.schema.json: one line that a worker reads.
// Callers must not change it.
//
//go:embed worker-request.schema.json
var WorkerRequest []byte

// WorkerResponse is worker-response.schema.json: one line that a worker prints.
// Callers must not change it.
//
//go:embed worker-response.schema.json
var WorkerResponse []byte
