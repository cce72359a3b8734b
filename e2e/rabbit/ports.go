package rabbit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// The range lies below the ports that kernels hand out to outgoing connections,
// so nothing takes a port between the look and the start.
const minPort, maxPort = 20000, 32000

var errNoPort = errors.New("no free TCP port between 20000 and 32000")

// marks keep what this program has taken from other programs that start nodes,
// until it ends: a node takes seconds to listen. A mark is the UDP port of the
// same number, which no node uses.
var marks struct {
	sync.Mutex
	held []net.PacketConn
}

// freePorts returns n different ports that nothing listens on, and that no other
// call of freePorts on this machine returns.
func freePorts(n int) ([]int, error) {
	marks.Lock()
	defer marks.Unlock()
	ports := make([]int, 0, n)
	for range 1000 {
		port := minPort + rand.IntN(maxPort-minPort)
		mark, free := take(net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if !free {
			continue
		}
		marks.held, ports = append(marks.held, mark), append(ports, port)
		if len(ports) == n {
			return ports, nil
		}
	}
	return nil, errNoPort
}

// take marks an address, if it is free.
func take(address string) (mark net.PacketConn, free bool) {
	mark, err := net.ListenPacket("udp", address)
	if err != nil {
		return nil, false
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		mark.Close()
		return nil, false
	}
	l.Close()
	return mark, true
}

// randomName returns a name that no other run uses.
func randomName(prefix string) string {
	return fmt.Sprintf("%s%08x", prefix, rand.Uint32())
}
