package cli

import (
	"net/url"
	"slices"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/spf13/cobra"

	"github.com/rsctl/rsctl/pkg/spec"
)

// checkGlobals refuses a form of output that the command does not have and URLs
// that cannot be one. Error texts never repeat a URL: it may hold a password.
func (a *app) checkGlobals(cmd *cobra.Command) error {
	if allowed := formatsOf(cmd); !slices.Contains(allowed, a.output.value) {
		return usagef("use --output "+strings.Join(allowed, " or "),
			"%q has no --output %s", cmd.CommandPath(), a.output.value)
	}
	if a.url != "" {
		if _, err := amqp.ParseURI(a.url); err != nil {
			return usagef("amqp://user:password@host:5672/vhost, with %2F for the vhost /", "--url is not an AMQP URL")
		}
	}
	if a.managementURL != "" {
		u, err := url.Parse(a.managementURL)
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return usagef("http://user:password@host:15672", "--management-url is not an HTTP URL")
		}
	}
	return nil
}

// formatsOf lists what --output may be on cmd.
func formatsOf(cmd *cobra.Command) []string {
	if list, ok := cmd.Annotations[formats]; ok {
		return strings.Fields(list)
	}
	return []string{"text"}
}

// override puts the URLs of the command line in place of the spec's.
func (g *globals) override(b *spec.Broker) {
	if g.url != "" {
		b.SetURL(spec.Text{Value: g.url, Source: maskURL(g.url)})
	}
	if g.managementURL != "" {
		b.SetManagementURL(spec.Text{Value: g.managementURL, Source: maskURL(g.managementURL)})
	}
}

// maskURL hides the password of a URL; one that cannot be parsed is hidden whole.
func maskURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(unreadable URL)"
	}
	u.RawQuery = ""
	if u.User != nil {
		if _, set := u.User.Password(); set {
			u.User = url.User(u.User.Username())
			return strings.Replace(u.String(), "@", ":***@", 1)
		}
	}
	return u.String()
}
