package runtime

import (
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// handsBackFree reports whether a quorum queue counts no attempt for a delivery
// that is handed back by basic.nack: from RabbitMQ 4.3 on. A version that cannot
// be read is taken for a new one.
func handsBackFree(conn *amqp.Connection) bool {
	version, _ := conn.Properties["version"].(string)
	var major, minor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n < 2 {
		return true
	}
	return major > 4 || major == 4 && minor >= 3
}
