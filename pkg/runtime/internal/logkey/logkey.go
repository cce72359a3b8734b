// Package logkey has the keys of the log's attributes. They are an interface:
// docs/operations.md lists them, and a test holds the two together.
package logkey

// The keys. A reader of the log finds the deliveries by the first three.
const (
	Queue       = "queue"
	MessageID   = "message_id"
	Attempt     = "attempt"
	Error       = "error"
	Reason      = "reason"
	Exchange    = "exchange"
	RoutingKey  = "routing_key"
	Target      = "target"
	Purpose     = "purpose"
	Outcome     = "outcome"
	Next        = "next"
	Redelivered = "redelivered"
	HandlerAge  = "handler_age"
	RetryIn     = "retry_in"
	Count       = "count"
	ConsumerTag = "consumer_tag"
	PausedFor   = "paused_for"
	NotLogged   = "not_logged"
	Bytes       = "bytes"
	Stack       = "stack"
)
