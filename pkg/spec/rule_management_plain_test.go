package spec

import "testing"

func TestThePasswordCrossesTheNetworkInPlainTextOnlyWithAWarning(t *testing.T) {
	t.Parallel()
	tests := []struct {
		url, management string
		want            bool
	}{
		{"amqps://mq.internal/", "http://mq.internal:15672", true},
		{"amqps://mq.internal/", "http://[2001:db8::1]:15672", true},
		{"amqps://mq.internal/", "https://mq.internal:15671", false},
		{"amqps://mq.internal/", "http://127.0.0.1:15672", false},
		{"amqps://mq.internal/", "http://[::1]:15672", false},
		{"amqps://mq.internal/", "http://localhost:15672", false},
		{"amqps://mq.internal/", "", false},
		{"amqp://mq.internal/", "http://mq.internal:15672", false},
	}
	for _, tt := range tests {
		b := Broker{URL: Text{Value: tt.url}, ManagementURL: Text{Value: tt.management}}
		if got := b.ManagementInPlain(); got != tt.want {
			t.Errorf("%s beside %s: %t, want %t", tt.management, tt.url, got, tt.want)
		}
	}
}
