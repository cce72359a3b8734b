package hooktest

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// WantGone fails when a process of the file still runs. A zombie that waits for
// its new parent has ended, and the kernel may need a moment to kill.
func WantGone(t testing.TB, file string) {
	t.Helper()
	for pid := range strings.FieldsSeq(ReadFile(t, file)) {
		n, err := strconv.Atoi(pid)
		if err != nil {
			t.Fatal(err)
		}
		Eventually(t, "the end of process "+pid, func() bool {
			stat, err := os.ReadFile("/proc/" + pid + "/stat")
			return syscall.Kill(n, 0) != nil || err == nil && strings.Contains(string(stat), ") Z ")
		})
	}
}
