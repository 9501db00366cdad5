//go:build !linux

package lease

import (
	"syscall"
	"time"
)

// giveUpAfter does nothing: only Linux has the option. Other systems use the default of their kernel.
func giveUpAfter(time.Duration) func(network, address string, conn syscall.RawConn) error { return nil }
