//go:build !linux || mips || mipsle || mips64 || mips64le

package pidone

import "os"

var alsoPassedOn []os.Signal
