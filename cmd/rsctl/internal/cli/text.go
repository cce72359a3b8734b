package cli

import "github.com/rsctl/rsctl/pkg/spec"

func namesOf(queues []*spec.Queue) []string {
	var names []string
	for _, q := range queues {
		names = append(names, q.Name)
	}
	return names
}
