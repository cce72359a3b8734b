package spec

import (
	"errors"
	"slices"
	"strings"
)

func (d *decoder) broker(n *node) Broker {
	f := d.fields(n)
	b := Broker{
		Auth:           Password,
		TLS:            d.tls(n.get("tls")),
		ConnectionName: f.text("connection_name"),
	}
	if f.text("auth") == string(External) {
		b.Auth = External
	}
	w := &writtenURLs{options: d.options}
	d.addresses(f, &b, w)
	if v := f.scalar("management_url"); v != nil && v.value != "" {
		b.ManagementURL = d.url(v, httpSchemes)
		w.management = rereadable(v)
	}
	if w.management != "" || slices.ContainsFunc(w.addresses, func(raw string) bool { return raw != "" }) {
		b.written = w
	}
	return b
}

// addresses reads url or urls.
func (d *decoder) addresses(f fields, b *Broker, w *writtenURLs) {
	one, several := f.n.get("url"), f.n.get("urls")
	switch {
	case one != nil && several != nil:
		d.refuse(several, "url-or-urls", "broker has url and urls", "list every address under urls, and remove url")
	case several == nil && one == nil:
		b.URL = d.defaultURL()
	case several == nil:
		v := f.scalar("url")
		b.URL = d.url(v, amqpSchemes)
		w.addresses = []string{rereadable(v)}
	default:
		for _, v := range list(several) {
			if v.kind == scalar && !v.broken {
				b.URLs = append(b.URLs, d.url(v, amqpSchemes))
				w.addresses = append(w.addresses, rereadable(v))
			}
		}
		if len(b.URLs) > 0 {
			b.URL = b.URLs[0]
		}
	}
}

// rereadable returns the text of a value that a file is part of, else "".
func rereadable(n *node) string {
	if n == nil || !n.inserted || !strings.Contains(n.text, "${file:") {
		return ""
	}
	return n.text
}

// defaultURL is what a spec without broker.url means.
func (d *decoder) defaultURL() Text {
	n := &node{text: DefaultURL, label: "AMQP_URL", pos: Pos{1, 1}}
	d.interpolate(n)
	return d.url(n, amqpSchemes)
}

func (d *decoder) url(n *node, schemes []string) Text {
	if n == nil {
		return Text{}
	}
	if err := checkURL(n.value, schemes); err != nil {
		d.refuseURL(n, err)
	}
	return plainText(n)
}

func (d *decoder) refuseURL(n *node, err error) {
	var ue *urlError
	hint := ""
	message := err.Error()
	if errors.As(err, &ue) {
		message, hint = ue.fault, ue.hint
	}
	d.refuse(n, "url", n.label+": "+message, hint)
}

func (d *decoder) tls(n *node) *TLS {
	if n == nil || n.kind != mapping {
		return nil
	}
	f := d.fields(n)
	t := &TLS{CAFile: f.path("ca_file"), CertFile: f.path("cert_file"), KeyFile: f.path("key_file"), ServerName: f.text("server_name")}
	if !n.broken && (t.CertFile == "") != (t.KeyFile == "") {
		d.refuse(n, "tls-pair", "cert_file and key_file belong together", "write both, or neither")
	}
	return t
}

func (d *decoder) exchange(n *node) Exchange {
	f := d.fields(n)
	x := Exchange{
		Type:       f.text("type"),
		Durable:    f.boolean("durable", true),
		AutoDelete: f.boolean("auto_delete", false),
		Internal:   f.boolean("internal", false),
		External:   f.boolean("external", false),
		Arguments:  f.arguments("arguments"),
		Pos:        n.pos,
	}
	if v := f.scalar("name"); v != nil {
		x.Pos = v.pos
		reserved := reserve
		if x.External {
			reserved = allowReserved
		}
		x.Name = d.name(v, reserved)
		if v.inserted {
			x.written = short(maskURL(v.text))
		}
	}
	if n.kind == mapping && x.Type == "" && !x.External && n.get("type") == nil && !n.broken {
		d.refuse(n, "exchange-type", "an exchange needs a type, unless it is external", "type: direct, topic, fanout or headers")
	}
	return x
}
