package spec

import (
	"fmt"
	"strings"
	"testing"
)

// thousand is a spec of a size that only a generator writes.
func thousand() []byte {
	var b strings.Builder
	b.WriteString("version: 1\ndeclare_topology: true\nx-base: &base {type: quorum, max_attempts: 5}\nqueues:\n")
	for i := range 1000 {
		fmt.Fprintf(&b, `  - <<: *base
    name: queue-%d
    dead_letter: queue-%d.dead
    bindings: [{exchange: amq.topic, routing_key: "order.%d.*"}]
    arguments: {x-max-length: 100000, x-overflow: reject-publish}
    delay: {strategy: dlx_ttl, tiers: [5s, 1m, 10m]}
    backoff: {initial: 1s, factor: 2, max: 5m}
    concurrency: ${WORKERS}
    handler: {exec: [./reserve.sh, --fast], timeout: 30s, exit_codes: {"3": drop}}
`, i, i, i)
	}
	return []byte(b.String())
}

func BenchmarkParse1000Queues(b *testing.B) {
	data := thousand()
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if s, problems := Parse(data, testOptions("q.yaml")); len(problems) > 0 || len(s.Queues) != 1000 {
			b.Fatal(problems)
		}
	}
}

// The first Parse of a process also compiles the schema.
func BenchmarkCompileSchema(b *testing.B) {
	for b.Loop() {
		if _, err := compileSchema(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParse1000Mistakes(b *testing.B) {
	data := []byte(strings.ReplaceAll(string(thousand()), "timeout: 30s", "timeout: 30"))
	for b.Loop() {
		if _, problems := Parse(data, testOptions("q.yaml")); len(problems) != 1000 {
			b.Fatalf("%d problems", len(problems))
		}
	}
}
