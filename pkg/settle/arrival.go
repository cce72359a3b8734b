package settle

// Arrival is one way by which copies reach a queue: the exchange that delivers
// them, and the routing key they have there; "" stands for any key.
type Arrival struct{ Exchange, Key string }

// Brings reports whether a delivery with these properties may have come by a.
func (a Arrival) Brings(exchange, key string) bool {
	return exchange == a.Exchange && (a.Key == "" || key == a.Key)
}
