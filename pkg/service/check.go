package service

import (
	"context"
	"errors"

	"github.com/rsctl/rsctl/pkg/topology"
	"github.com/rsctl/rsctl/pkg/topology/broker"
)

// Check looks whether the service could do its work: every handler could run, endpoints
// included, and the broker has everything that the queues need, as the spec has it. It
// changes nothing, so what Run would declare first counts as missing. The error is a
// [*StartError] with everything that was found wrong; it is another one when the broker
// cannot be asked.
//
// Bindings and policies are seen through the spec's management_url only. What could not
// be seen is no error; "rsctl check" lists it.
func (s *Service) Check(ctx context.Context) error {
	var problems []Problem
	for _, w := range s.workers {
		if err := w.ready(ctx); err != nil {
			problems = append(problems, w.problem(err))
		}
	}
	r, err := s.lookAtBroker(ctx)
	if r != nil {
		problems = append(problems, failures(s.spec.File, r)...)
	}
	switch {
	case len(problems) == 0:
		return err
	case err == nil:
		return &StartError{problems}
	}
	return errors.Join(&StartError{problems}, err)
}

func (s *Service) lookAtBroker(ctx context.Context) (*broker.Report, error) {
	mgmt, err := broker.NewManagement(s.spec.Broker)
	if err != nil {
		return nil, err
	}
	session, err := broker.Open(ctx, s.spec.Broker, "check")
	if err != nil {
		return nil, err
	}
	defer session.Close()
	return broker.Check(ctx, session, mgmt, topology.Compile(s.spec, session.Server()).For(s.Queues()...))
}
