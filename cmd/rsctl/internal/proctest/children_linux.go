// Package proctest tells tests about processes.
package proctest

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// Children returns the states of the processes whose parent is pid, zombies
// among them: S, Z and what else /proc says.
func Children(t testing.TB, pid int) (states []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // no process, or one that has gone
		}
		// The name in parentheses may hold anything.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			states = append(states, fields[0])
		}
	}
	return states
}
