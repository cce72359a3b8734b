package spec

func (d *decoder) spec() *Spec {
	top := d.fields(d.root)
	s := &Spec{
		File:            d.options.File,
		Dir:             d.options.Dir,
		Broker:          d.broker(d.root.get("broker")),
		DeclareTopology: top.boolean("declare_topology", false),
		MaxInMemory:     top.size("max_in_memory", DefaultMaxInMemory),
	}
	if n := d.root.get("declare_topology"); n != nil && n.broken || d.root.seen["declare_topology"] {
		s.badDeclare = true
	}
	if n := d.root.get("broker").get("management_url"); n != nil {
		s.managementPos = n.pos
	}
	if n := d.root.get("broker").get("auth"); n != nil {
		s.authPos = n.pos
	}
	if n := d.root.get("broker").get("tls"); n != nil {
		s.tlsPos = n.pos
	}
	for _, n := range list(d.root.get("exchanges")) {
		s.Exchanges = append(s.Exchanges, d.exchange(n))
	}
	for _, n := range list(d.root.get("queues")) {
		if n.kind == mapping {
			s.Queues = append(s.Queues, d.queue(n, d.root.get("defaults")))
		}
	}
	return s
}
