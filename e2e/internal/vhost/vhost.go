// Package vhost makes virtual hosts for one test or demo on a broker that may
// hold anything else.
package vhost

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// A Host is a virtual host that Remove removes with everything in it.
type Host struct {
	Name string
	URL  string // amqp://…/NAME, otherwise as RSCTL_AMQP_URL

	management, user, password string
}

// Create makes the virtual host name on the broker that RSCTL_AMQP_URL and
// RSCTL_MANAGEMENT_URL point to, and lets that URL's user do everything in it.
func Create(ctx context.Context, name string) (*Host, error) {
	for _, v := range []string{"RSCTL_AMQP_URL", "RSCTL_MANAGEMENT_URL"} {
		if os.Getenv(v) == "" {
			return nil, fmt.Errorf(`%s is not set, and this needs a RabbitMQ: "make test" and "make demo" start a private one; or set RSCTL_AMQP_URL and RSCTL_MANAGEMENT_URL to one that may be used`, v)
		}
	}
	return CreateAt(ctx, os.Getenv("RSCTL_AMQP_URL"), os.Getenv("RSCTL_MANAGEMENT_URL"), name)
}

// CreateAt makes the virtual host name on a broker given by its URLs.
func CreateAt(ctx context.Context, amqpURL, managementURL, name string) (*Host, error) {
	u, err := url.Parse(amqpURL)
	if err != nil {
		return nil, errors.New("the broker's URL is not a URL")
	}
	h := &Host{Name: name, management: strings.TrimSuffix(managementURL, "/")}
	h.user, h.password = "guest", "guest"
	if u.User != nil {
		h.user = u.User.Username()
		h.password, _ = u.User.Password()
	}
	u.Path = "/" + name
	h.URL = u.String()
	if err := h.Manage(ctx, http.MethodPut, "vhosts/"+name, "", nil); err != nil {
		return nil, err
	}
	all := `{"configure":".*","write":".*","read":".*"}`
	if err := h.Manage(ctx, http.MethodPut, "permissions/"+name+"/"+url.PathEscape(h.user), all, nil); err != nil {
		return nil, errors.Join(err, h.Remove(ctx))
	}
	return h, nil
}

// Remove deletes the virtual host.
func (h *Host) Remove(ctx context.Context) error {
	return h.Manage(ctx, http.MethodDelete, "vhosts/"+h.Name, "", nil)
}

// Manage sends one request to the management API and decodes the answer into
// answer, unless that is nil.
func (h *Host) Manage(ctx context.Context, method, path, body string, answer any) error {
	req, err := http.NewRequestWithContext(ctx, method, h.management+"/api/"+path, strings.NewReader(body))
	if err != nil {
		return errors.New("the management URL is not a URL")
	}
	req.Header.Set("Content-Type", "application/json")
	if req.URL.User == nil {
		req.SetBasicAuth(h.user, h.password)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("management API: %s %s: %w", method, path, cause(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("management API: %s %s: %s", method, path, resp.Status)
	}
	if answer == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(answer)
}

// cause drops the URL, which may hold a password, from a client's error.
func cause(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return cmp.Or(u.Err, err)
	}
	return err
}
