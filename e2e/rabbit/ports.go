package rabbit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// The range lies below the ports that kernels hand out to outgoing connections,
// so nothing takes a port between the look and the start.
const minPort, maxPort = 20000, 32000

var errNoPort = errors.New("no free TCP port between 20000 and 32000")

// freePorts returns n different ports that nothing listens on.
func freePorts(n int) ([]int, error) {
	held := make([]net.Listener, 0, n)
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	ports := make([]int, 0, n)
	for range 1000 {
		port := minPort + rand.IntN(maxPort-minPort)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		held, ports = append(held, l), append(ports, port)
		if len(ports) == n {
			return ports, nil
		}
	}
	return nil, errNoPort
}

// randomName returns a name that no other run uses.
func randomName(prefix string) string {
	return fmt.Sprintf("%s%08x", prefix, rand.Uint32())
}
