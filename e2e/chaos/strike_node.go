package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// alarmTime is how long an alarm lasts.
const alarmTime = 4 * time.Second

func memoryAlarm(ctx context.Context, s *scenario, _ plan) error {
	return alarm(ctx, s, []string{"set_vm_memory_high_watermark", "0.000001"}, []string{"set_vm_memory_high_watermark", "0.4"})
}

func diskAlarm(ctx context.Context, s *scenario, _ plan) error {
	return alarm(ctx, s, []string{"set_disk_free_limit", "900000GB"}, []string{"set_disk_free_limit", "50MB"})
}

// alarm holds that hooks go on while it is on. Nobody can publish meanwhile, and
// failing messages of the classic queues wait for its end in every place there
// is, so a quorum queue that has been worked off has nothing more to show.
func alarm(ctx context.Context, s *scenario, on, off []string) error {
	if _, err := s.nodes[0].Ctl(ctx, on...); err != nil {
		return err
	}
	before, err := s.ledger.Runs()
	if err == nil {
		err = s.whileRunning(ctx, "20 more runs of handlers, or an empty quorum queue", func() bool {
			now, runsErr := s.ledger.Runs()
			left, readyErr := s.readyIn(quorum.name)
			return runsErr == nil && now >= before+20 || readyErr == nil && left == 0
		})
	}
	if err == nil {
		err = pause(ctx, alarmTime)
	}
	_, offErr := s.nodes[0].Ctl(context.WithoutCancel(ctx), off...)
	return errors.Join(err, offErr)
}

func restartBroker(ctx context.Context, s *scenario, _ plan) error { return s.nodes[0].Restart(ctx) }

// killBroker does not strike at once: RabbitMQ 4.3.6 loses confirmed messages of a
// quorum queue that was declared a moment before its only node is killed.
func killBroker(ctx context.Context, s *scenario, _ plan) error {
	if err := pause(ctx, 6*time.Second); err != nil {
		return err
	}
	if err := s.nodes[0].Kill(); err != nil {
		return err
	}
	return s.nodes[0].Restart(ctx)
}

// killLeader kills the node that leads the first queue, lets the others work,
// and brings it back. It waits until every member takes part: on a busy machine
// one may still be starting, and what is left without the leader is no majority.
func killLeader(ctx context.Context, s *scenario, _ plan) error {
	var state struct {
		Leader string   `json:"leader"`
		Online []string `json:"online"`
	}
	path := "queues/" + s.host.Name + "/" + s.fault.queues[0].name
	err := until(ctx, "the management API to know a leader and all members, which it learns every few seconds", func() bool {
		return s.host.Manage(ctx, "GET", path, "", &state) == nil && state.Leader != "" && len(state.Online) == len(s.nodes)
	})
	if err != nil {
		return err
	}
	for i, n := range s.nodes {
		if n.Name != state.Leader {
			continue
		}
		return killNode(ctx, s, i)
	}
	return fmt.Errorf("no node is called %q, the leader", state.Leader)
}

func killNode(ctx context.Context, s *scenario, i int) error {
	if err := s.nodes[i].Kill(); err != nil {
		return err
	}
	goes := s.progress(ctx, 200)
	return errors.Join(goes, s.nodes[i].Restart(ctx))
}

// shortConsumerTimeout makes the broker give up on unacknowledged deliveries
// after seconds instead of half an hour.
func shortConsumerTimeout(ctx context.Context, s *scenario) (func() error, error) {
	set := func(ctx context.Context, timeout, tick string) error {
		code := fmt.Sprintf("application:set_env(rabbit, consumer_timeout, %s), application:set_env(rabbit, channel_tick_interval, %s).", timeout, tick)
		_, err := s.nodes[0].Ctl(ctx, "eval", code)
		return err
	}
	undo := func() error { return set(context.WithoutCancel(ctx), "1800000", "60000") }
	return undo, set(ctx, "2000", "1000")
}

// stallHooks keeps a few hooks running until the broker has given up on one.
func stallHooks(ctx context.Context, s *scenario, _ plan) error {
	var stalled atomic.Int64
	release := make(chan struct{})
	s.hook.Stall(func(id string, _ int) { // on 4.3 only quorum queues have a timeout
		if strings.HasPrefix(id, quorum.name+"/") && stalled.Add(1) <= 4 {
			<-release
		}
	})
	defer s.hook.Stall(nil)
	defer close(release)
	p := s.processes[len(s.processes)-1]
	given := func() int { return p.count("subscribing again") }
	before := given()
	return s.whileRunning(ctx, "the broker to give up on a delivery", func() bool { return given() > before })
}

// deadLetterAtLeastOnce is the policy for operators whose quorum queues must not
// lose a dead letter that is on its way when a node dies.
func deadLetterAtLeastOnce(ctx context.Context, s *scenario) (func() error, error) {
	pattern := `^(quorum|quorum-ttl|commands)$`
	return func() error { return nil }, setPolicy(ctx, s, "dead-letter", pattern, `"dead-letter-strategy":"at-least-once","overflow":"reject-publish"`)
}
