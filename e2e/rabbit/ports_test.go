package rabbit

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
)

func TestNoPortIsGivenOutTwice(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var all []int
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			ports, err := freePorts(25)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, ports...)
		})
	}
	callers.Wait()
	slices.Sort(all)
	if n := len(slices.Compact(all)); n != 8*25 {
		t.Errorf("%d different ports, want %d", n, 8*25)
	}
}

// Another program is kept away by the mark alone.
func TestAMarkedPortIsNotFree(t *testing.T) {
	t.Parallel()
	ports, err := freePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	if mark, free := take(address); free {
		mark.Close()
		t.Errorf("%s can be taken twice", address)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatalf("the port is of no use to a node: %v", err)
	}
	l.Close()
}
