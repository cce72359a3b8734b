package main

import (
	"context"
	"fmt"
	"os"
	"runtime/pprof"
	"time"
)

// A row is one path that is measured. Both sides handle the same messages.
type row struct {
	name   string
	target float64 // least ratio of ours to bare, in messages per second
	count  int     // messages per round
	bare   side
	ours   side
}

// A side handles n messages and returns how long that took.
type side func(ctx context.Context, b *bench, n int) (time.Duration, error)

// options is how to measure.
type options struct {
	rounds  int
	only    string
	scale   float64
	install bool // rivals that are missing
}

// result is a measured row.
type result struct {
	row
	bare, ours []time.Duration // by round
}

// measure runs one round that is not counted, then the others in turn.
func measure(ctx context.Context, b *bench, r row, o options) (result, error) {
	r.count = int(float64(r.count) * o.scale)
	fmt.Fprintf(os.Stderr, "bench: %s, %d messages, %d rounds\n", r.name, r.count, o.rounds)
	res := result{row: r}
	for i := range o.rounds + 1 {
		bare, err := r.bare.labelled(ctx, "bare", b, r.count)
		if err != nil {
			return res, fmt.Errorf("%s: bare: %w", r.name, err)
		}
		ours, err := r.ours.labelled(ctx, "rsctl", b, r.count)
		if err != nil {
			return res, fmt.Errorf("%s: rsctl: %w", r.name, err)
		}
		if i > 0 {
			res.bare, res.ours = append(res.bare, bare), append(res.ours, ours)
		}
	}
	return res, nil
}

// labelled runs it with a label by which a profile can be cut.
func (s side) labelled(ctx context.Context, name string, b *bench, n int) (took time.Duration, err error) {
	pprof.Do(ctx, pprof.Labels("side", name), func(ctx context.Context) { took, err = s(ctx, b, n) })
	return took, err
}

// ratios is the speed of rsctl in parts of the bare loop's, round by round.
func (r result) ratios() []float64 {
	var list []float64
	for i := range r.bare {
		list = append(list, float64(r.bare[i])/float64(r.ours[i]))
	}
	return list
}

func (r result) perSecond(times []time.Duration) float64 {
	var list []float64
	for _, d := range times {
		list = append(list, float64(r.count)/d.Seconds())
	}
	return median(list)
}
