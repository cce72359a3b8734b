//go:build !linux

package main

import (
	"context"
	"errors"
)

// useUpDescriptors needs prlimit, which lowers the limit of another process.
func useUpDescriptors(context.Context, *scenario, plan) error {
	return errors.New("this fault needs Linux")
}
