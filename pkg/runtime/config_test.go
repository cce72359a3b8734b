package runtime

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
)

// complete is a Config that can be run; the broker is never asked.
func complete() Config {
	ack := hooks.Func(func(context.Context, hooks.Message) (hooks.Outcome, error) { return hooks.Outcome{}, nil })
	return Config{
		Dial:   func(context.Context, string) (*amqp.Connection, error) { panic("a broken Config was dialled with") },
		Log:    slog.New(slog.DiscardHandler),
		Queues: []Queue{{Policy: settle.Policy{Queue: "orders", Type: settle.Quorum}, Hook: ack, Prefetch: 2, Concurrency: 1}},
	}
}

func TestConfigThatCannotBeRunIsAnError(t *testing.T) {
	t.Parallel()
	if err := complete().validate(); err != nil {
		t.Fatalf("a complete Config: %v", err)
	}
	ack := complete().Queues[0].Hook
	for name, tt := range map[string]struct {
		spoil func(*Config)
		want  string
	}{
		"no way to the broker":        {func(c *Config) { c.Dial = nil }, "no Dial"},
		"no log":                      {func(c *Config) { c.Log = nil }, "no Log: give one; slog.New(slog.DiscardHandler) is silent"},
		"no queues":                   {func(c *Config) { c.Queues = nil }, "no queues"},
		"a queue without a name":      {func(c *Config) { c.Queues[0].Policy.Queue = "" }, "queue 1: its Policy names no queue"},
		"a queue that is there twice": {func(c *Config) { c.Queues = append(c.Queues, c.Queues[0]) }, `queue "orders" is there twice`},
		"a type":                      {func(c *Config) { c.Queues[0].Policy.Type = "stream" }, `type "stream" is neither classic nor quorum`},
		"a negative cap":              {func(c *Config) { c.Queues[0].Policy.MaxAttempts = -1 }, "max attempts is -1"},
		"no hook":                     {func(c *Config) { c.Queues[0].Hook = nil }, "it has no Hook"},
		"no prefetch":                 {func(c *Config) { c.Queues[0].Prefetch = 0 }, "prefetch is 0, not 1 to 65535"},
		"a prefetch beyond AMQP's":    {func(c *Config) { c.Queues[0].Prefetch = 65536 }, "prefetch is 65536"},
		"no concurrency":              {func(c *Config) { c.Queues[0].Concurrency = 0 }, "concurrency is 0"},
		"a negative timeout":          {func(c *Config) { c.Queues[0].Timeout = -1 }, "the timeout is negative"},
		"a negative rate":             {func(c *Config) { c.Queues[0].Rate = -1 }, "the rate is negative"},
		"a negative breaker":          {func(c *Config) { c.Queues[0].Breaker.Failures = -1 }, "the breaker's failures or cooldown are negative"},
		"a batch beyond its format":   {func(c *Config) { c.Queues[0].Batch.Size = 70000 }, "a batch has 1 to 65535 messages"},
		"a batch for a hook of one":   {func(c *Config) { c.Queues[0].Batch.Size = 2 }, `queue "orders": its handler takes no batches`},
		"an order by no header":       {func(c *Config) { c.Queues[0].Order.By = OrderByHeader }, "a header that has no name"},
		"an unknown order":            {func(c *Config) { c.Queues[0].Order.By = "colour" }, `cannot be ordered by "colour"`},
		"a drain's time without one":  {func(c *Config) { c.DrainTimeout = time.Second }, "a DrainTimeout without Drain"},
		"a negative time":             {func(c *Config) { c.ShutdownTimeout = -1 }, "a timeout is negative"},
		"everything at once": {
			func(c *Config) {
				*c = Config{Queues: []Queue{{Hook: ack}, {Policy: settle.Policy{Queue: "q", Type: settle.Classic}}}}
			},
			"no Dial",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := complete()
			tt.spoil(&cfg)
			err := Run(t.Context(), t.Context(), cfg)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Run() = %v, want an error that says %q", err, tt.want)
			}
			if lines := strings.Count(err.Error(), "\n") + 1; name == "everything at once" && lines != 9 {
				t.Errorf("%d problems, want each of 9 on a line:\n%v", lines, err)
			}
		})
	}
}
