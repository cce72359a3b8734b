// Package message translates between an AMQP delivery and what the runtime
// needs: how often the message has been tried, what a hook is told about it,
// and the copies that are published in its place.
//
// Every function is pure: no network, no clock. A copy is always built from the
// delivery's own header table, never from what a hook saw, so every header
// keeps its type on the wire.
package message

// HeaderCount carries the number of the attempt that a copy follows, as decimal
// text. Ruststream services write and read the same header; they ignore a
// number of any other type.
const HeaderCount = "x-ruststream-retry-count"

// Headers that rsctl writes into its copies.
const (
	// HeaderQueue names the queue that the count, and the origin, belong to.
	HeaderQueue = "x-rsctl-queue"
	// HeaderExchange and HeaderRoutingKey say where the first delivery came
	// from; a copy travels through other exchanges.
	HeaderExchange   = "x-rsctl-exchange"
	HeaderRoutingKey = "x-rsctl-routing-key"
	// HeaderCC, HeaderUserID, HeaderExpiration and HeaderDeath keep what a copy
	// cannot carry in its own place.
	HeaderCC         = "x-rsctl-cc"
	HeaderUserID     = "x-rsctl-user-id"
	HeaderExpiration = "x-rsctl-expiration"
	HeaderDeath      = "x-rsctl-death"
	// HeaderReason, HeaderError, HeaderAttempts and HeaderFailedAt say why a
	// message is in its dead-letter queue.
	HeaderReason   = "x-rsctl-reason"
	HeaderError    = "x-rsctl-error"
	HeaderAttempts = "x-rsctl-attempts"
	HeaderFailedAt = "x-rsctl-failed-at"
)

// Headers that RabbitMQ reads or writes itself.
const (
	headerCC            = "CC"
	headerDeath         = "x-death"
	headerDeliveryCount = "x-delivery-count"
	headerDelay         = "x-delay"
)

// serverHeaders never travel on a copy. CC would route it to every CC'd queue
// again; a death history makes brokers up to 3.13 take it for a dead-letter
// cycle and drop it; the counts belong to the delivery that is ending; and the
// delayed-message plugin leaves its header on what it has released.
var serverHeaders = []string{
	headerCC, headerDeath, headerDeliveryCount, headerDelay,
	"x-first-death-exchange", "x-first-death-queue", "x-first-death-reason",
	"x-last-death-exchange", "x-last-death-queue", "x-last-death-reason",
	"x-acquired-count",
}
