package runtime

import (
	"fmt"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/runtime/internal/recall"
	"github.com/rsctl/rsctl/pkg/settle"
)

func suspect(id int) *amqp.Delivery {
	return &amqp.Delivery{MessageId: fmt.Sprint(id), Redelivered: true, Headers: amqp.Table{"x-delivery-count": int64(1)}}
}

func cautious(prefetch int) *caution {
	k := newCaution(Queue{Policy: settle.Policy{Type: settle.Quorum}, Prefetch: prefetch}, recall.NewReturns())
	k.free = true
	return k
}

func TestAProcessRunsSuspectsOneAtATimeUpToTheFirstOther(t *testing.T) {
	t.Parallel()
	k := cautious(10)
	for i := range 5 {
		if got := k.meet(suspect(i)); got != unchanged || k.prefetch(10) != 1 {
			t.Fatalf("suspect %d: change %v, prefetch %d", i, got, k.prefetch(10))
		}
	}
	if got := k.meet(&amqp.Delivery{}); got != opens || k.prefetch(10) != 10 {
		t.Errorf("another: change %v, prefetch %d", got, k.prefetch(10))
	}
}

func TestSuspectsWithoutAnEndDoNotKeepTheQueueSlow(t *testing.T) {
	t.Parallel()
	k := cautious(10)
	for i := range aloneTimes * 10 {
		if got := k.meet(suspect(i)); got != unchanged {
			t.Fatalf("suspect %d: change %v", i, got)
		}
	}
	if got := k.meet(suspect(-1)); got != opens {
		t.Errorf("one more: change %v", got)
	}
	for i := range 1000 {
		if got := k.meet(suspect(i)); got != unchanged {
			t.Fatalf("suspect %d of a queue that is full of them: change %v", i, got)
		}
	}
}

func TestARareSuspectSlowsTheQueueAtOnceAndACommonOneInARowOfThree(t *testing.T) {
	t.Parallel()
	k := cautious(10)
	k.meet(&amqp.Delivery{})
	if got := k.meet(suspect(1)); got != retreats || k.prefetch(10) != 1 {
		t.Errorf("a rare suspect: change %v, prefetch %d", got, k.prefetch(10))
	}
	if got := k.meet(&amqp.Delivery{}); got != opens {
		t.Errorf("another: change %v", got)
	}
	for i := range suspectsInARow - 1 {
		if got := k.meet(suspect(i)); got != unchanged {
			t.Errorf("common suspect %d: change %v", i, got)
		}
	}
	if got := k.meet(suspect(3)); got != retreats {
		t.Errorf("the last of the row: change %v", got)
	}
}

func TestAQueueAtWorkStaysOpenWhereHandingBackIsNotFree(t *testing.T) {
	t.Parallel()
	k := cautious(10)
	k.free = false
	if got := k.meet(&amqp.Delivery{}); got != opens {
		t.Errorf("the first delivery: change %v", got)
	}
	for i := range 10 {
		if got := k.meet(suspect(i)); got != unchanged {
			t.Errorf("suspect %d: change %v", i, got)
		}
	}
}

func TestWhatThisProcessReturnedIsNoSuspect(t *testing.T) {
	t.Parallel()
	k := cautious(10)
	k.meet(&amqp.Delivery{})
	for i := range 10 {
		d := suspect(i)
		k.own.Add(d)
		if got := k.meet(d); got != unchanged {
			t.Errorf("change %v", got)
		}
	}
	k.reconnected()
	if got := k.meet(suspect(99)); got != unchanged {
		t.Errorf("after a reconnect: change %v", got)
	}
}

func TestOnlyQueuesThatCountAreCautious(t *testing.T) {
	t.Parallel()
	for name, q := range map[string]Queue{
		"classic":                     {Policy: settle.Policy{Type: settle.Classic}, Prefetch: 10},
		"one at a time already":       {Policy: settle.Policy{Type: settle.Quorum}, Prefetch: 1},
		"with a single active reader": {Policy: settle.Policy{Type: settle.Quorum}, Prefetch: 10, Consumer: Consumer{SingleActive: true}},
	} {
		if k := newCaution(q, recall.NewReturns()); k.alone || k.meet(suspect(1)) != unchanged {
			t.Errorf("a queue that is %s is cautious", name)
		}
	}
}
