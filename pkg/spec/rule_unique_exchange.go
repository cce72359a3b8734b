package spec

import "fmt"

func checkUniqueExchange(s *Spec, report report) {
	first := map[string]Pos{}
	for _, x := range s.Exchanges {
		if x.Name == "" {
			continue
		}
		if at, dup := first[x.Name]; dup {
			report(x.Pos, fmt.Sprintf("exchange %q is already defined at line %d", x.shown(), at.Line), "rename one of them, or remove one")
			continue
		}
		first[x.Name] = x.Pos
	}
}
