package settle_test

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rsctl/rsctl/pkg/settle"
)

func TestFailureTableIsWhatRecoverDecides(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		for _, r := range settle.FailureTable(p) {
			if want := settle.Recover(r.Failure, r.Facts, p); !reflect.DeepEqual(r.Steps, want) {
				t.Fatalf("row %q %q has steps %#v, want %#v", r.Failure, r.When, r.Steps, want)
			}
			if r.When == "" || r.Then == "" || r.Then == "done" {
				t.Fatalf("row %+v says too little", r)
			}
			for _, s := range r.Steps {
				if text := settle.Describe(s); text == "" || strings.ContainsAny(text, "\n|") {
					t.Fatalf("step %#v is described as %q", s, text)
				}
			}
		}
	})
}

func TestFailureTableHasTheFailuresThatConcernAQueue(t *testing.T) {
	t.Parallel()
	rows := map[settle.Failure]bool{}
	for _, r := range settle.FailureTable(policy(settle.Quorum, capped(3), waitingQueue())) {
		rows[r.Failure] = true
	}
	for _, e := range settle.Failures() {
		if !rows[e] {
			t.Errorf("no row says what happens when %s", e)
		}
	}
	for _, r := range settle.FailureTable(policy(settle.Quorum)) {
		if r.Failure != settle.Stopped && r.Failure != settle.ReplyUnconfirmed {
			t.Errorf("%s: concerns a queue without copies", r.Failure)
		}
	}
}

// What a message loses by a failure is said where it differs from a plain retry.
func TestFailureTableSaysWhatASpentMessageLoses(t *testing.T) {
	t.Parallel()
	for _, r := range settle.FailureTable(policy(settle.Quorum, capped(3), waitingQueue())) {
		if r.Failure == settle.CopyOverdue && r.Facts.Attempt == 3 && r.Then != "comes back as the same attempt" {
			t.Errorf("%s, %s: %s", r.Failure, r.When, r.Then)
		}
	}
}
