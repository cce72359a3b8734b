package service_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// TestMain gives the tests and examples a virtual host of their own, at AMQP_URL, which a
// spec without broker.url uses.
func TestMain(m *testing.M) {
	name := hostName()
	amqpURL, err := createHost(name)
	if err == nil {
		err = os.Setenv("AMQP_URL", amqpURL)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := manage(http.MethodDelete, "vhosts/"+name, ""); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
		os.Exit(code)
	}))
}

func hostName() string { return "service-" + strings.ToLower(rand.Text()[:8]) }

// ownHost makes a virtual host that goes with the test, and returns its URL.
func ownHost(t *testing.T) string {
	t.Helper()
	name := hostName()
	amqpURL, err := createHost(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := manage(http.MethodDelete, "vhosts/"+name, ""); err != nil {
			t.Error(err)
		}
	})
	return amqpURL
}

func createHost(name string) (amqpURL string, err error) {
	u, err := url.Parse(os.Getenv("RSCTL_AMQP_URL"))
	if err != nil || u.Host == "" || os.Getenv("RSCTL_MANAGEMENT_URL") == "" {
		return "", errors.New("these tests need RabbitMQ: run make test, or set RSCTL_AMQP_URL=amqp://guest:guest@127.0.0.1:5672/ and RSCTL_MANAGEMENT_URL=http://guest:guest@127.0.0.1:15672")
	}
	if err := manage(http.MethodPut, "vhosts/"+name, ""); err != nil {
		return "", err
	}
	all := `{"configure":".*","write":".*","read":".*"}`
	if err := manage(http.MethodPut, "permissions/"+name+"/"+u.User.Username(), all); err != nil {
		return "", err
	}
	u.Path = "/" + name
	return u.String(), nil
}

// manage sends one request to the management API.
func manage(method, path, body string) error {
	base, err := url.Parse(strings.TrimSuffix(os.Getenv("RSCTL_MANAGEMENT_URL"), "/"))
	if err != nil {
		return err
	}
	user := base.User
	if user == nil {
		broker, err := url.Parse(os.Getenv("RSCTL_AMQP_URL"))
		if err != nil {
			return err
		}
		user = broker.User
	}
	req, err := http.NewRequestWithContext(context.Background(), method, base.JoinPath("api", path).String(), strings.NewReader(body))
	if err != nil {
		return err
	}
	password, _ := user.Password()
	req.SetBasicAuth(user.Username(), password)
	req.Header.Set("Content-Type", "application/json")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("management API: %s %s: %s", method, path, resp.Status)
	}
	return nil
}
