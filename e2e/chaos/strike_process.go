package main

import (
	"context"
	"time"
)

// killRsctl kills one process at a random moment and starts another.
func killRsctl(ctx context.Context, s *scenario, _ plan) error {
	if err := pause(ctx, time.Duration(s.rng.IntN(1000))*time.Millisecond); err != nil {
		return err
	}
	i := s.rng.IntN(max(s.fault.processes, 1))
	s.processes[i].kill()
	return s.replace(i)
}

// replace starts a process in the place of one that has ended.
func (s *scenario) replace(i int) error {
	if err := s.run(); err != nil {
		return err
	}
	last := len(s.processes) - 1
	s.processes[i], s.processes[last] = s.processes[last], s.processes[i]
	return nil
}

// rollingRestart stops one process after the other by SIGTERM, as a deploy does.
func rollingRestart(ctx context.Context, s *scenario, _ plan) error {
	for i := range s.fault.processes {
		if err := s.processes[i].stop(); err != nil {
			return err
		}
		if err := s.replace(i); err != nil {
			return err
		}
		if err := s.progress(ctx, 50); err != nil {
			return err
		}
	}
	return nil
}

// cutConnections resets the TCP connections between rsctl and the broker.
func cutConnections(ctx context.Context, s *scenario, _ plan) error {
	if err := pause(ctx, time.Duration(s.rng.IntN(500))*time.Millisecond); err != nil {
		return err
	}
	s.proxy.Cut()
	return nil
}

// blackHole lets nothing through for longer than heartbeats take to notice.
func blackHole(ctx context.Context, s *scenario, _ plan) error {
	s.proxy.Freeze()
	err := pause(ctx, 5*time.Second)
	s.proxy.Thaw()
	return err
}

// noConfirms swallows publisher confirms, for longer than the runtime waits for
// them when there is time, and then cuts the connections of what still waits.
func noConfirms(ctx context.Context, s *scenario, p plan) error {
	length := 3 * time.Second
	if p.long() {
		length = 35 * time.Second
	}
	s.proxy.DropConfirms()
	err := pause(ctx, length)
	s.proxy.PassConfirms()
	s.proxy.Cut()
	return err
}
